#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# kernel.sh: measure the levers of the kernel series, off against on in one image. Boots a guest for
# each cell and repetition, prints every table beside the seed's own figures, draws the plots, and
# ends with an error when a target (tests/bench/targets) is missed or a run gave no result.
#
#	kernel.sh		all of it, from the start
#	kernel.sh --resume	go on with the last run: what it has is not measured again
#	kernel.sh --report	tables, plots and targets of the last run again, measures nothing
#	kernel.sh --list	the cells, with their groups
#
# Settings from the environment:
#	BENCH="WORD ..."	only these groups, tests, or cells with a setting (level=3); "targets" is
#				all that a target speaks of
#	REPEAT=N		repetitions (5)
#	JOBS=N			guests at a time, each on a processor of its own (as many as there are
#				processors, at most 2)
#	SEED=N			of the order (random; it is printed)
#	BALLAST_KERNEL		a bzImage instead of the bundled kernel; BALLAST_KERNEL_UNPATCHED
#	BENCH_FOLDER		other cells, tables and targets than those beside this script
#
# A repetition is all cells once, shuffled, so that what is compared stands near in time and in an
# order that changes. The record is build/bench/kernel/results, the plots are beside it.

set -uo pipefail
export LC_ALL=C
# shellcheck source=tests/vm/guest.sh
. "$(dirname "${BASH_SOURCE[0]}")/../vm/guest.sh"

here=${BENCH_FOLDER:-$VM_TREE/tests/bench}
out=$VM_BUILD/bench/kernel
results=$out/results
begin=$SECONDS

die()
{
	printf 'bench-kernel: %s\n' "$*" >&2
	exit 2
}

usage()
{
	sed -n '3,/^$/s/^# \{0,1\}//p' "$0"
}

mode=run
while [ $# -gt 0 ]; do
	case $1 in
	--resume | --report | --list) mode=${1#--} ;;
	-h | --help) usage; exit 0 ;;
	*) usage >&2; exit 2 ;;
	esac
	shift
done

# --- Which cells ----------------------------------------------------------------------------------

declare -A group_of=()
cells=()

