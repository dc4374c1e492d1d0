#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The agent in real guests: what its numbers are worth, what it costs, and how soon it speaks.
# shellcheck disable=SC2016,SC2317 # single quotes are for the guest's shell; check() calls by name
# shellcheck source=tests/lab/lab.sh
. "$(dirname "$0")/../lab/lab.sh"
lab_enter "$@"
lab_start

talk=$LAB_BUILD/tests/integration/agent-talk
fail=0

# check NAME WHY CMD...: one line for each thing that must hold
check()
{
	local name=$1 why=$2
	shift 2
	if "$@"; then
		echo "ok $name"
	else
		echo "not ok $name - $why"
		fail=1
	fi
}

port()
{
	echo "$LAB_DIR/guest/$1/agent.sock"
}

# field LINE KEY: the value of KEY=VALUE in a line; -1 where it has none
field()
{
	local value
	value=$(sed -n "s/.*[ ^]$2=~\{0,1\}\([^ ]*\).*/\1/p" <<<" $1" | head -n 1)
	echo "${value:--1}"
}

# grown BEFORE AFTER KEY: by how much a number has grown; nothing, which is no number for what is to
# hold, where it is missing
grown()
{
	local before after
	before=$(field "$1" "$3")
	after=$(field "$2" "$3")
	[ "$before" -lt 0 ] || [ "$after" -lt 0 ] || echo $((after - before))
}

# agent_status NAME: pid, resident KiB and CPU ticks of the agent in a guest
agent_status()
{
	lab_ask "$1" 'p=$(pidof ballast-agent); echo $p $(grep VmRSS /proc/$p/status) $(cut -d" " -f14,15 /proc/$p/stat)'
}

# quietly CMD...: without its output
quietly()
{
	"$@" >/dev/null
}

# --- Numbers --------------------------------------------------------------------------------------

now_us()
{
	date +%s%6N
}

has_swapped()
{
	local line
	line=$("$talk" "$(port swapper)" hello ask | tail -n 1)
	[ $(($(field "$line" swap_total) - $(field "$line" swap_free))) -gt $((16 << 20)) ]
}

# has_summed_since US: the sum may be as old as its cost permits, a second or two with few processes
# and more on a busy host. Was it begun after that time? Sets the caller's line.
has_summed_since()
{
	local asked age
	asked=$(now_us)
	line=$("$talk" "$(port swapper)" hello ask | tail -n 1)
	age=$(field "$line" slow_age_us)
	[ "$age" -gt 0 ] && [ "$age" -lt $((asked - $1)) ]
}

# What is left in the swap cache after a swap-out has its entries, too, so the truth is between the
# space in use and that less the swap cache (and less the 64 slots that each CPU keeps in reserve);
# what each process maps is known exactly by its smaps.
swap_entries_are_those_of_the_swap_space()
{
	local line='' used cached entries smaps stopped
	lab_until 60 has_swapped
	stopped=$(lab_ask swapper 'sleep 10; kill -STOP $(pidof grow); sleep 1; grep "^State:" /proc/$(pidof grow)/status')
	check what-grows-is-stopped "$stopped" grep -q 'T (stopped)' <<<"$stopped"
	stopped=$(now_us)
	check swap-entries-are-summed-again "no sum was begun since then" \
		lab_until 60 has_summed_since "$stopped"
	smaps=$(lab_ask swapper "cat /proc/[0-9]*/smaps_rollup 2>/dev/null | awk '/^Swap:/ { n += \$2 } END { print n }'")
	used=$(($(field "$line" swap_total) - $(field "$line" swap_free) >> 10))
	cached=$(($(field "$line" swap_cached) >> 10))
	entries=$(($(field "$line" swap_entries) >> 10))
	echo "# swap used $used KiB, cached $cached KiB, entries $entries KiB, by smaps $smaps KiB, age $(field "$line" slow_age_us) us"
	check swap-space-is-in-use "only $used KiB" [ "$used" -gt 16384 ]
	check swap-entries-are-those-of-the-swap-space "$entries, not from $((used - cached)) to $used KiB" \
		[ "$entries" -ge $((used - cached - 512)) -a "$entries" -le "$used" ]
	check swap-entries-are-those-of-smaps "$entries, not $smaps KiB" \
		[ $((entries - smaps)) -le 64 -a $((smaps - entries)) -le 64 ]
}

