#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# tests/fuzz/run.sh [SECONDS [NAME...]]: build the fuzz targets and run each for that long (20 s).
# What a target finds worth keeping stays in build/fuzz/corpus/NAME, so that the next run goes on
# from there; an input that breaks it is left in build/fuzz/crashes and named.
cd "$(dirname "$0")/../.." || exit 1
seconds=${1:-20}
shift
fail=0

# Where a target's first inputs come from; none is fine, too.
seeds_of()
{
	case $1 in
	fuzz-config) ls conf/*.yaml conf/examples/*.yaml tests/data/config/bad/*.yaml ;;
	*) ls "tests/data/fuzz/$1"/* ;;
	esac 2>/dev/null
}

targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(basename -s .c tests/fuzz/fuzz-*.c)
make -s -j"$(nproc)" VARIANT=fuzz "${targets[@]/#/build/fuzz/tests/fuzz/}" || {
	echo "not ok fuzz-targets-build"
	exit 1
}
mkdir -p build/fuzz/crashes
for name in "${targets[@]}"; do
	corpus=build/fuzz/corpus/$name
	log=build/fuzz/$name.log
	mkdir -p "$corpus"
	while read -r seed; do
		cp "$seed" "$corpus/seed-$(basename "$seed")"
	done < <(seeds_of "$name")
	if "build/fuzz/tests/fuzz/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
		-print_final_stats=1 -artifact_prefix="build/fuzz/crashes/$name-" "$corpus" \
		>"$log" 2>&1 </dev/null; then
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		echo "ok $name - $runs inputs in $seconds s"
	else
		tail -n 30 "$log"
		echo "not ok $name - see $log and build/fuzz/crashes"
		fail=1
	fi
done
exit $fail
