#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# `ballastctl release --direct` on a private libvirt daemon with real QEMUs: everybody gets all of
# it back, also when one QEMU stands still.
# shellcheck disable=SC2317 # check calls the functions

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab.sh
. tests/lab/lab.sh
# shellcheck source=tests/tap.sh
. tests/tap.sh
lab_enter "$@"

out=$LAB_DIR/release.out

on_failure() { tail -n 20 "$LAB_DIR"/release*.out; }

# release [FILE]: what it says goes to $out or to another file.
release()
{
	"$LAB_BUILD/ballastctl" release --direct --uri "$LAB_URI" >"${1:-$out}" 2>&1
	rc=$?
}

said() { grep -qxF -- "$1" "$out"; }

actual_is()
{
	[ "$(virsh dommemstat "$1" | awk '$1 == "actual" { print $2 }')" = $(($2 * 1024)) ]
}

lab_start
touch "$out"
release
check no-guests-is-good said "no domain is running at $LAB_URI"
check no-guests-exits-with-0 test "$rc" = 0

lab_guest one memory=192 swap=0
lab_guest two memory=192 swap=0
lab_guest bare memory=128 swap=0 balloon=no agent=noport
lab_wait_line one '^init: ' 60 || exit 1
lab_wait_line two '^init: ' 60 || exit 1
# Persistent, so that there is something to be left alone.
virsh dumpxml one >"$LAB_DIR/one.xml"
virsh -q define "$LAB_DIR/one.xml"
for guest in one two; do
	virsh -q setmem "$guest" 128M --live
	check "$guest-is-made-small" lab_until 20 actual_is "$guest" 128
done
virsh -q setmem one 144M --config

release
check a-guest-is-released said 'one: balloon set to 192 MiB'
check a-guest-without-balloon-has-it-all said 'bare: has all of its 128 MiB'
check all-released-exits-with-0 test "$rc" = 0
check the-guest-has-it-all lab_until 20 actual_is one 192
check the-other-too lab_until 20 actual_is two 192
check what-it-starts-with-next-time-stays \
	test "$(virsh dumpxml one --inactive | sed -n 's/.*<currentMemory[^>]*>\([0-9]*\).*/\1/p')" = 147456

for guest in one two; do
	virsh -q setmem "$guest" 128M --live
	check "$guest-is-made-small-again" lab_until 20 actual_is "$guest" 128
done
kill -STOP "$(lab_qemu_pid two)"
release &
pid=$!
check others-do-not-wait-for-one-that-hangs lab_until 10 actual_is one 192
# Another that comes meanwhile waits behind the first for the domain's job.
release "$LAB_DIR/release-beside.out"
wait "$pid"
kill -CONT "$(lab_qemu_pid two)"
check one-that-hangs-is-named-with-the-reason \
	grep -Eq '^ballastctl: two: not released: (no answer|.*imed out)' "$out"
check one-that-waits-behind-it-too \
	grep -Eq '^ballastctl: two: not released: (no answer|.*imed out)' "$LAB_DIR/release-beside.out"
check one-that-hangs-is-a-failure test "$rc" = 1

kill -TERM "$LAB_LIBVIRTD"
lab_until 10 test ! -e "/proc/$LAB_LIBVIRTD" || true
release
check without-libvirt-it-says-so grep -q "^ballastctl: $LAB_URI: " "$out"
check without-libvirt-it-fails test "$rc" = 1
exit $fail