lazyfree_is_that_of_smaps()
{
	local line smaps lazyfree
	smaps=$(lab_ask holder "sed -n 's/LazyFree: *\([0-9]*\) kB/\1/p' /proc/\$(pidof lazyfree-hold)/smaps_rollup")
	line=$("$talk" "$(port holder)" hello ask | tail -n 1)
	lazyfree=$(($(field "$line" lazyfree) >> 10))
	echo "# lazyfree $lazyfree KiB, by smaps $smaps KiB"
	check lazyfree-is-that-of-smaps "$lazyfree, not $smaps" \
		[ "$smaps" -gt 0 -a $((lazyfree - smaps)) -lt 2048 -a $((smaps - lazyfree)) -lt 2048 ]
}

# --- Actions --------------------------------------------------------------------------------------

shed_frees_what_was_asked_and_no_text()
{
	local line before after
	before=$("$talk" "$(port holder)" hello set=lazyfree_first:2 ask | tail -n 1)
	line=$("$talk" "$(port holder)" hello rate=100 set=lazyfree_first:2 "shed=$((64 << 20)),file" | tail -n 1)
	after=$("$talk" "$(port holder)" hello ask | tail -n 1)
	echo "# $line"
	check shed-frees-what-was-asked "$line" \
		[ "$(field "$line" status)" = 0 -a "$(field "$line" "done")" -ge $((60 << 20)) ]
	check shed-takes-lazyfree-first "$(field "$before" lazyfree) to $(field "$after" lazyfree)" \
		[ "$(grown "$before" "$after" lazyfree)" -le $((-56 << 20)) ]
	check shed-takes-no-text "$(field "$before" steal_exec) to $(field "$after" steal_exec)" \
		[ "$(grown "$before" "$after" steal_exec)" -le 64 ]
	check shed-does-not-swap "$(field "$before" swap_out) to $(field "$after" swap_out)" \
		[ "$(grown "$before" "$after" swap_out)" = 0 ]
}

shed_stops_where_it_would_hurt()
{
	local line text
	line=$("$talk" "$(port holder)" hello set=lazyfree_first:2 "shed=$((1 << 40)),file" | grep "asked=$((1 << 40))")
	echo "# $line"
	# Asked for a terabyte it takes what is cold, or stops when text begins to go.
	check shed-is-bounded-by-the-agent "$line" [ -n "$line" -a "$(field "$line" "done")" -lt $((256 << 20)) ]
	line=$("$talk" "$(port holder)" hello ask | tail -n 1)
	text=$(field "$line" steal_exec)
	check shed-without-bound-does-not-swap "$(field "$line" swap_out) pages swapped out" \
		[ "$(field "$line" swap_out)" = 0 ]
	check shed-without-bound-leaves-the-text "$text pages of text reclaimed" \
		[ "$text" -ge 0 -a "$text" -le 512 ]
}

# How much goes is the kernel's choice: with little text to spare the shed ends soon.
text_stays_when_anon_goes()
{
	local before after
	before=$("$talk" "$(port holder)" hello ask | tail -n 1)
	"$talk" "$(port holder)" hello set=lazyfree_first:2 "shed=$((1 << 30)),file,anon" | grep "asked=$((1 << 30))" | sed 's/^/# /'
	after=$("$talk" "$(port holder)" hello ask | tail -n 1)
	echo "# $(grown "$before" "$after" swap_out) pages swapped out"
	check text-stays-when-anon-goes "$(field "$before" steal_exec) to $(field "$after" steal_exec) pages" \
		[ "$(grown "$before" "$after" steal_exec)" -le 512 ]
}

own_shed_is_no_pressure()
{
	# To read so much is pressure itself, in a guest of this size; let it pass.
	lab_ask holder 'cat /data/cold >/dev/null' >/dev/null
	lab_until 60 quietly "$talk" "$(port holder)" hello quiet=3000
	check own-shed-is-no-pressure "a pressure frame came" \
		quietly "$talk" "$(port holder)" hello set=lazyfree_first:2 "shed=$((48 << 20)),file" quiet=2000
}

pressure_is_reported_at_once()
{
	local out=$LAB_DIR/pressure
	"$talk" "$(port swapper)" hello pressure=30000 sample >"$out" &
	local pid=$!
	# Read ahead, a page would be in the swap cache and still a swap entry.
	lab_ask swapper 'echo 0 >/proc/sys/vm/page-cluster; touch /tmp/grow' >/dev/null
	wait "$pid"
	echo "# $(grep '^pressure' "$out")"
	check pressure-is-reported "no frame in 30 s" grep -q '^pressure' "$out"
	check pressure-is-followed-by-a-sample "$(tail -n 1 "$out")" grep -q '^sample.*cause=2' "$out"
}

swappiness_is()
{
	[ "$(lab_ask holder cat /proc/sys/vm/swappiness)" = "$1" ]
}

