#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# shell.sh [KEY=VALUE]... [-- WORK ARGS...]: a shell in a lab with one guest, "guest", and ballastd
# in act mode with debug messages. Inside:
#
#	lab_ask guest cat /proc/meminfo		run a line in the guest
#	lab_guest other memory=256 -- grow	another guest; see lab.sh
#	lab_ctl status, lab_ctl explain guest	what ballastd says
#	virsh list				the private libvirt
#	ls $LAB_DIR/log				consoles, output of the workloads, logs
#
# The end of the shell ends it all.

# shellcheck source=tests/lab/lab.sh
. "$(dirname "${BASH_SOURCE[0]}")/lab.sh"
lab_enter "$@"
lab_start
lab_guest guest "$@"
cat >"$LAB_DIR/ballast.yaml" <<-EOF
	host:
	  mode: act
	  budget: ${BUDGET:-4GiB}
	defaults:
	  boot_grace: 1s
EOF
lab_daemon "$LAB_DIR/ballast.yaml" --log-level debug
lab_until 60 lab_ctl status >/dev/null || lab_fail "ballastd does not answer"
cat >"$LAB_DIR/bashrc" <<-EOF
	. "$LAB_TREE/tests/lab/lab.sh"
	set +u +o pipefail
	lab_pids=()
	PS1='lab \$ '
EOF
sed -n 's/^#\t/  /p' "$0"
bash --rcfile "$LAB_DIR/bashrc" -i
