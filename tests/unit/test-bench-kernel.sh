#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The benchmark's harness with cells that boot nothing: what runs and in which order, that a run that
# fails is never passed over, and that a run can be continued and reported again.

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tap.sh
. tests/tap.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/ballast-test-bench.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/bench/{cells,tables} "$work/build/tests/bench"
cp "${BALLAST_BUILD:-build}/tests/bench/bench-report" "$work/build/tests/bench/"

cat >"$work/bench/cells/fake.sh" <<'CELLS'
cells_fake()
{
	for level in 0 1 2 3; do
		echo "work level=$level"
	done
	echo "odd-one"
}
cell_work()
{
	echo "$level $BASHPID" >>"$FAKE/ran"
	case $level in
	1) [ ! -e "$FAKE/fail" ] || return 1 ;;
	2) [ ! -e "$FAKE/silent" ] || return 0 ;;
	0) [ ! -e "$FAKE/killed" ] || kill -KILL "$(awk '{ print $4 }' "/proc/$BASHPID/stat")" ;;
	3) [ ! -e "$FAKE/not-ok" ] || echo "not ok it is as bad as that" ;;
	esac
	echo "it says something"
	echo "work lost=$((level + 1))00 ms=5"
}
cell_odd_one()
{
	echo odd >>"$FAKE/ran"
	echo "odd ms=1"
}
CELLS
echo 'less: [work level=0 lost] / [work level=1 lost] <= 0.5' >"$work/bench/targets"
printf '%s\n' 'title Fake' 'cells work' 'column lost [lost]' 'plot lost by level' \
	>"$work/bench/tables/10-fake"

on_failure()
{
	cat "$work/output"
}

# bench [OPTION]...: run the harness; its status and output are kept. Settings are in $settings.
bench()
{
	# shellcheck disable=SC2086 # a list
	env FAKE="$work" BENCH_FOLDER="$work/bench" BALLAST_BUILD="$work/build" \
		BALLAST_KERNEL=/dev/null SEED=7 "${settings[@]}" tests/bench/kernel.sh "$@" \
		>"$work/output" 2>&1
	status=$?
}

said()
{
	grep -q -F -e "$1" "$work/output"
}

# Which levels ran, in their order; what ran is forgotten.
ran()
{
	cut -d ' ' -f 1 "$work/ran" 2>/dev/null | tr '\n' ' '
	rm -f "$work/ran"
}

settings=(JOBS=1)
bench
check all-is-well-and-the-status-is-zero test "$status" = 0
check five-repetitions-of-each-cell test "$(grep -c . "$work/ran")" = 25
first=$(ran)
check every-repetition-has-every-cell-once \
	test "$(tr ' ' '\n' <<<"$first" | head -n 5 | sort | tr '\n' ' ')" = "0 1 2 3 odd "
check the-order-changes test "$(cut -d ' ' -f 1-5 <<<"$first")" != "$(cut -d ' ' -f 6-10 <<<"$first")"
check the-seed-is-printed said 'seed 7'
check tables-targets-and-time-are-printed said 'PASS  less: 0.500'
check the-time-is-printed said 'It took'
check what-a-cell-says-beside-is-no-result test "$(grep -c something "$work/build/bench/kernel/results")" = 0
check plots-are-drawn grep -q '</svg>' "$work/build/bench/kernel/10-fake-1.svg"
bench
check the-same-seed-gives-the-same-order test "$(ran)" = "$first"

bench --report
check a-report-runs-nothing test -z "$(ran)"
check a-report-judges said 'PASS  less'
settings=(JOBS=1 REPEAT=6)
bench --resume
check more-repetitions-run-only-those test "$(ran | wc -w)" = 5
check more-repetitions-are-in-the-report said 'n=6'

settings=(JOBS=2 BENCH=work)
bench
check a-test-is-chosen-by-its-name test "$(ran | wc -w)" = 20
settings=(JOBS=1 BENCH="work level=1 level=3" REPEAT=2)
bench
check cells-are-chosen-by-a-setting test "$(ran | tr ' ' '\n' | sort -u | xargs)" = "1 3"
settings=(JOBS=1 BENCH=targets REPEAT=2)
bench
check cells-are-chosen-by-the-targets test "$(ran | tr ' ' '\n' | sort -u | xargs)" = "0 1"
check two-repetitions-meet-no-target test "$status" = 1
settings=(JOBS=1 BENCH=nothing)
bench
check a-name-that-nobody-has-is-an-error test "$status" = 2

for how in fail silent not-ok killed; do
	touch "$work/$how"
	settings=(JOBS=2)
	bench
	check "a-run-that-is-$how-is-an-error" test "$status" = 1
	check "a-run-that-is-$how-is-said" said ': no result in 5 of 5 repetitions (1 to 5)'
	rm -f "$work/$how" "$work/ran"
	settings=()
	bench --resume
	check "a-run-that-is-$how-is-repeated" test "$(ran | wc -w)" = 5
	check "and-is-all-well-then-$how" test "$status" = 0
	check "but-not-forgotten-$how" said '5 of its runs failed'
done

echo 'less: [work level=0 lost] / [work level=1 lost] <= 0.49' >"$work/bench/targets"
bench --report
check a-missed-target-is-an-error test "$status" = 1
settings=(BALLAST_KERNEL=/etc/hostname)
bench --resume
check a-run-of-another-kernel-is-not-continued test "$status" = 2
exit "$fail"
