#!/bin/sh
# Puts LibTorch's CPU library into FOLDER/libtorch (torch/ and nvidia/ side by side, where its own run path looks): libtorch.sh FOLDER
# The packages are pinned by hash in libtorch.txt; no Python package is installed, and none is needed to build or run. What only a GPU
# uses is left out. FOLDER/libtorch appears whole or not at all. LIBTORCH or Torch_DIR, when set, name another one, which is only
# looked at.
set -eu
here=$(dirname "$0")
folder=$1
packages=$here/libtorch.txt

own=${LIBTORCH:-}
if [ -z "$own" ] && [ -n "${Torch_DIR:-}" ]; then
  own=${Torch_DIR%/}/../../.. # PREFIX/share/cmake/Torch
fi
if [ -n "$own" ]; then
  for file in include/ATen/ATen.h lib/libtorch_cpu.so; do
    if [ ! -e "$own/$file" ]; then
      echo "libtorch.sh: $own (from LIBTORCH or Torch_DIR) is no LibTorch: it has no $file" >&2
      exit 1
    fi
  done
  exit 0
fi

cmp -s "$packages" "$folder/libtorch/packages.txt" && exit 0
if [ "$(uname -s -m)" != "Linux x86_64" ]; then
  echo "libtorch.sh: the pinned packages are for Linux on x86_64, this is $(uname -s -m); set LIBTORCH to a LibTorch 2.6 or later" >&2
  exit 1
fi

mkdir -p "$folder"
work=$(mktemp -d "$folder/libtorch.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

echo "Fetching LibTorch (545 MB; 520 MB of it are kept in $folder)" >&2
# The platform is spelled out, so that the Python at hand may be of any version.
pip3 download --disable-pip-version-check --no-cache-dir --no-deps --only-binary=:all: --require-hashes \
  --implementation cp --python-version 3.11 --abi cp311 --abi abi3 --abi none \
  --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
  -r "$packages" -d "$work/packages" >&2
python3 - "$work/packages" "$work/libtorch" <<'PYTHON'
import pathlib, re, sys, zipfile

packages, target = map(pathlib.Path, sys.argv[1:])
kept = re.compile(r"torch/include/|torch/lib/lib(torch_cpu|c10)\.so$|nvidia/cu13/lib/lib(cudart|cupti)\.so\.|[^/]*\.dist-info/licenses/")
for package in packages.glob("*.whl"):
    with zipfile.ZipFile(package) as archive:
        archive.extractall(target, [name for name in archive.namelist() if kept.match(name)])
    package.unlink()
PYTHON
cp "$packages" "$work/libtorch/packages.txt"

# An earlier version steps aside first, for a folder cannot replace a folder.
if [ -e "$folder/libtorch" ] || [ -L "$folder/libtorch" ]; then
  mv -T "$folder/libtorch" "$work/earlier"
fi
mv -T "$work/libtorch" "$folder/libtorch"
