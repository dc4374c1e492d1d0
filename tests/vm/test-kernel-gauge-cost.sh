#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The gauge of executable memory costs at most 10 % where it costs most, a loop that maps a file,
# touches every page and unmaps it. Counted in instructions (QEMU's -icount), which are the same on
# every machine, and held against those of the unpatched kernel: tests/bench/cells/gauge.sh
# measures that, too, but has to build it first. BASELINE says what it was for the pinned version.

set -uo pipefail
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/guest.sh"

baseline=${BASELINE:-863}

vm_kernel || exit 1
rounds=$(BALLAST_ACCEL=tcg VM_SWAP=0 VM_CPUS=1 VM_QEMU='-icount shift=0,sleep=off' \
	vm_run 256 exec-map-loop <<-'END'
		yes 'not zero' | head -c 16777216 >/data/text
		exec-map-loop --exec 1 --loops 8 --rounds 5 /data/text
	END
)
cost=$(sed -n 's/.*ns_per_page=//p' <<<"$rounds" | sort -n | sed -n 3p)
percent=$(awk -v p="${cost:-0}" -v u="$baseline" 'BEGIN { printf "%.1f", p / u * 100 }')
echo "# measured: instructions per page $cost, unpatched $baseline: $percent %"
# Below the baseline it would be the baseline that is wrong.
if [ -n "$cost" ] && awk -v x="$percent" 'BEGIN { exit !(x >= 100 && x <= 110) }'; then
	echo "ok exec-gauge-costs-at-most-10-percent - $percent %"
else
	echo "not ok exec-gauge-costs-at-most-10-percent - ${cost:-no result}, unpatched $baseline"
	exit 1
fi
