#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# daemon/hyp on a private libvirt daemon and real QEMUs: what it says of guests, what it does to
# them, and that nothing hangs with what hangs.
# shellcheck disable=SC2317 # check calls the functions

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab.sh
. tests/lab/lab.sh
# shellcheck source=tests/tap.sh
. tests/tap.sh
lab_enter "$@"

log=$LAB_DIR/log/watch.log

on_failure() { tail -n 8 "$log"; }

not()
{
	! "$@"
}

# watch ARGS...: start a watcher; its requests go to file descriptor 7.
watch()
{
	rm -f "$LAB_DIR/requests"
	mkfifo "$LAB_DIR/requests"
	: >"$log"
	"${WATCH:-$LAB_BUILD/tests/integration/hyp-watch}" "$@" <"$LAB_DIR/requests" >"$log" 2>&1 &
	watcher=$!
	exec 7>"$LAB_DIR/requests"
	mark
}

unwatch()
{
	echo quit >&7
	exec 7>&-
	timeout 10 tail -s 0.1 --pid="$watcher" -f /dev/null
	wait "$watcher"
}

# What is heard counts from the last mark or request on.
mark()
{
	from=$(($(wc -l <"$log") + 1))
}

request()
{
	mark
	echo "$*" >&7
}

said()
{
	tail -n "+$from" "$log" | grep -Eq -- "$1"
}

heard()
{
	lab_until "${2:-5}" said "$1"
}

# number PATTERN KEY: the number of KEY=... in the last line that matches.
number()
{
	tail -n "+$from" "$log" | grep -E "$1" | tail -n 1 | sed -n "s/.* $2=\([0-9]*\).*/\1/p"
}

pause_qemu()
{
	kill -STOP "$(lab_qemu_pid "$1")"
}

resume_qemu()
{
	kill -CONT "$(lab_qemu_pid "$1")"
}

# rounds N: ask for statistics N times, waiting for the end of each.
rounds()
{
	local i
	for ((i = 0; i < $1; i++)); do
		request stats
		heard ' stats-done ' 10 || return 1
	done
}

returned()
{
	rounds 1
	grep " suspect $1 " "$log" | tail -n 1 | grep -q ' suspect=0 '
}

five_rounds()
{
	local i
	for i in 1 2 3 4 5; do
		rounds_show "$1" || return 1
	done
}

rounds_show()
{
	rounds 1 && said " stats $1 .*complete=1 "
}

MIB=1048576
lab_start
lab_guest one memory=256 swap=0
lab_guest two memory=192 swap=0
lab_guest bare memory=128 swap=0 balloon=no agent=noport
one=$(virsh domuuid one | head -n 1)
two=$(virsh domuuid two | head -n 1)
lab_wait_line one '^init: ' 60 || exit 1

# --- Finding guests -------------------------------------------------------------------------------

watch
check it-connects heard '^[0-9]+ connected .*text=qemu:///system'
check it-lists-all-guests-before-it-is-synced heard ' synced '
check a-guest-is-described said " guest one .*maximum=$((256 * MIB)) .*autodeflate=1 reporting=1 tcg=1"
check its-qemu-is-the-one-of-libvirts-file said " guest one pid=$(lab_qemu_pid one) "
check its-channel-is-found said " guest one .*channel=$LAB_DIR/guest/one/agent.sock "
check a-guest-without-balloon-has-the-obstacle said " guest bare .*obstacles=1 "
check a-guest-without-port-has-no-channel said " guest bare .*channel= "

# --- Statistics and balloon -----------------------------------------------------------------------

check statistics-come rounds 1
check statistics-are-complete said " stats one phase=running complete=1 actual=$((256 * MIB)) "
check the-first-statistics-are-not-taken-for-new said ' stats one .*updated=0 '
period_is()
{
	virsh dumpxml one | grep -q "<stats period='$1'/>"
}
virsh dommemstat one --period 7 --live >/dev/null
request list
heard ' synced '
rounds 1
check another-statistics-period-is-set-back lab_until 3 period_is 1
fresh()
{
	rounds 1
	said ' stats one .*updated=1 .*usable=[0-9]+ unused=[0-9]+'
}
check statistics-that-change-are-new lab_until 6 fresh

request balloon "$one" $((160 * MIB))
check a-target-is-answered heard " call-done one target=$((160 * MIB)) status=ok"
check the-balloon-follows heard " balloon one actual=$((160 * MIB)) " 20
rounds 1
check what-is-seen-is-what-was-asked test "$(number ' stats one ' actual)" = $((160 * MIB))
request balloon "$one" $((512 * MIB))
check a-target-above-the-maximum-is-refused heard ' call-done one .*status=EINVAL .*text=.+'
request balloon 00000000-0000-0000-0000-000000000001 1
check an-unknown-guest-is-refused heard '^refused ENOENT'
request balloon "$one" $((256 * MIB))
check the-balloon-goes-back heard " balloon one actual=$((256 * MIB)) " 20

# --- Events ---------------------------------------------------------------------------------------

