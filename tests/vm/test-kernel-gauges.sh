#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The gauges of the patched kernel against counting page by page, while memory is used, reclaimed,
# swapped and moved in random ways, and its events against what was done: see
# tests/workloads/gauge-mixture.c and reclaim-events.c.
#
#	SEED=N ROUNDS=N	another run than the usual one

set -uo pipefail
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/guest.sh"

vm_kernel || exit 1
rc=0
vm_run 256 reclaim-events <<-'END' || rc=1
	reclaim-events /data
END
for mixed in 1 0; do
	vm_run 256 gauge-mixture <<-END || rc=1
		gauge-mixture --seed ${SEED:-1} --rounds ${ROUNDS:-12} --mixed $mixed /data
	END
done
exit "$rc"
