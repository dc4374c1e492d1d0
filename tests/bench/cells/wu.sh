# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# The tests of Wu Fengguang's patches of 2009, "make mapped executable pages the first class
# citizen", and of Nai Xia's answer: how each is set up, once, for the benchmark and for
# `make test`. To be sourced after tests/vm/guest.sh.
#
#	lru=0 level=1 cell_wu_streaming
#
# lru is 0 (classic) or 7 (multi-generational), level is vm.exec_protect (keep: leave it, for a kernel
# that hasn't got it), period the seconds from one use of the text to the next. Each prints the lines
# of its workloads, "NAME key=value ...", and takes sizes from variables with the names used here.

cells_wu()
{
	local level lru period test
	# Under MGLRU levels 0 and 1 are the same. Level 2 is most of all about MGLRU, but not only: in
	# the classic LRU a folio also counts as text when it was referenced while its rmap was contended,
	# or through a mapping that isn't executable. One test shows that it does no harm there.
	for test in wu-streaming wu-apps nai-xia; do
		for level in 0 1 2 3; do
			[ "$level" = 2 ] && [ "$test" != wu-streaming ] || echo "$test lru=0 level=$level"
		done
		for level in 1 2 3; do
			echo "$test lru=7 level=$level"
		done
	done
	for level in 1 2 3; do
		echo "hog lru=7 level=$level period=4"
	done
	for period in 2 8; do
		for level in 1 3; do
			echo "hog lru=7 level=$level period=$period"
		done
	done
	for level in 0 1 3; do
		echo "hog lru=0 level=$level period=4"
	done
	for level in 1 3; do
		echo "near-oom lru=7 level=$level"
		for lru in 0 7; do
			echo "all-text lru=$lru level=$level"
		done
	done
}

# What each guest begins with: the settings, and text that isn't in memory yet.
wu_begin()
{
	cat <<-END
		echo ${lru:-7} >/sys/kernel/mm/lru_gen/enabled || exit 1
		[ ${level:-1} = keep ] || echo ${level:-1} >/proc/sys/vm/exec_protect || exit 1
		exec-rounds --generate ${text:-16} /data/text
		[ ${control:-1} = 0 ] || cp /data/text /data/text.control
		sync
		echo 3 >/proc/sys/vm/drop_caches
	END
}

# wu_beside FIRST COMMAND: rounds of the text, and the command beside, which SIGTERM ends. FIRST is
# what begins: the text, before anything presses on it, or the command, when it takes its time.
wu_beside()
{
	local seconds=${period:-4} first=$1
	shift
	cat <<-END
		start_text()
		{
			exec-rounds --text ${text:-16} --control ${control:-1} --call 0 \
				--period ${seconds}000 \
				--rounds ${rounds:-$((24 / seconds > 4 ? 24 / seconds : 4))} \
				--warm ${warm:-0} --every ${every:-0} \
				/data/text >/tmp/text &
			text=\$!
		}
		start_command()
		{
			$* >/tmp/command &
			command=\$!
		}
		is_ready()
		{
			grep -q ready /tmp/$first || ! kill -0 \$$first
		}
		: >/tmp/text
		: >/tmp/command
		start_$first
		until is_ready; do sleep 0.1; done
		start_$([ "$first" = text ] && echo command || echo text)
		wait \$text
		kill \$command
		wait \$command
		grep -h -v ready /tmp/text /tmp/command
	END
}

# The file server: reads of 110 pages at a stride of 100, at a rate that a disk could have, beside
# text that is in use every 160 MiB, which is 4 s. Both keep step, so that a busy host changes
# nothing. "control_" is a twin of the text, mapped but not executable. The first rounds don't count:
# text that has just been mapped is the oldest of a list of active pages that is still small.
cell_wu_streaming()
{
	local warm=${warm:-3} every=${every:-160}
	vm_run "${memory:-128}" exec-rounds wu-stream < <(
		wu_begin
		wu_beside text wu-stream --rate "${rate:-40}" --stride "${stride:-100}" \
			--every "$every"
	)
}

# Anonymous memory that wants more than there is, with swap, beside the same text: level 1 loses a
# fifth to a third of it in a round.
cell_hog()
{
	vm_run "${memory:-128}" exec-rounds hog < <(
		wu_begin
		wu_beside command hog --mib "${hog:-95}" --think "${think:-10000}"
	)
}

# No swap, and text and anonymous memory that don't fit: is there progress, and does anything die?
# Some 16 of the 32 MiB of text find room; text that never gave way would have the hog killed.
cell_near_oom()
{
	VM_SWAP=0 text=${text:-32} hog=${hog:-82} period=${period:-2} control=0 cell_hog
}

# No swap, no hog, and text that is larger than all memory, which two processes call at once: is
# there progress where there is nothing but text to take? It is called, so that it is text that the
# processes run.
cell_all_text()
{
	VM_SWAP=0 vm_run "${memory:-64}" exec-rounds < <(
		text=${text:-72} control=0 wu_begin
		echo "exec-rounds --text ${text:-72} --rounds ${rounds:-4} --period 0 /data/text"
	)
}

# The desktop: programs with files and text of their own, executed one after another, and all visited
# after each start.
cell_wu_apps()
{
	vm_run "${memory:-128}" wu-apps <<-END
		echo ${lru:-7} >/sys/kernel/mm/lru_gen/enabled || exit 1
		echo ${level:-1} >/proc/sys/vm/exec_protect || exit 1
		wu-apps --apps ${apps:-14} --text ${text:-6} --anon ${anon:-8} --hot ${hot:-50}
	END
}

# A program that computes, with a small text, in less memory than it wants.
cell_nai_xia()
{
	vm_run "${memory:-128}" exec-rounds nai-xia < <(
		text=${text:-3} wu_begin
		echo "nai-xia --text $((${text:-3} * 1024)) --data ${data:-110} --steps ${steps:-1000}"
	)
}
