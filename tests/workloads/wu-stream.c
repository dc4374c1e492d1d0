/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file server as in Wu Fengguang's test of 2009: reads of 110 pages, each 100 pages after the one
 * before, so that a tenth of what is read is read twice and gets to the active list. The file is
 * sparse: nothing is read from a disk. Ends by SIGTERM, or at the file's end, and says how far it
 * came.
 *
 *	wu-stream [--size MIB] [--rate MIB_S] [--every MIB] [--pages N] [--stride N] [FILE]
 *
 * With --every it waits after so many MiB until a round of exec-rounds, which has the same option, is
 * over.
 *
 * --rate 0 reads as fast as it can. An unthrottled stream turns over the lists of a small guest many
 * times a second, which no disk can, and nothing that is used once in seconds survives that.
 */
#include <signal.h>

#include "tests/workloads/steps.h"
#include "tests/workloads/work.h"

enum { SIZE, RATE, EVERY, PAGES, STRIDE, N_OPTIONS };

/* How far it may lag behind its rate and catch up; beyond that the time is lost. */
#define LAG_USEC 200000

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static int make_sparse(const char *path, uint64_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		work_die("%s: %s", path, strerror(errno));
	return fd;
}

/* When the next read is due. */
static uint64_t next_due(uint64_t due, uint64_t now, uint64_t bytes, uint64_t rate)
{
	if (rate == 0)
		return now;
	due += bytes * 1000000 / (rate * WORK_MIB);
	return due + LAG_USEC < now ? now : due;
}

static void keep_step(struct steps *steps, uint64_t mib, uint64_t every)
{
	if (every == 0)
		return;
	steps->mib = mib;
	while (!ended && steps->rounds < mib / every)
		steps_rest();
}

int main(int argc, char **argv)
{
	struct work_option options[N_OPTIONS] = {
		[SIZE] = { "--size", 3072 },	[RATE] = { "--rate", 30 },
		[EVERY] = { "--every", 0 },	[PAGES] = { "--pages", 110 },
		[STRIDE] = { "--stride", 100 },
	};
	const struct sigaction action = { .sa_handler = end };
	const char *path = "/data/sparse";
	uint64_t begin, due, reads = 0, bytes, size;
	struct steps *steps;
	unsigned char *buffer;
	int fd;

	work_options(argc, argv, options, N_OPTIONS, &path);
	sigaction(SIGTERM, &action, NULL);
	size = options[SIZE].value * WORK_MIB;
	bytes = options[PAGES].value * WORK_PAGE;
	buffer = work_map(bytes);
	steps = steps_map();
	fd = make_sparse(path, size);
	work_say("ready wu-stream");
	due = begin = work_now_usec();
	for (uint64_t at = 0; !ended && at + bytes <= size;
	     at += options[STRIDE].value * WORK_PAGE) {
		if (pread(fd, buffer, bytes, (off_t)at) != (ssize_t)bytes)
			work_die("%s: cannot be read at %llu", path, (unsigned long long)at);
		reads++;
		keep_step(steps, reads * bytes / WORK_MIB, options[EVERY].value);
		due = next_due(due, work_now_usec(), bytes, options[RATE].value);
		while (!ended && work_now_usec() < due)
			work_sleep_until(due);
	}
	work_say("wu-stream reads=%llu mib=%llu ms=%llu", (unsigned long long)reads,
		 (unsigned long long)(reads * bytes / WORK_MIB),
		 (unsigned long long)((work_now_usec() - begin) / 1000));
	return 0;
}
