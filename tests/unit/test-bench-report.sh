#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The benchmark's judge is judged: medians and intervals of known values, formulas, tables, plots, and
# that a target that is missed, a run that gave nothing, or a formula that means nothing is an error.

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tap.sh
. tests/tap.sh
report=${BALLAST_BUILD:-build}/tests/bench/bench-report
work=$(mktemp -d "${TMPDIR:-/tmp}/ballast-test-bench.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

on_failure()
{
	cat "$work/output"
}

# runs CELL KEY VALUE...: a repetition for each value; "-" is one that failed.
runs()
{
	local cell=$1 key=$2 value rep=0
	shift 2
	for value in "$@"; do
		rep=$((rep + 1))
		printf '%s\t%d\tbegin\n' "$cell" "$rep"
		[ "$value" = - ] || printf '%s\t%d\twork %s=%s\n' "$cell" "$rep" "$key" "$value"
		printf '%s\t%d\tend status=%d seconds=3\n' "$cell" "$rep" "$([ "$value" = - ] && echo 1 || echo 0)"
	done
}

# judge REPEAT TARGET [TABLE LINE...]: the status of a report with one target and one table.
judge()
{
	local repeat=$1
	printf '%s\n' "$2" >"$work/targets"
	shift 2
	printf '%s\n' 'title known values' "$@" >"$work/table"
	"$report" --cells "$work/cells" --wanted "$work/wanted" --repeat "$repeat" \
		--results "$work/results" --targets "$work/targets" --plots "$work" "$work/table" \
		>"$work/output" 2>&1
	echo $? >"$work/status"
}

status()
{
	[ "$(cat "$work/status")" = "$1" ]
}

said()
{
	grep -q -F -e "$1" "$work/output"
}

printf '%s\n' 'test level=0' 'test level=1' 'other' >"$work/cells"
printf '%s\n' 'test level=0' 'test level=1' >"$work/wanted"
{
	echo '# kernel 0123'
	runs 'test level=0' lost 100 300 200 500 400
	runs 'test level=1' lost 10 60 10 100 20
} >"$work/results"
none='all: [test level=0 lost] >= 0'

# n = 5: least to greatest; n = 8: the second of each end.
judge 5 "$none" 'cells test' 'column lost [lost]'
check five-repetitions-give-least-to-greatest said '300 (100..500)'
check their-coverage-is-said said 'n=5, 93.8 %'
check a-target-that-is-met-is-no-error status 0

# Ratios by repetition are 0.1 0.2 0.05 0.2 0.05: their median is not the ratio of the medians, 0.067.
judge 5 'pairs: [test level=1 lost] / [test level=0 lost] <= 0.1' 'cells test' 'column lost [lost]'
check pairs-are-by-repetition said 'PASS  pairs: 0.100 (0.0500..0.200'
check an-interval-over-the-bound-is-said said 'reaches over the bound'
judge 5 'missed: [test level=1 lost] / [test level=0 lost] <= 0.09'
check a-missed-target-is-an-error status 1
check a-missed-target-is-named said 'MISS  missed: 0.100'
judge 5 'missed: [test level=0 lost] >= 301'
check a-bound-from-below-is-held status 1
judge 5 'exact: most([test level=1 lost]) = 100'
check the-most-is-over-all-repetitions status 0
judge 5 'all: median([test level=1 lost]) / median([test level=0 lost]) * 30 = 2'
check medians-within-a-formula status 0
judge 5 'all: max(1, min(3, [test level=0 lost])) * (2 - -4) - 17 = 1'
check arithmetic-has-its-order status 0

# Alike: ranges that overlap, and medians no further apart than the larger range.
alike='alike: apart([test level=0 lost], [test level=1 lost]) <= 0'
runs 'test level=0' lost 100 200 300 400 500 >"$work/results"
runs 'test level=1' lost 460 480 500 700 800 >>"$work/results"
judge 5 "$alike"
check what-is-alike-is-not-apart status 0
check how-much-alike-is-said said 'PASS  alike: -40 ('
runs 'test level=0' lost 100 200 300 400 500 >"$work/results"
runs 'test level=1' lost 510 520 530 540 550 >>"$work/results"
judge 5 "$alike"
check ranges-that-do-not-overlap-are-apart status 1
check how-far-apart-is-said said 'MISS  alike: 10 ('
runs 'test level=0' lost 100 110 110 400 500 >"$work/results"
runs 'test level=1' lost 460 800 820 840 860 >>"$work/results"
judge 5 "$alike"
check medians-further-apart-than-the-ranges-are-apart said 'MISS  alike: 310 ('
judge 5 'half: apart([test level=0 lost]) <= 0'
check half-a-comparison-is-an-error status 2
runs 'test level=0' lost 100 200 300 400 500 >"$work/results"
runs 'test level=1' lost 460 480 - 700 800 >>"$work/results"
judge 5 "$alike"
check a-comparison-is-of-as-many-repetitions-as-the-fewer said 'n=4, 87.5 %), too few repetitions'
judge 5 'most: most([test level=1 lost]) = 800'
check the-most-of-four-repetitions-meets-nothing said 'n=4, 87.5 %), too few repetitions'
runs 'test level=0' lost - - - - - >>"$work/results"
judge 5 "$alike"
check what-has-no-result-is-not-alike said 'MISS  alike: no result'
runs 'test level=0' lost 100 300 200 500 400 >"$work/results"
runs 'test level=1' lost 10 60 10 100 20 >>"$work/results"
judge 4 "$none"
check four-repetitions-meet-nothing status 1
check four-repetitions-are-too-few said 'too few repetitions'

runs 'test level=0' lost 1 2 3 4 5 6 7 8 >"$work/results"
runs 'test level=1' lost 1 2 3 4 5 6 7 8 >>"$work/results"
judge 8 "$none" 'cells test' 'column lost [lost]'
check eight-repetitions-give-second-to-seventh said '4.500 (2..7)'
check and-say-how-sure-that-is said '93.0 %'

runs 'test level=1' lost 1 2 - 4 5 6 7 8 >>"$work/results"
judge 8 "$none" 'cells test' 'column lost [lost]'
check a-failed-run-is-an-error status 1
check a-failed-run-is-named said 'MISS  test level=1: no result in 1 of 8 repetitions (3)'
check a-run-that-counts-is-the-last said '5 (1..8) n=7'
judge 8 'all: [test level=1 lost] >= 1'
check what-is-left-is-still-judged said 'n=7'

# One line for each cell, however many of its repetitions gave nothing.
runs 'test level=0' lost 1 2 3 4 5 6 7 8 >"$work/results"
runs 'test level=1' lost 1 - - 4 - 6 - - >>"$work/results"
judge 8 "$none"
check failed-runs-of-a-cell-are-one-line test "$(grep -c '^MISS  test level=1: ' "$work/output")" = 1
check failed-runs-are-named \
	said 'MISS  test level=1: no result in 5 of 8 repetitions (2 to 3, 5, 7 to 8)'
check failed-runs-are-counted said '5 runs without a result'
judge 10 "$none"
check runs-that-never-were-are-named \
	said 'MISS  test level=0: no result in 2 of 10 repetitions (9 to 10)'
runs 'test level=0' lost 1 2 3 4 5 6 7 8 >"$work/results"
runs 'test level=1' lost 1 2 - 4 5 6 7 8 >>"$work/results"

# A word of a table's or a target's that means nothing is not passed over.
judge 8 'bad: [test level=2 lost] >= 1'
check a-cell-that-does-not-exist-is-an-error status 2
judge 8 'bad: [test level=1 lots] >= 1'
check a-key-that-nobody-printed-is-a-miss status 1
judge 8 'bad [test level=1 lost]'
check a-target-without-a-bound-is-an-error status 2
judge 8 'bad: [test level=1 lost] / >= 1'
check half-a-formula-is-an-error status 2
judge 8 'bad: ([test level=1 lost] >= 1'
check an-open-parenthesis-is-an-error status 2
judge 8 "$none" 'cells test level=7'
check a-row-that-does-not-exist-is-an-error status 2
judge 8 "$none" 'cells test' 'colum lost [lost]'
check a-directive-that-does-not-exist-is-an-error status 2
judge 8 'not-run: [other lost] >= 1'
check what-was-not-asked-for-is-no-miss said '0 missed, 1 of cells that were not asked for'
printf 'rubbish\n' >>"$work/results"
judge 8 "$none"
check a-record-that-is-none-is-an-error status 2

{
	runs 'test level=0' lost 1 2 3 4 5
	runs 'test level=1' lost 1 2 3 4 5
	printf 'test level=0\t1\tbegin\ntest level=0\t1\tstart ms=7\ntest level=0\t1\tstart ms=9\n'
	printf 'test level=0\t1\tend status=0 seconds=3\n'
} >"$work/results"
judge 1 'second: [test level=0 start#2.ms] - [test level=0 start.ms] = 2'
check the-second-line-of-a-name-has-a-number said 'second: 2 (2..2'
judge 1 'twice: [test level=0 ms] = 7'
check a-key-of-two-lines-is-an-error status 2
check and-its-cell-is-named said "'test level=0' printed more than one 'ms' in repetition 1"
judge 1 "$none" 'cells test' 'column ms [ms]'
check a-column-of-two-lines-is-an-error status 2

runs 'test level=0' lost 1 2 3 4 5 >"$work/results"
runs 'test level=1' lost 6 7 8 9 10 >>"$work/results"
judge 5 "$none" 'cells test' 'column lost [lost]' 'given Wu 120 107' 'seed The author had this.' \
	'plot lost by level' 'plot lost over level'
check the-authors-figures-stand-beside said '3 (1..5)  120'
check the-authors-lines-are-printed said '| The author had this.'
for plot in "$work"/table-[12].gp; do
	gnuplot "$plot" || fail=1
done
check bars-are-drawn grep -q '</svg>' "$work/table-1.svg"
check curves-are-drawn grep -q '</svg>' "$work/table-2.svg"
check both-levels-are-in-the-legend grep -q 'level=1' "$work/table-1.svg"

# The benchmark's own tables and targets speak of cells that there are, and mean something.
tests/bench/kernel.sh --list | sed 's/^[^ ]* *//' >"$work/cells"
: >"$work/results"
"$report" --cells "$work/cells" --wanted "$work/cells" --repeat 5 --results "$work/results" \
	--targets tests/bench/targets tests/bench/tables/[0-9]* >"$work/output" 2>&1
echo $? >"$work/status"
check the-benchmark-s-formulas-mean-something status 1
check every-target-without-a-result-is-missed said '0 targets met, '
exit "$fail"
