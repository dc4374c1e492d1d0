/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Minchan Kim's loop of 2015: some processes fill memory of their own in a single pass, give it all
 * up, and do that again and again; together they need more than there is. Memory that was swapped
 * out meanwhile and is given up needn't be read back when it is written again.
 *
 *	free-loop [--processes N] [--mib N] [--loops N] [--free 0|1]
 *
 * --free 1 gives up with MADV_FREE, 0 with MADV_DONTNEED. He had 12 processes of 512 MiB and five
 * loops in 3 GiB. Not filled with zeros, for which the kernel takes no room in swap.
 */
#include <sys/wait.h>

#include "tests/workloads/vmstat.h"
#include "tests/workloads/work.h"

enum { PROCESSES, MIB, LOOPS, FREE, N_OPTIONS };

/* Wait until the other end of the pipe is closed by all who have it. */
static void wait_for_start(const int *pipe_ends)
{
	char nothing;

	close(pipe_ends[1]);
	while (read(pipe_ends[0], &nothing, 1) < 0 && errno == EINTR)
		;
}

static void fill_and_give_up(const struct work_option *options, const int *start)
{
	uint64_t size = options[MIB].value * WORK_MIB;
	unsigned char *p = work_map(size);
	int advice = options[FREE].value ? MADV_FREE : MADV_DONTNEED;

	wait_for_start(start);
	for (uint64_t i = 0; i < options[LOOPS].value; i++) {
		memset(p, 0x5a, size);
		if (madvise(p, size, advice) < 0)
			work_die("madvise: %s", strerror(errno));
	}
	_exit(0);
}

/* How many of the processes were killed. */
static uint64_t wait_for_all(const struct work_option *options)
{
	uint64_t killed = 0;
	int status;

	for (uint64_t i = 0; i < options[PROCESSES].value; i++) {
		if (wait(&status) < 0)
			work_die("wait: %s", strerror(errno));
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			killed++;
	}
	return killed;
}

int main(int argc, char **argv)
{
	static const char keys[] = "pswpin pswpout pglazyfree pglazyfreed pglazyfree_swap "
				   "swpin_zero swpout_zero pgsteal_anon pgsteal_file oom_kill";
	struct work_option options[N_OPTIONS] = {
		[PROCESSES] = { "--processes", 4 },
		[MIB] = { "--mib", 110 },
		[LOOPS] = { "--loops", 5 },
		[FREE] = { "--free", 1 },
	};
	struct vmstat before, after;
	struct rusage usage;
	uint64_t begin, us, lost;
	char changes[400];
	int start[2];

	work_options(argc, argv, options, N_OPTIONS, NULL);
	if (pipe(start) < 0)
		work_die("pipe: %s", strerror(errno));
	for (uint64_t i = 0; i < options[PROCESSES].value; i++) {
		pid_t pid = fork();

		if (pid < 0)
			work_die("fork: %s", strerror(errno));
		if (pid == 0)
			fill_and_give_up(options, start);
	}
	vmstat_read(&before);
	begin = work_now_usec();
	close(start[1]);
	lost = wait_for_all(options);
	us = work_now_usec() - begin;
	vmstat_read(&after);
	getrusage(RUSAGE_CHILDREN, &usage);
	work_say(
		"free-loop killed=%llu%s majflt=%ld minflt=%ld user_ms=%llu system_ms=%llu ms=%llu",
		(unsigned long long)lost,
		vmstat_text(&before, &after, keys, changes, sizeof(changes)), usage.ru_majflt,
		usage.ru_minflt,
		(unsigned long long)(usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000),
		(unsigned long long)(usage.ru_stime.tv_sec * 1000 + usage.ru_stime.tv_usec / 1000),
		(unsigned long long)(us / 1000));
	return lost ? 1 : 0;
}
