#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# demo.sh: the main job on real guests. Four guests with different work on a private libvirt daemon;
# the host's budget is cut to 0.65 of what they cost, held for a minute under load, and given back.
# Done twice: by ballastd in act mode, and in observe mode as the control. Ends with a report of what
# was measured and a plot.
#
#	demo.sh			both runs and the report
#	demo.sh --act | --observe	one of the runs, without a verdict
#	demo.sh --report	the report again, from the records of the last runs
#	--out DIR		where records, report and plot go (build/demo)
#	--warmup S, --hold S	seconds before the cut (20), and under it (75)
#
# In the middle of the hold ballastd is killed with SIGKILL and started again.

# shellcheck source=tests/lab/lab.sh
. "$(dirname "${BASH_SOURCE[0]}")/lab.sh"

GUESTS=(exec lazy cold grow)
out=$LAB_BUILD/demo
runs=(act observe)
warmup=20
hold=75
cut_to=0.65

usage()
{
	sed -n '3,/^$/s/^# \{0,1\}//p' "$0"
}

parse()
{
	while [ $# -gt 0 ]; do
		case $1 in
		--act) runs=(act) ;;
		--observe) runs=(observe) ;;
		--report) runs=() ;;
		--run) inner=$2; shift ;;
		--out) out=$2; shift ;;
		--warmup) warmup=$2; shift ;;
		--hold) hold=$2; shift ;;
		-h | --help) usage; exit 0 ;;
		*) usage >&2; exit 2 ;;
		esac
		shift
	done
}

# --- Outside of the lab ---------------------------------------------------------------------------

# All of the set-up; costs a second when everything is there.
prepare()
{
	local target
	for target in deps kernel all lab; do
		[ "$target" != kernel ] || [ -z "${BALLAST_KERNEL:-}" ] || continue
		make -s -C "$LAB_TREE" -j"$(nproc)" "$target" ||
			lab_fail "'make $target' failed; the demo needs it"
	done
	BALLAST_KERNEL=$(lab_kernel)
	export BALLAST_KERNEL
}

as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo --preserve-env=BALLAST_KERNEL,BALLAST_ACCEL,BALLAST_BUILD,TMPDIR "$@"
	fi
}

report()
{
	local rc
	"$LAB_BUILD/tests/lab/demo-report" --act "$out/act.jsonl" --control "$out/observe.jsonl" \
		--svg "$out/demo.svg" >"$out/report.txt"
	rc=$?
	cat "$out/report.txt" || lab_fail "$out/report.txt cannot be written"
	# It has said why it could not write all of it.
	grep -q ' claims, ' "$out/report.txt" || return "$rc"
	echo
	echo "Records, report and plot: $out"
	return "$rc"
}

