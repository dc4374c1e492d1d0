#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The lab leaves nothing behind, however it ends: no process, no guest, no mount, no folder. The
# check is made from outside, by comparing the whole machine before and after; what others start
# meanwhile is told apart by the lab's folder, which is in every command line of the lab.

cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/ballast-test-lab.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
echo "$work/ballast-lab" >"$work/pattern"
failed=0

verdict()
{
	if [ "$1" = 0 ]; then
		echo "ok $2"
	else
		echo "not ok $2 - $3"
		failed=1
	fi
}

# A lab with one guest that tells when it is up and then waits.
cat >"$work/one-guest.sh" <<EOF
#!/bin/bash
. "$PWD/tests/lab/lab.sh"
lab_enter "\$@"
lab_start
lab_guest one memory=256 -- lazyfree-hold --lazyfree 16
lab_wait_work one || exit 1
lab_ask one cat /proc/meminfo >"$work/meminfo" || exit 1
echo "\$LAB_DIR" >"$work/up"
[ "\${1:-}" != stay ] || sleep 100
exit 7
EOF

start()
{
	rm -f "$work/up"
	TMPDIR=$work bash "$work/one-guest.sh" "$@" >"$work/output" 2>&1 &
	script=$!
}

wait_up()
{
	local end=$((SECONDS + 120))
	until [ -s "$work/up" ]; do
		if [ "$SECONDS" -ge "$end" ] || ! kill -0 "$script" 2>/dev/null; then
			verdict 1 "$1-lab-comes-up" "$(tail -n 5 "$work/output")"
			exit 1
		fi
		sleep 0.2
	done
	dir=$(cat "$work/up")
}

left_processes()
{
	# The pattern comes from a file, so that grep does not find itself.
	grep -l -a -s -F -f "$work/pattern" /proc/[0-9]*/cmdline
}

left_mounts()
{
	grep -F "$work/ballast-lab" /proc/self/mountinfo || true
	grep -w lab-run /proc/self/mountinfo || true
}

# gone NAME FOLDERS: yes if the lab's folder has to be gone, too.
gone()
{
	local end=$((SECONDS + 10))
	while [ -n "$(left_processes)" ] && [ "$SECONDS" -lt "$end" ]; do
		sleep 0.1
	done
	[ -z "$(left_processes)" ]
	verdict $? "$1-leaves-no-process" "$(left_processes | tr '\n' ' ')"
	[ -z "$(left_mounts)" ]
	verdict $? "$1-leaves-no-mount" "$(left_mounts)"
	[ "$2" = no ] || [ ! -e "$dir" ]
	verdict $? "$1-leaves-no-folder" "$dir is there"
}

start
wait_up normal-end
wait "$script"
rc=$?
[ "$rc" = 7 ]
verdict $? "status-is-that-of-the-script" "it is $rc"
grep -q MemTotal "$work/meminfo"
verdict $? "guest-answers" "no /proc/meminfo came"
gone normal-end yes

start stay
wait_up sigterm
[ -n "$(left_processes)" ]
verdict $? "a-running-lab-is-seen-by-this-test" "no process of it was found"
kill -TERM "$script"
wait "$script"
gone sigterm yes

start stay
wait_up sigkill
kill -KILL "$script"
wait "$script" 2>/dev/null
gone sigkill no

start
wait_up next-start
wait "$script"
[ -z "$(ls -d "$work"/ballast-lab.* 2>/dev/null)" ]
verdict $? "next-start-clears-what-a-killed-one-left" "$(ls -d "$work"/ballast-lab.* 2>/dev/null)"

exit $failed
