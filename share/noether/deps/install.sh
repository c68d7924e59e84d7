#!/bin/sh
# Installs the packages of debian.txt that are missing, by group: install.sh build libtorch test
# Asks no question, and does nothing, not even an update of the package lists, when nothing is missing. On a system without apt-get
# it says what to install and fails. LibTorch itself is not a Debian package of a fit version: libtorch.sh fetches it.
set -eu
here=$(dirname "$0")

found() {
  case $1 in
  *.pc) pkg-config --exists "${1%.pc}" 2>/dev/null ;;
  *.py) python3 -c "import ${1%.py}" 2>/dev/null ;;
  *) command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] ;;
  esac
}

missing=
for group in "$@"; do
  listed=$(awk -v group="$group" '!/^#/ && $2 == group { print $1 "=" $3 }' "$here/debian.txt")
  if [ -z "$listed" ]; then
    echo "install.sh: no group '$group' in $here/debian.txt" >&2
    exit 2
  fi
  for entry in $listed; do
    found "${entry#*=}" || missing="$missing ${entry%%=*}"
  done
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
  echo "This is not a Debian system. Please install what Debian calls:$missing" >&2
  exit 1
fi
root=
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "These packages are missing, and without sudo only root can install them:" >&2
    echo "  apt-get install --no-install-recommends$missing" >&2
    exit 1
  fi
  root=sudo
fi
echo "Installing:$missing" >&2
# A list that could not be updated may still do: the installation is what counts.
$root apt-get update -q >&2 || echo "apt-get update failed; going on with the lists at hand" >&2
# shellcheck disable=SC2086 # one word a package
$root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing >&2