outside()
{
	local mode
	prepare
	mkdir -p "$out" || lab_fail "cannot make $out"
	out=$(cd "$out" && pwd)
	for mode in "${runs[@]}"; do
		BALLAST_KEEP=$out/$mode-logs as_root "$0" --run "$mode" --out "$out" \
			--warmup "$warmup" --hold "$hold" || exit 1
	done
	[ ${#runs[@]} != 1 ] || exit 0
	report
}

# --- The run --------------------------------------------------------------------------------------

phase()
{
	printf '%s\n' "$*" >"$LAB_DIR/phase"
	# On a terminal the table says it, once it is there.
	if ! [ -t 1 ] || [ -z "${watch:-}" ]; then
		printf '== %s\n' "$*"
	fi
}

mark()
{
	"$LAB_BUILD/tests/lab/watch" --mark "$record" "$@" || lab_fail "cannot write $record"
}

start_guests()
{
	lab_guest exec -- exec-rounds --text 40 --cache 200 --anon 24 --seed 1
	lab_guest lazy -- lazyfree-hold --lazyfree 144 --cache 64 --anon 24 --seed 2
	lab_guest cold -- cold-cache --cache 300 --hot 16 --anon 16 --seed 3
	lab_guest grow -- grow --start 96 --limit 184 --step 2560 --check 24576 --cache 24 --seed 4
	local name
	for name in "${GUESTS[@]}"; do
		lab_wait_work "$name" || exit 1
	done
}

configure()
{
	mkdir -p "$conf/ballast.d"
	cat >"$conf/ballast.yaml" <<-EOF
		host:
		  mode: $mode
		  uri: $LAB_URI
		  budget:
		    size: 3GiB
		    hard: true
		  headroom: 3%
		  grant_pool: 4%
		  levels:
		    min_stay: 2s
		  intervals:
		    round: 500ms
		    statistics: 1s
		    lock_after: 3s
		  profiles:
		    relaxed:
		      reporting_order: 2
		    tight:
		      reporting_order: 2
		    critical:
		      reporting_order: 2
		defaults:
		  min: 96MiB
		  burst: 16MiB
		  boot_grace: 1s
	EOF
}

# What an administrator does: a drop-in file and a reload.
set_budget()
{
	cat >"$conf/ballast.d/50-budget.yaml" <<-EOF
		host:
		  budget:
		    size: $1
		    hard: true
	EOF
	kill -HUP "$LAB_DAEMON"
}

start_watch()
{
	local table=()
	[ -n "${BALLAST_QUIET:-}" ] || table=(--table)
	lab_background "$LAB_BUILD/tests/lab/watch" --record "$record" --lab "$LAB_DIR" \
		--ballastctl "$LAB_BUILD/ballastctl --runtime-dir /run/ballast status --json 2>/dev/null" \
		--pid-file "$LAB_DIR/ballastd.pid" "${table[@]}" "${GUESTS[@]}"
	watch=$lab_pid
}

# Every second each guest says what two of its kernel settings are, whatever its agent says.
watch_settings()
{
	local name
	# shellcheck disable=SC2016 # for the guest's shell
	for name in "${GUESTS[@]}"; do
		lab_tell "$name" 'while sleep 1; do said=settings; for key in exec_protect lazyfree_first; do [ ! -e /proc/sys/vm/$key ] || { read value </proc/sys/vm/$key; said="$said $key=$value"; }; done; echo "$said"; done &'
	done
}

# Bytes that the guests' memory costs the host now, from the last sample.
footprint()
{
	grep '"guests":' "$record" | tail -n 1 |
		grep -o '"ram":[0-9]*' | awk -F: '{ sum += $2 } END { printf "%.0f", sum }'
}

# Why the guests have what they have; a daemon that is killed forgets it.
explain()
{
	local name
	for name in "${GUESTS[@]}"; do
		lab_ctl explain "$name" --json | "$LAB_BUILD/tests/lab/watch" --explain "$record" "$name"
	done
}

vmstat_of()
{
	local name
	for name in "${GUESTS[@]}"; do
		lab_ask "$name" "echo 1 >/proc/sys/vm/stat_refresh; cat /proc/vmstat" \
			>"$LAB_DIR/log/$name.vmstat-$1" || exit 1
	done
}

run()
{
	local mode=$1 before budget
	record=$out/$mode.jsonl
	conf=$LAB_DIR/ballast
	rm -f "$record"
	phase "$mode: starting libvirt and ${#GUESTS[@]} guests"
	lab_start
	start_guests
	configure
	lab_daemon "$conf/ballast.yaml"
	lab_until 30 lab_agents ${#GUESTS[@]} || lab_fail "not all agents answered: $(lab_ctl status 2>&1)
$(tail -n 5 "$LAB_DIR/log/ballastd.log")"
	start_watch
	watch_settings
	phase "$mode: warming up"
	sleep "$warmup"
	vmstat_of before
	before=$(footprint)
	budget=$(awk -v f="$before" -v c="$cut_to" 'BEGIN { printf "%d", f * c / 1048576 }')

	phase "$mode: the budget is cut to $cut_to of the footprint"
	mark cut before="$before" budget=$((budget << 20)) hold="$hold"
	set_budget "${budget}MiB"
	lab_tell grow "touch /tmp/grow"
	sleep $((hold / 2))
	kill_daemon
	sleep $((hold - hold / 2 - 2))
	vmstat_of after
	explain

	phase "$mode: the budget is given back"
	mark restore budget=$((3 << 30))
	set_budget 3GiB
	sleep 10
	mark end
	phase "$mode: ballastd is stopped"
	stop_daemon
	mark stop
	sleep 3
	phase "$mode: done"
	kill "$watch"
	wait "$watch" 2>/dev/null
}

# As a crash would: no farewell. Two seconds later it is back.
kill_daemon()
{
	phase "$mode: ballastd is killed with SIGKILL"
	explain
	mark kill
	kill -KILL "$LAB_DAEMON"
	wait "$LAB_DAEMON" 2>/dev/null
	sleep 2
	phase "$mode: ballastd is started again"
	mark restart
	lab_daemon "$conf/ballast.yaml"
}

stop_daemon()
{
	kill -TERM "$LAB_DAEMON" 2>/dev/null
	wait "$LAB_DAEMON"
	local rc=$?
	[ "$rc" = 0 ] || lab_fail "ballastd ended with $rc: $(tail -n 3 "$LAB_DIR/log/ballastd.log")"
}

inner=
arguments=("$@")
parse "$@"
if [ -z "$inner" ]; then
	outside
	exit
fi
lab_enter "${arguments[@]}"
run "$inner"
