# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034 # who sources it ends with $fail
#
# How test scripts say what holds and what doesn't. Those that source it end with `exit $fail`.

# shellcheck source=tests/until.sh
. "${BASH_SOURCE[0]%/*}/until.sh"

fail=0

# on_failure: what helps to understand a check that failed; to be replaced.
on_failure() { :; }

# check NAME COMMAND...: it holds if the command succeeds.
check()
{
	local name=$1
	shift
	if "$@" >/dev/null; then
		echo "ok $name"
	else
		echo "not ok $name - $*"
		on_failure 2>&1 | sed 's/^/#  /'
		fail=1
	fi
}

# say NAME TEXT: it holds if there is nothing to say.
say()
{
	if [ -z "$2" ]; then
		echo "ok $1"
	else
		printf '%s\n' "$2"
		echo "not ok $1 - see above"
		fail=1
	fi
}