mark
virsh -q suspend one >/dev/null
check a-pause-is-told heard ' phase one phase=paused '
virsh -q resume one >/dev/null
check a-resume-is-told heard ' phase one phase=running '
mark
lab_guest three memory=128 swap=0
check a-new-guest-is-told-as-started heard ' guest three .*started=1 '
mark
virsh -q destroy three >/dev/null
check a-guest-that-goes-is-told heard ' guest-gone three .*text=destroyed'
# The lab's guests end when they reboot.
sed 's/on_reboot>destroy/on_reboot>restart/' "$LAB_DIR/guest/three/domain.xml" >"$LAB_DIR/three.xml"
mark
virsh -q create "$LAB_DIR/three.xml" >/dev/null
heard ' guest three '
virsh -q reset three >/dev/null
check a-reset-is-told heard ' reboot three '
mark
virsh -q save three "$LAB_DIR/three.save" >/dev/null
check a-saved-guest-is-gone heard ' guest-gone three .*text=saved'
check a-save-is-told said ' phase three phase=(saving|migrating) '
mark
virsh -q restore "$LAB_DIR/three.save" >/dev/null
check a-restored-guest-does-not-boot heard ' guest three .*started=0 '
virsh -q destroy three >/dev/null

# --- A QEMU that hangs ----------------------------------------------------------------------------

pause_qemu two
request stats
check the-others-are-told-though-one-hangs heard ' stats one .*complete=1 ' 3
check the-round-ends heard ' stats-done .*code=-' 3
check the-one-that-hangs-is-suspect heard ' suspect two suspect=1 '
check later-rounds-go-on-with-the-others five_rounds one
request balloon "$one" $((224 * MIB))
check the-others-can-be-acted-on heard " call-done one .*status=ok"
request balloon "$two" $((160 * MIB))
check the-suspect-is-left-alone heard '^refused EBUSY'
mark
resume_qemu two
check its-return-is-told lab_until 5 returned two

# The call that hung at one guest goes on to the others when it comes back, and holds each of them
# for a moment: no reason to suspect them.
come_and_go()
{
	local i
	for ((i = 0; i < 20; i++)); do
		pause_qemu two
		request stats
		heard ' suspect two suspect=1 ' || return 1
		resume_qemu two
		lab_until 5 returned two || return 1
		heard ' stats-done ' || return 1
	done
}
mark
coming_from=$from
check the-one-comes-and-goes come_and_go
from=$coming_from
check nobody-else-is-suspect not said ' suspect (one|bare) suspect=1 '

pause_qemu one
request balloon "$one" $((192 * MIB))
check a-call-that-hangs-is-answered-at-its-deadline heard \
	' call-done one .*status=ETIMEDOUT took=[2-9][0-9]{3}ms' 10
check who-hangs-in-a-call-is-suspect heard ' suspect one suspect=1 '
check statistics-leave-it-out rounds_show two
mark
resume_qemu one
check the-late-answer-frees-it heard ' suspect one suspect=0 ' 5
late_from=$from
rounds 1
from=$late_from
check there-is-no-second-answer not said ' call-done one '

# --- A guest that vanishes between two calls ------------------------------------------------------

lab_guest four memory=128 swap=0
heard ' guest four '
four=$(virsh domuuid four | head -n 1)
mark
kill -KILL "$(lab_qemu_pid four)"
echo "balloon $four $((100 * MIB))" >&7
check a-request-to-a-vanished-guest-is-answered heard \
	"^refused ENOENT|call-done (four )?target=$((100 * MIB)) status=E"
check its-end-is-told heard ' guest-gone four '
check the-rest-goes-on rounds 1

# --- libvirtd dies and comes back -----------------------------------------------------------------

mark
kill -KILL "$LAB_LIBVIRTD"
check the-loss-is-told heard ' disconnected .*text=.+' 3
request stats
check without-a-connection-requests-are-refused heard '^refused ENOTCONN'
mark
lab_start_libvirtd
check it-connects-again heard ' connected ' 6
check the-guests-are-found-again heard ' guest one .*maximum=' 6
check it-is-synced-again heard ' synced '
check no-guest-was-lost not said ' guest-gone (one|two) '
check it-works-as-before rounds 1

# --- libvirtd hangs -------------------------------------------------------------------------------

mark
kill -STOP "$LAB_LIBVIRTD"
request stats
check a-libvirtd-that-hangs-is-given-up heard " disconnected .*text=libvirt doesn't answer any more" 30
check the-round-ends-with-it said ' stats-done '
mark
kill -CONT "$LAB_LIBVIRTD"
check it-is-found-when-it-answers-again heard ' synced ' 10
check statistics-come-again rounds 1
unwatch

# --- Observing only -------------------------------------------------------------------------------

watch qemu:///system read-only
check a-read-only-connection-does heard ' synced '
check it-sees-statistics rounds 1
request balloon "$one" $((128 * MIB))
check it-cannot-act heard '^refused EROFS'
pause_qemu two
request stats
check it-sees-one-that-hangs heard ' suspect two suspect=1 '
begin=$SECONDS
unwatch
# It waits 2 s for the call, and at most 2 s more for its event loop.
check it-ends-though-a-call-hangs test $((SECONDS - begin)) -le 6
resume_qemu two

exit "$fail"
