#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The worked example of the README is what the program that it names prints, line by line.
cd "$(dirname "$0")/../.." || exit 1
build=build${VARIANT:+/$VARIANT}
scenario=a_soft_cut_to_065_is_met_within_10_s_and_holds_under_load
work=$(mktemp -d "${TMPDIR:-/tmp}/ballast-readme.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

"$build/tests/sim/test-scenarios" $scenario --trace |
	sed -n 's/^.*\.\.\. *\([0-9]*\.[0-9][0-9] \)/\1/; s/^ *//p' >"$work/printed"
sed -n '/^### A worked example/,/^## /s/^      *//p' README.md |
	grep -v -e '^make ' -e '^build/' >"$work/shown"
# One number stands in the text.
sed -i 's/^\(under budget after [0-9.]* s\),.*/\1/' "$work/printed"
tr '\n' ' ' <README.md | sed -n 's/.*under the new budget \([0-9.]* s\) after the cut.*/under budget after \1/p' \
	>>"$work/shown"
grep -qF "$scenario" README.md || echo "$scenario is not named" >>"$work/shown"

[ "$(wc -l <"$work/shown")" -ge 8 ] || {
	echo "not ok the-worked-example-is-there - $(wc -l <"$work/shown") lines of it"
	exit 1
}
gone=$(grep -v -x -F -f "$work/printed" "$work/shown")
if [ -z "$gone" ]; then
	echo "ok the-worked-example-is-what-the-program-prints"
else
	printf '%s\n' "$gone"
	echo "not ok the-worked-example-is-what-the-program-prints - these lines it doesn't print"
	exit 1
fi