load_cells()
{
	local file group cell
	for file in "$here"/cells/*.sh; do
		group=$(basename "$file" .sh)
		# shellcheck disable=SC1090 # one for each group
		. "$file" || die "$file can't be read"
		while read -r cell; do
			cells+=("$cell")
			group_of[$cell]=$group
			declare -F "$(function_of "$cell")" >/dev/null ||
				die "$file: '$cell' has no $(function_of "$cell")()"
		done < <("cells_$group")
	done
}

function_of()
{
	local test=${1%% *}
	echo "cell_${test//-/_}"
}

# is_wanted CELL: does BENCH name its group or test, and a value for each setting that it speaks of?
is_wanted()
{
	local cell=$1 word named='' known='' test=${1%% *}
	local -A asked=() found=()
	for word in ${BENCH:-}; do
		case $word in
		*=*)
			asked[${word%%=*}]=1
			case " $cell " in *" $word "*) found[${word%%=*}]=1 ;; esac
			;;
		*)
			known=1
			[ "$word" != "$test" ] && [ "$word" != "${group_of[$cell]}" ] || named=1
			[ "$word" != targets ] || ! grep -q -F "[$cell " "$here/targets" || named=1
			;;
		esac
	done
	[ -z "$known" ] || [ -n "$named" ] || return 1
	for word in "${!asked[@]}"; do
		[ -n "${found[$word]:-}" ] || return 1
	done
}

choose_cells()
{
	local cell word
	printf '%s\n' "${cells[@]}" >"$out/cells"
	if [ -z "${BENCH:-}" ] && [ "$mode" != run ] && [ -s "$out/wanted" ]; then
		return
	fi
	for word in ${BENCH:-}; do
		[[ $word = *=* || $word = targets ]] || [[ " ${group_of[*]} ${cells[*]%% *} " = *" $word "* ]] ||
			die "there is no group or test '$word' (see --list)"
	done
	for cell in "${cells[@]}"; do
		if is_wanted "$cell"; then
			printf '%s\n' "$cell"
		fi
	done >"$out/wanted"
	[ -s "$out/wanted" ] || die "no cell is as BENCH says (see --list)"
}

# --- Running --------------------------------------------------------------------------------------

find_kernels()
{
	vm_kernel || exit 2
	patched=$VM_KERNEL
	unpatched=
	if grep -q ' kernel=unpatched' "$out/wanted"; then
		vm_kernel --unpatched || exit 2
		unpatched=$VM_KERNEL
	fi
}

# The kernels are built here; the unpatched one is a build of its own.
build_kernels()
{
	[ -n "${BALLAST_KERNEL:-}" ] || "$VM_TREE/kernel-patches/build.sh" || exit 2
	if [ -z "${BALLAST_KERNEL_UNPATCHED:-}" ] && grep -q ' kernel=unpatched' "$out/wanted"; then
		"$VM_TREE/kernel-patches/build.sh" --unpatched || exit 2
	fi
}

head_lines()
{
	echo "# kernel $(sha256sum <"$patched" | cut -c1-16)"
	[ -z "$unpatched" ] || echo "# unpatched $(sha256sum <"$unpatched" | cut -c1-16)"
}

open_results()
{
	if [ "$mode" = resume ]; then
		[ -s "$results" ] || die "there is no run to go on with"
		[ "$(sed -n '/^# kernel /{p;q}' "$results")" = "$(head_lines | head -n 1)" ] ||
			die "$results is of another kernel"
	else
		[ ! -e "$results" ] || mv "$results" "$results.old"
		head_lines >"$results"
	fi
	echo "# seed $seed" >>"$results"
	echo "$repeat" >"$out/repeat"
}

has_result()
{
	grep -q -F "$1	$2	end status=0 " "$results"
}

# All runs that are left, "REPETITION CELL" a line: repetition after repetition, each shuffled.
plan()
{
	local rep cell
	for ((rep = 1; rep <= repeat; rep++)); do
		awk -v seed=$((seed + rep)) 'BEGIN { srand(seed) } { print rand() "\t" $0 }' \
			"$out/wanted" | sort -g | cut -f 2- | while read -r cell; do
			has_result "$cell" "$rep" || echo "$rep $cell"
		done
	done
}

# run_cell CELL: what it prints; in a shell of its own. Settings become variables.
run_cell()
{
	local setting
	# shellcheck disable=SC2034 # of guest.sh
	VM_TIMEOUT=${VM_TIMEOUT:-300} VM_KERNEL=$patched
	for setting in ${1#"${1%% *}"}; do
		declare -g "$setting"
	done
	[ "${kernel:-}" != unpatched ] || VM_KERNEL=$unpatched
	"$(function_of "$1")"
}

# run_slot SLOT CELL: on the slot's processor, into its files.
run_slot()
{
	local rc begun=$SECONDS
	taskset -p -c "${processors[$1]}" "$BASHPID" >/dev/null
	(run_cell "$2") >"$out/slot.$1" 2>"$out/slot.$1.err" </dev/null
	rc=$?
	grep -q '^not ok ' "$out/slot.$1" && rc=1
	grep -E "$result_line" "$out/slot.$1" >"$out/slot.$1.results" || rc=1
	echo "end status=$rc seconds=$((SECONDS - begun))" >>"$out/slot.$1.results"
}
result_line='^[A-Za-z][^ =]*( [A-Za-z0-9_.]+=[^ ]+)+$'

# Record what came of a slot's run.
finish()
{
	local slot=$1 cell=${slot_cell[$1]} rep=${slot_rep[$1]} end seconds log
	end=$(tail -n 1 "$out/slot.$slot.results")
	seconds=${end##*=}
	{
		printf '%s\t%s\tbegin\n' "$cell" "$rep"
		while read -r line; do
			printf '%s\t%s\t%s\n' "$cell" "$rep" "$line"
		done <"$out/slot.$slot.results"
	} >>"$results"
	spent[$cell]=$((${spent[$cell]:-0} + seconds))
	times[$cell]=$((${times[$cell]:-0} + 1))
	n_done=$((n_done + 1))
	printf '[%*d/%d] %s, repetition %d: %d s%s\n' ${#n_runs} "$n_done" "$n_runs" "$cell" "$rep" \
		"$seconds" "$(time_left)"
	if [[ $end != "end status=0 "* ]]; then
		log="$out/log/${cell// /,}.$rep"
		cat "$out/slot.$slot" "$out/slot.$slot.err" >"$log"
		echo "  it failed, see $log:"
		tail -n 5 "$log" | sed 's/^/    /'
	fi
	unset "slot_cell[$slot]"
}

# As long as the cell took so far, or as all cells did on average.
time_left()
{
	local sum=0 n=0 left=0 cell run
	for cell in "${!spent[@]}"; do
		sum=$((sum + spent[$cell]))
		n=$((n + times[$cell]))
	done
	for run in "${runs[@]:n_done}"; do
		cell=${run#* }
		if [ -n "${times[$cell]:-}" ]; then
			left=$((left + spent[$cell] / times[$cell]))
		else
			left=$((left + sum / n))
		fi
	done
	left=$((left / ${#processors[@]}))
	[ "$n_done" -eq "$n_runs" ] || printf '; about %d:%02d min left' $((left / 60)) $((left % 60))
}

# The processors that this process may use, as many as there are guests at a time.
choose_processors()
{
	local list=() part i
	for part in $(sed -n 's/^Cpus_allowed_list:\t*//p' /proc/self/status | tr ',' ' '); do
		for ((i = ${part%-*}; i <= ${part#*-}; i++)); do
			list+=("$i")
		done
	done
	local jobs=${JOBS:-2}
	[ "$jobs" -le ${#list[@]} ] || jobs=${#list[@]}
	processors=("${list[@]:0:jobs}")
}

# end_tree PROCESS: it and all that it has started; timeout and QEMU have a group of their own.
end_tree()
{
	local child
	# shellcheck disable=SC2013 # words
	for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
		end_tree "$child"
	done
	kill "$1" 2>/dev/null
}

# shellcheck disable=SC2317 # a trap calls it
stop_slots()
{
	local pid
	trap - INT TERM HUP
	for pid in "${!slot_of[@]}"; do
		end_tree "$pid"
	done
	wait
	echo "bench-kernel: stopped; 'kernel.sh --resume' goes on" >&2
	exit 130
}

run_all()
{
	local run slot
	declare -gA spent=() times=() slot_of=()
	declare -ga slot_cell=() slot_rep=()
	mapfile -t runs < <(plan)
	n_runs=${#runs[@]}
	n_done=0
	echo "$n_runs runs: $(wc -l <"$out/wanted") cells, $repeat repetitions, seed $seed," \
		"${#processors[@]} guests at a time"
	# What the guests' folders are in, so that nothing stays of a run that is stopped.
	TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/ballast-bench.XXXXXX") || exit 2
	export TMPDIR
	trap 'rm -rf "$TMPDIR"' EXIT
	trap stop_slots INT TERM HUP
	for run in "${runs[@]}"; do
		for slot in "${!processors[@]}"; do
			[ -n "${slot_cell[$slot]:-}" ] || break
		done
		if [ -n "${slot_cell[$slot]:-}" ]; then
			wait_one
		fi
		slot_cell[slot]=${run#* }
		slot_rep[slot]=${run%% *}
		rm -f "$out/slot.$slot.results"
		run_slot "$slot" "${run#* }" &
		slot_of[$!]=$slot
	done
	while [ ${#slot_of[@]} -gt 0 ]; do
		wait_one
	done
	trap - INT TERM HUP
}

# Wait for a run; its slot is in $slot. What was killed has not said how it ended.
wait_one()
{
	local pid
	wait -n -p pid "${!slot_of[@]}"
	slot=${slot_of[$pid]}
	unset "slot_of[$pid]"
	grep -q '^end ' "$out/slot.$slot.results" 2>/dev/null ||
		echo "end status=1 seconds=0" >"$out/slot.$slot.results"
	finish "$slot"
}

# --- Reporting ------------------------------------------------------------------------------------

report()
{
	local rc script
	rm -f "$out"/*.gp
	"$VM_BUILD/tests/bench/bench-report" --cells "$out/cells" --wanted "$out/wanted" \
		--repeat "$repeat" --results "$results" --targets "$here/targets" --plots "$out" \
		"$here"/tables/[0-9]* >"$out/report.txt"
	rc=$?
	cat "$out/report.txt"
	for script in "$out"/*.gp; do
		[ -e "$script" ] || continue
		gnuplot "$script" || { echo "bench-kernel: $script can't be drawn" >&2; rc=2; }
	done
	echo "Record, report and plots: $out"
	return "$rc"
}

mkdir -p "$out/log" || die "cannot make $out"
load_cells
if [ "$mode" = list ]; then
	for cell in "${cells[@]}"; do
		printf '%-10s %s\n' "${group_of[$cell]}" "$cell"
	done
	exit 0
fi
command -v gnuplot >/dev/null || die "gnuplot is not installed: run 'make deps' first"
exec {lock}>"$out/lock"
flock -n "$lock" || die "another run is using $out"
choose_cells
seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
repeat=${REPEAT:-5}
[ "$mode" = run ] || [ -n "${REPEAT:-}" ] || repeat=$(cat "$out/repeat" 2>/dev/null || echo 5)
if [ "$mode" != report ]; then
	build_kernels
	find_kernels
	open_results
	choose_processors
	run_all
fi
[ -s "$results" ] || die "there is no run to report"
report
rc=$?
echo "It took $(((SECONDS - begin) / 60)) min $(((SECONDS - begin) % 60)) s."
exit "$rc"
