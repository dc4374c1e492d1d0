#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# page_reporting_delay_ms: what a guest frees reaches the host sooner with a short delay. The two
# delays take turns in one guest, and only their ratio counts.

# shellcheck source=tests/lab/lab.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lab/lab.sh"
lab_enter "$@"

parameters=/sys/module/page_reporting/parameters
shed_mib=16
fail=0

check()
{
	local name=$1
	shift
	if "$@"; then
		echo "ok $name"
	else
		echo "not ok $name - $*"
		fail=1
	fi
}

now_ms()
{
	echo $(($(date +%s%N) / 1000000))
}

# KiB that the guest's QEMU holds.
held()
{
	awk '/^RssAnon:/ { print $2 }' "/proc/$qemu/status"
}

# shed DELAY: milliseconds from the end of a reclaim until 90 % of it is gone from the host.
shed()
{
	local begin before end
	lab_ask lazy "echo $1 >$parameters/page_reporting_delay_ms" >/dev/null
	sleep 2
	before=$(held)
	lab_ask lazy "echo '${shed_mib}M swappiness=0' >/sys/fs/cgroup/memory.reclaim" >/dev/null
	begin=$(now_ms)
	end=$((begin + 6000))
	until [ $((before - $(held))) -ge $((shed_mib * 1024 * 9 / 10)) ]; do
		[ "$(now_ms)" -lt "$end" ] || break
		sleep 0.01
	done
	echo $(($(now_ms) - begin))
}

lab_start
lab_guest lazy -- lazyfree-hold --lazyfree 144 --cache 16 --anon 16 --seed 2
lab_wait_work lazy || exit 1
qemu=$(cat /run/libvirt/qemu/lazy.pid)

check the-default-is-two-seconds \
	test "$(lab_ask lazy "cat $parameters/page_reporting_delay_ms")" = 2000
check less-than-ten-milliseconds-is-refused \
	test "$(lab_ask lazy "echo 9 >$parameters/page_reporting_delay_ms; echo \$?" | tail -n 1)" = 1
check more-than-a-minute-is-refused \
	test "$(lab_ask lazy "echo 60001 >$parameters/page_reporting_delay_ms; echo \$?" | tail -n 1)" = 1
lab_ask lazy "echo 2 >$parameters/page_reporting_order; echo 2 >/proc/sys/vm/lazyfree_first" \
	>/dev/null

# The per-CPU lists have grown while the guest filled its memory. What the first reclaim frees goes
# there and is reported only when they have shrunk again.
lab_ask lazy "echo 10 >$parameters/page_reporting_delay_ms;
	echo '${shed_mib}M swappiness=0' >/sys/fs/cgroup/memory.reclaim" >/dev/null
sleep 6
short=0
long=0
for _ in 1 2 3; do
	short=$((short + $(shed 100)))
	long=$((long + $(shed 2000)))
done
check "a-short-delay-brings-memory-to-the-host-sooner" test $((short * 3)) -lt "$long"
check "a-short-delay-brings-it-within-a-second" test "$short" -lt 3000
echo "# mean of three: $((short / 3)) ms at 100, $((long / 3)) ms at 2000"
exit $fail
