#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Guests that lack something, and things that go wrong around them: each gets one clear line in the
# status, and the daemon goes on with the rest.
#
# shellcheck disable=SC2317 # functions are called by name
# shellcheck source=tests/lab/lab.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lab/lab.sh"
lab_enter "$@"
# shellcheck source=tests/tap.sh
. "$LAB_TREE/tests/tap.sh"

on_failure()
{
	lab_ctl status
	tail -n 10 "$LAB_DIR/log/ballastd.log"
}

# soon NAME CMD...: holds within 15 s.
soon()
{
	local name=$1
	shift
	check "$name" lab_until 15 "$@"
}

# guest NAME JQ VALUE: what the status says of a guest.
guest()
{
	[ "$(lab_ctl status --json | jq -r ".guests[] | select(.name == \"$1\") | $2")" = "$3" ]
}

host()
{
	[ "$(lab_ctl status --json | jq -r "$1")" = "$2" ]
}

actual()
{
	[ "$(virsh -q dommemstat "$1" | awk '$1 == "actual" { print $2 / 1024 }')" = "$2" ]
}

lines()
{
	[ "$(grep -c -E "$1" "$LAB_DIR/log/ballastd.log")" = "$2" ]
}

lab_start
lab_guest whole memory=256 -- lazyfree-hold --lazyfree 32 --cache 64
lab_guest noballoon memory=192 balloon=no
lab_guest silent memory=192 agent=no
lab_guest noport memory=192 agent=noport
lab_guest noreport memory=192 reporting=off
lab_guest bare memory=192 balloon=no agent=noport
lab_guest stock memory=256 append=ballast.kernel=stock -- lazyfree-hold --lazyfree 48 --cache 64
lab_guest vanishing memory=192
lab_guest other memory=192
lab_wait_work whole && lab_wait_work stock || exit 1

cat >"$LAB_DIR/ballast.yaml" <<-EOF
	host:
	  mode: act
	  budget: 4GiB
	  intervals:
	    round: 500ms
	defaults:
	  boot_grace: 1s
	  min: 64MiB
	guests:
	  - name: other
	    manage: no
EOF
lab_daemon "$LAB_DIR/ballast.yaml"
soon all-guests-are-found host '.guests | length' 9
soon whole-guest-is-settled guest whole .state idle
soon whole-guest-has-an-agent guest whole .agent up
check without-balloon-is-said guest noballoon '.obstacles[0]' no-balloon
soon without-balloon-and-agent-is-excluded guest bare .reason no-balloon
soon without-agent-in-the-guest-is-said guest silent .agent silent
soon without-port-is-said guest noport .agent none
check without-reporting-is-known guest noreport .reporting false
soon unmanaged-is-left-alone guest other .reason unmanaged
soon an-unpatched-kernel-has-an-agent guest stock .agent up
check an-unpatched-kernel-is-one-line lines 'stock: agent .* on kernel .*, without count of lazyfree' 1
check a-patched-kernel-lacks-nothing lines 'whole: agent [^ ]* on kernel [^ ]*$' 1
check an-unpatched-kernel-counts-no-loss-of-text guest stock .stats.steal_exec null
check an-unpatched-kernel-cannot-take-lazyfree-first \
	guest stock '.capabilities | index("lazyfree_first")' null

virsh -q destroy vanishing
soon a-guest-that-vanishes-is-gone host '.guests | length' 8
check a-guest-that-vanishes-is-one-line lines 'vanishing: gone' 1

lab_guest late memory=192
soon a-guest-that-comes-is-found host '.guests | length' 9
# Beside eight others it takes its time to boot.
lab_wait_line late '^init: ' 120 || exit 1
soon a-guest-that-comes-has-its-agent guest late .agent up

kill -STOP "$(lab_qemu_pid silent)"
# What is younger than that came after the stop.
sleep 5
check a-stuck-qemu-blocks-nobody guest whole '.ages.balloon_us < 5000000' true
check a-stuck-qemu-does-not-block-the-agents guest whole '.ages.stats_us < 5000000' true
kill -CONT "$(lab_qemu_pid silent)"
soon a-qemu-that-wakes-is-back guest silent '.ages.balloon_us < 3000000' true

virsh -q setmem whole 200M --live
soon a-foreign-balloon-is-seen guest whole .reason foreign
soon a-foreign-balloon-takes actual whole 200
sleep 2
check a-foreign-balloon-is-not-fought actual whole 200
virsh -q setmem whole 256M --live

touch /run/ballast/freeze
soon the-freeze-file-stops-all guest whole .reason frozen
rm /run/ballast/freeze

kill -KILL "$LAB_LIBVIRTD"
soon a-libvirtd-that-died-is-said host .hypervisor_connected false
lab_start_libvirtd
soon a-libvirtd-that-is-back-is-used host .hypervisor_connected true
soon its-guests-are-found-again host '.guests | length' 9
check the-agents-were-not-lost guest whole .agent up

kill -TERM "$LAB_DAEMON"
wait "$LAB_DAEMON"
check a-stop-is-clean [ $? = 0 ]
virsh -q setmem late 128M --live
soon a-guest-without-a-daemon-is-made-small actual late 128
"$LAB_BUILD/ballastctl" release --direct --uri "$LAB_URI"
soon release-without-a-daemon-gives-all-back actual late 192

exit $fail
