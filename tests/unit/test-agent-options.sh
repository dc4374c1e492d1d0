#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# ballast-agent's command line: what makes no sense ends at once, with a word of what would.
cd "$(dirname "$0")/../.." || exit 1
agent=${BALLAST_BUILD:-build}/ballast-agent
fail=0

# refused NAME WORD ARGUMENT...: it ends with 1 and names WORD and --help
refused()
{
	local name=$1 word=$2 said rc
	shift 2
	said=$(timeout 5 "$agent" "$@" 2>&1 >/dev/null)
	rc=$?
	if [ "$rc" = 1 ] && [[ $said == *"$word"*--help* ]]; then
		echo "ok $name"
	else
		echo "not ok $name - status $rc: $said"
		fail=1
	fi
}

refused json-without-once-is-refused --once --json
refused an-unknown-option-is-refused --frob --frob
refused an-argument-is-refused frob frob
exit $fail
