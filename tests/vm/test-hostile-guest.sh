#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Guests of ill will on real channels: nothing that they send makes the daemon exit, grow, block or
# fill the log, nor costs their neighbour what it is entitled to.
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
	tail -n 20 "$LAB_DIR/log/ballastd.log"
}

# guest NAME JQ: what the status says of a guest.
guest()
{
	lab_ctl status --json | jq -r ".guests[] | select(.name == \"$1\") | $2"
}

cpu()
{
	awk '{ print $14 + $15 }' "/proc/$LAB_DAEMON/stat"
}

private_kib()
{
	awk '$1 == "RssAnon:" { print $2 }' "/proc/$LAB_DAEMON/status"
}

# Milliseconds until the slowest of ten answers, the start of the command included.
slowest()
{
	local begin end worst=0
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		begin=$(date +%s%N)
		lab_ctl status --json >/dev/null
		end=$(date +%s%N)
		[ $(((end - begin) / 1000000)) -le "$worst" ] || worst=$(((end - begin) / 1000000))
	done
	echo "$worst"
}

# While the host is over its budget cold cache may go before others have been brought down to what
# they are entitled to, but no more than a quarter.
keeps_its_own()
{
	local now=$1 entitled=$2 least=$had
	[ "$entitled" -ge "$least" ] || least=$entitled
	[ "$now" -ge $((least * 3 / 4)) ]
}

# Has the neighbour as much as before any attack?
has_it_all()
{
	[ "$(guest neighbour .actual)" -ge $((192 << 20)) ]
}

# attack MODE...: guests of these modes, and a host that is short; what comes of it.
attack()
{
	local mode modes=$* lines ticks seconds=12
	for mode in "$@"; do
		lab_guest "$mode" memory=192 swap=0 agent=no -- hostile "$mode" --anon 56 --cache 24
	done
	for mode in "$@"; do
		lab_wait_work "$mode" || exit 1
	done
	sleep 3
	had=$(guest neighbour .footprint)
	host=$(lab_ctl status --json | jq .footprint)
	set_budget $((host * 85 / 100))
	lines=$(wc -l <"$LAB_DIR/log/ballastd.log")
	ticks=$(cpu)
	sleep $seconds
	ticks=$((($(cpu) - ticks) * 1000 / $(getconf CLK_TCK) / seconds))
	lines=$(($(grep -c . "$LAB_DIR/log/ballastd.log") - lines))
	check "${modes// /-}-does-not-end-it" kill -0 "$LAB_DAEMON"
	check "${modes// /-}-does-not-make-it-busy" [ "$ticks" -lt 60 ]
	check "${modes// /-}-does-not-make-it-grow" [ "$(private_kib)" -lt 8192 ]
	check "${modes// /-}-does-not-fill-the-log" [ "$lines" -lt 80 ]
	check "${modes// /-}-does-not-make-it-slow" [ "$(slowest)" -lt 1000 ]
	check "${modes// /-}-leaves-the-neighbour-its-own" keeps_its_own \
		"$(guest neighbour .footprint)" "$(guest neighbour .entitlement)"
	echo "# ${modes// /, }: $ticks/1000 of a core, $(private_kib) KiB, $lines lines, H" \
		"$(($(guest neighbour .footprint) >> 20)) of $((had >> 20)) MiB, entitled to" \
		"$(($(guest neighbour .entitlement) >> 20)) MiB"
	for mode in "$@"; do
		virsh -q destroy "$mode"
	done
	set_budget $((4 << 30))
	check "the-neighbour-has-it-all-after-${modes// /-}" lab_until 20 has_it_all
}

set_budget()
{
	cat >"$LAB_DIR/ballast.d/50-budget.yaml" <<-EOF
		host:
		  budget: $(($1 >> 10))KiB
	EOF
	kill -HUP "$LAB_DAEMON"
}

lab_start
lab_guest neighbour memory=192 swap=0 -- cold-cache --cache 48 --hot 16 --anon 24
lab_wait_work neighbour || exit 1
mkdir -p "$LAB_DIR/ballast.d"
cat >"$LAB_DIR/ballast.yaml" <<-EOF
	host:
	  mode: act
	  budget: 4GiB
	  intervals:
	    round: 500ms
	defaults:
	  boot_grace: 4s
	  min: 48MiB
EOF
lab_daemon "$LAB_DIR/ballast.yaml"
check the-neighbour-has-an-agent lab_until 15 lab_agents 1
attack flood sessions noise
attack wraps pressure results
attack text half slow
kill -TERM "$LAB_DAEMON"
wait "$LAB_DAEMON"
check a-stop-is-clean [ $? = 0 ]
exit "$fail"
