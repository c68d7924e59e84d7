#!/bin/bash
# Compares speed with other programs: run.sh FOLDER [CASE...], a build, and cases of run.py (all of them by default)
# The peers are installed into FOLDER/bench/venv (4 GB: PyTorch's package brings its CUDA libraries along), and a text of 20 MB is
# taken from Debian's documentation packages; BENCH_TEXT=FILE takes another.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1
shift
ninja -C "$build" noether_stream_bench noether_optimizer_bench >/dev/null
bench=$build/bench
mkdir -p "$bench"

if ! cmp -s tests/bench/requirements.txt "$bench/venv/requirements.txt"; then
  python3 -m venv "$bench/venv"
  "$bench/venv/bin/pip" install -q --disable-pip-version-check -r tests/bench/requirements.txt
  # Without what it needs: only a file of it is read.
  "$bench/venv/bin/pip" install -q --disable-pip-version-check --no-deps openai-whisper==20250625
  cp tests/bench/requirements.txt "$bench/venv/requirements.txt"
fi

text=${BENCH_TEXT:-$bench/english.txt}
if [ ! -e "$text" ]; then
  mkdir -p "$bench/packages"
  (cd "$bench/packages" && apt-get download -qq debian-handbook git-doc python3.11-doc postgresql-doc-15)
  for package in "$bench"/packages/*.deb; do dpkg-deb -x "$package" "$bench/packages/unpacked"; done
  python3 tests/bench/text.py "$bench/packages/unpacked" "$text"
  rm -rf "$bench/packages"
fi

exec "$bench/venv/bin/python" tests/bench/run.py "$build" "$text" "$@"
