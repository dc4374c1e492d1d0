#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The kselftests that come with the kernel's series (tools/testing/selftests/mm), in a guest with
# that kernel, under both LRUs. A test that is skipped has failed: the guest has all that they want,
# and a device that reports free pages.

set -uo pipefail
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/guest.sh"

vm_kernel || exit 1
selftests=$(dirname "$(realpath "$VM_KERNEL")")/selftests
names=$(cd "$selftests" 2>/dev/null && ls) || {
	echo "not ok kernel-selftests - there are none in $selftests"
	exit 1
}
work=$(mktemp -d "${TMPDIR:-/tmp}/ballast-selftests.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
# vm_run takes its programs, and one for itself, from the build folder.
mkdir "$work/workloads"
ln -s "$selftests"/* "$VM_BUILD/workloads/tsc-khz" "$work/workloads/"

# shellcheck disable=SC2086 # a list of names
VM_BUILD=$work VM_QEMU="-device virtio-balloon-pci,free-page-reporting=on" vm_run 256 $names <<-END >"$work/out"
	cd /data
	for lru in 0 7; do
		echo \$lru >/sys/kernel/mm/lru_gen/enabled
		for name in ${names//$'\n'/ }; do
			# This one switches the LRU itself.
			[ \$name\$lru != exec_protect7 ] || continue
			echo "selftest \$name-lru\$lru"
			\$name
			echo "status \$?"
		done
	done
	true
END
rc=$?

# From the TAP of each to this project's lines; what a plan has and no line says has failed.
awk '
	/^selftest / { test = $2; plan = seen = bad = 0; n++ }
	/^(not )?ok [0-9]+ / {
		good = $1 == "ok" && !/# SKIP/
		text = $0
		sub(/^(not )?ok [0-9]+ /, "", text)
		gsub(/[^A-Za-z0-9]+/, "_", text)
		print (good ? "ok " : "not ok ") test "_" text (good ? "" : " - " last)
		seen++
		failed += !good
		next
	}
	/^1\.\.[0-9]+/ { plan = substr($1, 4) + 0 }
	/^# / { last = substr($0, 3) }
	/^not ok guest/ { print; failed++ }
	/^status / {
		good = $2 == 0 && plan > 0 && seen == plan
		print (good ? "ok " : "not ok ") test "_ran_to_its_end" (good ? "" : \
			" - status " $2 ", " seen " of " plan " lines: " last)
		failed += !good
	}
	END { exit failed || !n }
' "$work/out" && exit "$rc"
exit 1
