#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `ballastctl check`: what it prints, where, and how it ends.
cd "$(dirname "$0")/../.." || exit 1
ctl=${BALLAST_BUILD:-build}/ballastctl
fail=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# check NAME STATUS OUT ERR ARGUMENT...: the exit status and both outputs, with the folder cut off
check()
{
	local name=$1 status=$2 out=$3 err=$4 rc
	shift 4
	"$ctl" check "$@" >"$work/out" 2>"$work/err"
	rc=$?
	sed -i "s#$work/##g" "$work/out" "$work/err"
	if [ "$rc" = "$status" ] && diff <(printf '%s' "$out") "$work/out" &&
		diff <(printf '%s' "$err") "$work/err"; then
		echo "ok $name"
	else
		echo "not ok $name - status $rc, expected $status; differences above"
		fail=1
	fi
}

printf 'host: {mode: act}\nguests: [{name: a}]\n' >"$work/good.yaml"
check good-file-is-one-line 0 'good.yaml: good, mode act, 1 guest rule, 0 warnings
' '' \
	"$work/good.yaml"

printf 'host:\n  mode: obsrve\ndefaults:\n  min: 5\n' >"$work/bad.yaml"
check mistakes-are-shown-under-their-lines 1 'bad.yaml: bad, 2 mistakes, 0 warnings
' \
	"bad.yaml:2:9: host.mode: \"obsrve\" isn't one of observe, act: did you mean observe?
      2 |   mode: obsrve
        |         ^
bad.yaml:4:8: defaults.min: \"5\" has no unit: expected a size such as 512MiB or a percentage such as 25%
      4 |   min: 5
        |        ^
" "$work/bad.yaml"

printf 'guests: [{name: "*"}, {name: b}]\n' >"$work/warn.yaml"
check warnings-alone-are-good 0 'warn.yaml: good, mode observe, 2 guest rules, 1 warning
' "warn.yaml:1:30: warning: guests: never used: the rule at warn.yaml:1 comes first and matches all that this one does; put this one before it
      1 | guests: [{name: \"*\"}, {name: b}]
        |                              ^
" "$work/warn.yaml"

printf 'a: "\tä"\n"\té": 1\n' >"$work/wide.yaml"
check caret-stands-under-wide-characters 1 'wide.yaml: bad, 2 mistakes, 0 warnings
' "wide.yaml:1:1: a: unknown key: the keys here are host, defaults, guests
      1 | a: \"	ä\"
        | ^
wide.yaml:2:1: ?é: unknown key: the keys here are host, defaults, guests
      2 | \"	é\": 1
        | ^
" "$work/wide.yaml"

printf 'host:\n  uri: \377\033[31m\n' >"$work/bytes.yaml"
check bad-bytes-do-not-reach-the-terminal 1 'bytes.yaml: bad, 1 mistake, 0 warnings
' "bytes.yaml:2:8: this byte isn't UTF-8: save the file as UTF-8
      2 |   uri: ??[31m
        |        ^
" "$work/bytes.yaml"

check missing-file-is-said 1 'none.yaml: bad, 1 mistake, 0 warnings
' "none.yaml: can't be read (No such file or directory): create it, or name another file
" "$work/none.yaml"

"$ctl" check --effective "$work/good.yaml" >"$work/again.yaml" 2>/dev/null
check effective-configuration-can-be-read-again 0 "$(cat "$work/again.yaml")
" 'again.yaml: good, mode act, 1 guest rule, 0 warnings
' --effective "$work/again.yaml"

for arguments in "$work/good.yaml $work/bad.yaml" --efective; do
	# shellcheck disable=SC2086 # several arguments
	"$ctl" check $arguments >/dev/null 2>&1
	if [ $? = 2 ]; then
		echo "ok bad-usage-ends-with-2"
	else
		echo "not ok bad-usage-ends-with-2 - $arguments"
		fail=1
	fi
done
exit $fail
