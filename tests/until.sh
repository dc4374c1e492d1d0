# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Waiting for what comes true sooner or later; part of tests/tap.sh and tests/lab/lab.sh.

# until_true SECONDS CMD...: repeat CMD until it succeeds, for SECONDS at least: the second that has
# begun doesn't count.
until_true()
{
	local end=$((SECONDS + $1 + 1))
	shift
	until "$@" 2>/dev/null; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.1
	done
}
