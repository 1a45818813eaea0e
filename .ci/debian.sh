#!/usr/bin/env bash
# Builds this checkout in a root of another Debian release and runs a part of the suite there, as on a fresh machine.
#
#   .ci/debian.sh SUITE FILTER       e.g. trixie 'conv_choice/*'
#
# The root, with the packages, stays in the cache for the next time. Exits 77, with the reason, where no root can be made.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=$1 filter=$2
root=${XDG_CACHE_HOME:-$HOME/.cache}/rematch/debian-$suite
cannot() { echo "no root of Debian $suite: $1"; exit 77; }

[ "$(id -u)" = 0 ] || cannot "only root can make one"
[ -e "$root/made" ] || {
    command -v debootstrap >/dev/null || { apt-get update && apt-get install -y --no-install-recommends debootstrap; } >/dev/null 2>&1 ||
        cannot "debootstrap is missing"
    rm -rf "$root"
    mkdir -p "$root"
    debootstrap --variant=minbase "$suite" "$root" >"$root.log" 2>&1 || cannot "$(tail -n 1 "$root.log")"
    touch "$root/made"
}
mkdir -p "$root/proc" "$root/dev"
mount -t proc proc "$root/proc" 2>/dev/null || cannot "/proc cannot be mounted"
mount --rbind /dev "$root/dev" 2>/dev/null || { umount "$root/proc"; cannot "/dev cannot be mounted"; }
mount --make-rslave "$root/dev"
trap 'umount -R "$root/dev" "$root/proc"' EXIT
cp /etc/resolv.conf "$root/etc/resolv.conf"
rm -rf "$root/rematch"
mkdir "$root/rematch"
git archive HEAD | tar -x -C "$root/rematch"
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root CI=true chroot "$root" sh -c '
    set -e
    command -v make >/dev/null || { apt-get update -q; DEBIAN_FRONTEND=noninteractive apt-get install -y -q make; }
    cd /rematch
    make
    make test FILTER="$1"' sh "$filter"
