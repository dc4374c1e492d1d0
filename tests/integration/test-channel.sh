#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# daemon/guest on real virtio-serial ports: an agent, no agent, a channel that another holds, an
# agent that dies, a guest that starts again.
# shellcheck disable=SC2317,SC2016 # check calls the functions, the guest expands what it is told

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab.sh
. tests/lab/lab.sh
# shellcheck source=tests/tap.sh
. tests/tap.sh
lab_enter "$@"


on_failure() { tail -n 4 "$LAB_DIR"/log/watch-*; }

# watch WHO GUEST: a watcher of the guest's channel.
watch()
{
	local log=$LAB_DIR/log/watch-$1.log fd
	mkfifo "$LAB_DIR/ask-$1"
	: >"$log"
	"$LAB_BUILD/tests/integration/channel-watch" "$LAB_DIR/guest/$2/agent.sock" \
		<"$LAB_DIR/ask-$1" >"$log" 2>&1 &
	exec {fd}>"$LAB_DIR/ask-$1"
	asks[$1]=$fd
	froms[$1]=1
}

mark()
{
	froms[$1]=$(($(wc -l <"$LAB_DIR/log/watch-$1.log") + 1))
}

ask()
{
	mark "$1"
	echo "$2" >&"${asks[$1]}"
}

said()
{
	tail -n "+${froms[$1]}" "$LAB_DIR/log/watch-$1.log" | grep -Eq -- "$2"
}

# heard WHO PATTERN [SECONDS]
heard()
{
	lab_until "${3:-5}" said "$1" "$2"
}

another_boot()
{
	[ -n "$boot" ] && said second '^hello new=1 boot=[0-9a-f]+ ' &&
		! said second "^hello new=1 $boot "
}

declare -A asks froms
lab_start
lab_guest one memory=256 swap=0
lab_guest mute memory=128 swap=0 agent=no

watch first one
check an-agent-says-hello heard first '^hello new=1 boot=[0-9a-f]+ release=6\.12' 60
check the-link-is-up said first '^link up'
check samples-come heard first '^sample cause=0 interval=1000 total=[1-9]'
ask first 'rate 200'
check the-rate-is-changed heard first '^result .*type=rate status=0'
check the-rate-is-in-force heard first '^sample .*interval=200'
ask first sample
check a-sample-comes-on-demand heard first '^sample cause=1'
ask first "shed $((8 << 20))"
check a-shed-is-answered heard first '^result .*type=shed status=' 10

watch second one
check a-channel-that-another-holds-is-busy heard second '^link busy' 15
mark first
check the-first-goes-on heard first '^sample'
mark second
ask first quit
# Its try to connect, and the agent's next hello, may each be seconds away.
check it-is-the-seconds-turn-then heard second '^hello new=1' 15

mark second
lab_tell one 'kill -9 $(pidof ballast-agent)'
check a-new-agent-is-a-new-session heard second '^hello new=1' 10

mark second
kill -STOP "$(lab_qemu_pid one)"
check silence-is-shown heard second '^link silent' 8
kill -CONT "$(lab_qemu_pid one)"
check its-end-is-shown heard second '^link up' 10
boot=$(grep -Eo 'boot=[0-9a-f]+' "$LAB_DIR/log/watch-second.log" | tail -n 1)

mark second
virsh -q destroy one >/dev/null
check a-guest-that-goes-is-a-lost-link heard second '^link connecting'
virsh -q create "$LAB_DIR/guest/one/domain.xml" >/dev/null
check a-guest-that-comes-again-is-found heard second '^hello new=1' 60
check with-another-boot-id another_boot

watch third mute
check no-agent-is-silence heard third '^link silent no ballast-agent' 7
ask third sample
check nothing-is-sent-to-nobody heard third '^sent seq=0 r=-107'
exit "$fail"
