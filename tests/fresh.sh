#!/bin/bash
# Runs the README's two commands on a bare Debian 12, in a folder of its own: fresh.sh [COMMAND...]
# The system is made by debootstrap and holds nothing but the minimum, make and certificates; what is tested is the last commit, not the
# working tree. The network is reached as on this machine: the same resolver, certificates, and settings of apt and pip. Needs root,
# and leaves nothing behind. KEEP=1 keeps the folder.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- "make demo" "make test"

# The mounts below live in a name space of their own, so that they end with this script, however it ends.
if [ -z "${FRESH_NAMESPACE:-}" ]; then
  if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
    echo "fresh.sh: needs root, and debootstrap (apt-get install debootstrap)" >&2
    exit 1
  fi
  FRESH_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi

root=$(mktemp -d -t noether-fresh.XXXXXX)
# shellcheck disable=SC2317 # trap calls it
finish() {
  umount -R "$root/proc" "$root/dev" 2>/dev/null || true
  if [ -n "${KEEP:-}" ]; then
    echo "kept: $root"
  else
    rm -rf --one-file-system "$root"
  fi
}
chmod 755 "$root" # apt fetches as a user of its own
trap finish EXIT
trap 'exit 1' HUP INT TERM

start=$SECONDS
mirror=$(sed -nE 's/^URIs: *([^ ]+debian)\/?$/\1/p; s/^deb +([^ ]+debian)\/? +[a-z]+ +main.*/\1/p' /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null |
  head -n 1 || true)
debootstrap --variant=minbase --include=make,ca-certificates bookworm "$root" ${mirror:+"$mirror"} >"$root.log" 2>&1 || {
  tail -n 20 "$root.log" >&2
  exit 1
}
rm -f "$root.log"
echo "fresh.sh: a bare Debian $(cat "$root/etc/debian_version") in $((SECONDS - start)) s"

cp /etc/resolv.conf "$root/etc/resolv.conf"
cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
cp /etc/pip.conf "$root/etc/pip.conf" 2>/dev/null || true
cp "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$root/root/certificates.crt"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mkdir "$root/root/noether"
git archive HEAD | tar -x -C "$root/root/noether"

environment=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM="${TERM:-dumb}"
  PIP_CERT=/root/certificates.crt SSL_CERT_FILE=/root/certificates.crt)
while IFS= read -r setting; do environment+=("$setting"); done < <(env | grep -E '^(PIP_(INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|DEFAULT_TIMEOUT)|https?_proxy|no_proxy)=' || true)

status=0
for command in "$@"; do
  start=$SECONDS
  echo "fresh.sh: $command"
  if chroot "$root" env -i "${environment[@]}" sh -c "cd /root/noether && $command" </dev/null; then
    echo "fresh.sh: $command took $((SECONDS - start)) s"
  else
    echo "fresh.sh: $command failed after $((SECONDS - start)) s" >&2
    status=1
  fi
done
exit $status
