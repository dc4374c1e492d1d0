#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# image.sh BUILD: make BUILD/lab/guest.img, the root disk that all guests of the lab share read-only:
# busybox, the agent, the workloads, a file of code and a file of cold data. Made by mke2fs from a
# folder, so that nothing has to be mounted.

set -euo pipefail

TEXT_MIB=48
COLD_MIB=352

build=$1
here=$(cd "$(dirname "$0")" && pwd)
out=$build/lab/guest.img
root=$(mktemp -d "${TMPDIR:-/tmp}/ballast-image.XXXXXX")
trap 'rm -rf "$root"' EXIT

mkdir -p "$build/lab" "$root"/{bin,sbin,dev,proc,sys,tmp,run,data,etc}
cp "$(command -v busybox)" "$root/bin/busybox"
file=$(head -c 4096 "$root/bin/busybox" | grep -c -a 'ld-linux' || true)
[ "$file" = 0 ] || { echo "image: busybox is not static: install busybox-static" >&2; exit 1; }
for tool in $("$root/bin/busybox" --list); do
	[ "$tool" = busybox ] || ln -s busybox "$root/bin/$tool"
done
cp "$here/init" "$root/init"
for program in "$build"/workloads/*; do
	case $program in
	*.d | *.o) ;;
	*) install -s -m 755 "$program" "$root/bin/" ;;
	esac
done
if [ -x "$build/ballast-agent" ]; then
	install -s -m 755 "$build/ballast-agent" "$root/bin/"
else
	# A guest without an agent; the lab can be used before there is one.
	printf '#!/bin/sh\nexec sleep 100000\n' >"$root/bin/ballast-agent"
	chmod 755 "$root/bin/ballast-agent"
fi
"$build/workloads/exec-rounds" --generate "$TEXT_MIB" "$root/data/text"
"$build/workloads/exec-rounds" --generate "$COLD_MIB" "$root/data/cold"
rm -f "$out" "$out.tmp"
size=$(($(du -sm "$root" | cut -f1) * 21 / 20 + 16))
mke2fs -q -F -t ext4 -O ^has_journal -m 0 -d "$root" "$out.tmp" "${size}M" >/dev/null
mv "$out.tmp" "$out"