# A lease that outlasts a look at the guest, and then one that ends soon.
own_settings_come_back()
{
	"$talk" "$(port holder)" hello welcome=120000 set=swappiness:7 >/dev/null
	check setting-is-set "not 7" swappiness_is 7
	"$talk" "$(port holder)" hello welcome=1000 ask >/dev/null
	check own-setting-comes-back "not 60" lab_until 15 swappiness_is 60
}

# --- Coming and going -----------------------------------------------------------------------------

hello_comes_to_every_host()
{
	local i line nonces=
	for i in 1 2 3 4 5; do
		line=$("$talk" "$(port holder)" hello sample | head -n 1)
		nonces+="$(field "$line" nonce) "
		[ "$i" -lt 3 ] || sleep 0.5
	done
	echo "# nonces $nonces"
	check hello-comes-to-every-host "$nonces" [ "$(wc -w <<<"${nonces//-1 /}")" = 5 ]
}

# another_agent PID: does an agent run that isn't this process?
another_agent()
{
	local pid
	pid=$(lab_ask holder pidof ballast-agent)
	[ -n "$pid" ] && [ "$pid" != "$1" ]
}

agent_that_was_killed_is_met_again()
{
	local before after pid
	before=$(field "$("$talk" "$(port holder)" hello sample | head -n 1)" nonce)
	pid=$(lab_ask holder 'p=$(pidof ballast-agent); kill -9 $p; echo $p')
	check agent-that-was-killed-runs-again "after $pid" lab_until 30 another_agent "$pid"
	after=$(field "$("$talk" "$(port holder)" hello sample | head -n 1)" nonce)
	check agent-that-was-killed-is-met-again "nonces $before $after" \
		[ "$before" != -1 -a "$after" != -1 -a "$after" != "$before" ]
}

# A tick falls on whoever runs when it is counted, and what the host takes from the guest's processor
# is counted as the guest's own: of two periods the better one is nearer to what the agent does.
without_host_it_sleeps()
{
	local before after ticks=
	for _ in 1 2; do
		before=$(agent_status holder)
		sleep 6
		after=$(agent_status holder)
		echo "# before: $before after: $after"
		# shellcheck disable=SC2086 # words
		set -- $before $after
		ticks=$((${11} + ${12} - $5 - $6))
		[ "$ticks" -gt 2 ] || break
	done
	check without-host-it-sleeps "used $ticks ticks in 6 s, twice" [ "$1" = "$7" -a "$ticks" -le 2 ]
	check agent-stays-under-one-and-a-half-mib "$9 KiB" [ "$9" -lt 1536 ]
}

# --- Cost -----------------------------------------------------------------------------------------

# cost_of GUEST PROCESSES: CPU time a sample with that many processes, and swap in use
cost_of()
{
	local line cost age
	lab_ask "$1" "n=\$(cat /proc/[0-9]*/status 2>/dev/null | grep -c VmSwap); while [ \$n -lt $2 ]; do sleep 10000 >/dev/null 2>&1 & n=\$((n + 1)); done" >/dev/null
	line=$("$talk" "$(port "$1")" hello sample sample count=20000 ask | tail -n 2)
	cost=$(field "${line%%$'\n'*}" a_sample_us)
	age=$(field "$line" slow_age_us)
	echo "# ${line%%$'\n'*}"
	echo "# measured: the agent with $(field "$line" processes) processes: $cost us of CPU a sample, swap entries $(field "$line" swap_entries) bytes, $age us old"
	check "sample-with-$2-processes-costs-little" "$cost us of CPU a sample" \
		[ "$cost" -ge 0 -a "$cost" -le 30000 ]
	check "entries-of-$2-processes-are-of-an-age" "$age us" \
		[ "$age" -ge 0 -a "$age" -le 60000000 ]
}

lab_guest holder memory=256 swap=64 -- lazyfree-hold --lazyfree 96 --cache 24
lab_guest swapper memory=192 swap=256 -- grow --start 64 --limit 224 --step 8192 --check 64 --period 500
lab_wait_work holder && lab_wait_work swapper || exit 1

lazyfree_is_that_of_smaps
hello_comes_to_every_host
shed_frees_what_was_asked_and_no_text
pressure_is_reported_at_once
swap_entries_are_those_of_the_swap_space
own_shed_is_no_pressure
shed_stops_where_it_would_hurt
own_settings_come_back
agent_that_was_killed_is_met_again
without_host_it_sleeps
text_stays_when_anon_goes
cost_of swapper 20
cost_of swapper 500
exit $fail
