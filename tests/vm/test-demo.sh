#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The demo on real guests, in act mode and, as the control, in observe mode: every claim that it
# makes is one test here.

cd "$(dirname "$0")/../.." || exit 1
out=${BALLAST_BUILD:-build}/test-demo
rm -rf "$out"
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
# A folder of its own, to see what is left of this demo and not of another one.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/ballast-test-demo.XXXXXX") || exit 1
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

for mode in act observe; do
	if ! BALLAST_QUIET=1 tests/lab/demo.sh "--$mode" --out "$out"; then
		echo "not ok demo-runs-in-$mode-mode - see above"
		tail -n 20 "$out/$mode-logs/ballastd.log"
		exit 1
	fi
	echo "ok demo-runs-in-$mode-mode"
done

# The daemon said nothing that sounds like trouble.
if grep -h -i -E 'error|fail|assert|sanitizer|corrupt' "$out"/*-logs/ballastd.log; then
	echo "not ok ballastd-had-no-trouble - see above"
else
	echo "ok ballastd-had-no-trouble"
fi

# In the record "actual" of the hypervisor comes just before "ram"; all guests have the same maximum.
moved=$(grep -o '"actual":[0-9]*,"ram"' "$out/observe.jsonl" | sort -u | wc -l)
if [ "$moved" = 1 ]; then
	echo "ok observing-moves-no-balloon"
else
	echo "not ok observing-moves-no-balloon - $moved different sizes were seen"
fi

# What each guest read of its own settings, every second.
readings=$(grep -o '"kind":"settings".*' "$out/observe.jsonl")
if [ "$(wc -l <<<"$readings")" -ge 100 ] && [ "$(sort -u <<<"$readings" | wc -l)" = 1 ]; then
	echo "ok observing-changes-no-setting"
else
	echo "not ok observing-changes-no-setting - $(sort <<<"$readings" | uniq -c | tr '\n' ' ')"
fi

# The report is lenient with a kernel that lacks a lever; ours has all that its series adds.
if ! grep -q '^+.*"exec_protect"' kernel-patches/6.12/*.patch ||
	grep -q '"kind":"settings","exec_protect"' "$out/act.jsonl"; then
	echo "ok the-kernel-has-the-levers-of-its-series"
else
	echo "not ok the-kernel-has-the-levers-of-its-series - no guest has vm.exec_protect"
fi

echo "$TMPDIR" >"$out/pattern"
left=$(ls -A "$TMPDIR"; grep -l -a -s -F -f "$out/pattern" /proc/[0-9]*/cmdline
	grep -F -f "$out/pattern" /proc/self/mountinfo)
if [ -z "$left" ]; then
	echo "ok nothing-is-left-behind"
else
	echo "not ok nothing-is-left-behind - $left"
fi

"${BALLAST_BUILD:-build}/tests/lab/demo-report" --tap --act "$out/act.jsonl" \
	--control "$out/observe.jsonl" --svg "$out/demo.svg"
