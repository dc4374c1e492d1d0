#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# page_reporting_delay_ms: what a guest frees reaches the host sooner with a short delay. The two
# delays take turns in one guest, and only their ratio counts. page_reporting_budget: 0 keeps from the
# host what is freed, however short the delay, and 16 gives it back at once, however long it is.
# pgreported counts what has gone.

# shellcheck source=tests/lab/lab.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lab/lab.sh"
lab_enter "$@"
# shellcheck source=tests/tap.sh
. "$LAB_TREE/tests/tap.sh"

parameters=/sys/module/page_reporting/parameters
shed_mib=16

now_ms()
{
	echo $(($(date +%s%N) / 1000000))
}

# KiB that the guest's QEMU holds.
held()
{
	awk '/^RssAnon:/ { print $2 }' "/proc/$qemu/status"
}

# set_parameter NAME VALUE
set_parameter()
{
	lab_ask lazy "echo $2 >$parameters/page_reporting_$1" >/dev/null
}

# Free pages in the guest.
reclaim()
{
	lab_ask lazy "echo '${shed_mib}M swappiness=0' >/sys/fs/cgroup/memory.reclaim" >/dev/null
}

# are_gone BEFORE PERCENT: of the pages freed, has the host got back so much since it was BEFORE?
are_gone()
{
	[ $(($1 - $(held))) -ge $((shed_mib * 1024 * $2 / 100)) ]
}

# Pages that the guest has reported, as it says itself.
reported()
{
	lab_ask lazy 'grep ^pgreported /proc/vmstat' | awk '{ print $2 }'
}

# shed DELAY: milliseconds from the end of a reclaim until 90 % of it is gone from the host.
shed()
{
	local begin before end
	set_parameter delay_ms "$1"
	sleep 2
	before=$(held)
	reclaim
	begin=$(now_ms)
	end=$((begin + 6000))
	until are_gone "$before" 90; do
		[ "$(now_ms)" -lt "$end" ] || break
		sleep 0.01
	done
	echo $(($(now_ms) - begin))
}

# Free pages while reporting is stopped, wait for many times the delay, and let it go on in one pass.
stop_and_go()
{
	local before end
	set_parameter delay_ms 100
	set_parameter budget 0
	sleep 1
	before=$(held)
	reclaim
	end=$(($(now_ms) + 4000))
	kept=yes
	while [ "$(now_ms)" -lt "$end" ]; do
		! are_gone "$before" 10 || kept=no
		sleep 0.05
	done
	set_parameter delay_ms 60000
	set_parameter budget 16
	back=no
	! until_true 10 are_gone "$before" 90 || back=yes
}

# median NUMBER...: of five
median()
{
	printf '%s\n' "$@" | sort -n | sed -n 3p
}

lab_start
lab_guest lazy memory=384 swap=0 -- lazyfree-hold --lazyfree 200 --cache 16 --anon 16 --seed 2
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

# Freed pages that stay in the per-CPU lists are not reported: keep those lists short.
lab_ask lazy "echo 1000 >/proc/sys/vm/percpu_pagelist_high_fraction" >/dev/null
short=()
long=()
begin_reported=$(reported)
for _ in 1 2 3 4 5; do
	short+=("$(shed 100)")
	long+=("$(shed 2000)")
done
pages=$(($(reported) - begin_reported))
echo "# ms at 100: ${short[*]}; at 2000: ${long[*]}"
check a-short-delay-brings-memory-to-the-host-sooner \
	test $(($(median "${short[@]}") * 3)) -lt "$(median "${long[@]}")"
echo "# $pages pages reported of $((10 * shed_mib * 256)) that were shed"
check what-reaches-the-host-is-counted test "$pages" -ge $((10 * shed_mib * 256 * 9 / 10))
check a-short-delay-brings-it-within-a-second test "$(median "${short[@]}")" -lt 1000
stop_and_go
check a-budget-of-nothing-keeps-what-is-freed test "$kept" = yes
check a-budget-starts-a-pass-whatever-the-delay test "$back" = yes
exit $fail
