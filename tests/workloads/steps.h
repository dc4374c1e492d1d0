/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a stream and the rounds of a text keep step, whatever the speed of the host: a round comes
 * after so many MiB of the stream, and the stream waits until it is over. The lists of pages know
 * no clock, only what comes in. The counters are in a file that both map; any thread.
 */
#ifndef BALLAST_STEPS_H
#define BALLAST_STEPS_H

#include "tests/workloads/work.h"

#include <stdatomic.h>

struct steps {
	atomic_ullong mib; /* that the stream has read */
	atomic_ullong rounds; /* that are over */
};

/* The mapping stays until the program ends. */
static inline struct steps *steps_map(void)
{
	static const char path[] = "/tmp/steps";
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *steps;

	if (fd < 0 || ftruncate(fd, WORK_PAGE) < 0)
		work_die("%s: %s", path, strerror(errno));
	steps = mmap(NULL, WORK_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (steps == MAP_FAILED)
		work_die("%s: %s", path, strerror(errno));
	close(fd);
	return steps;
}

/* A moment of waiting for the other. */
static inline void steps_rest(void)
{
	work_sleep_until(work_now_usec() + 5000);
}

#endif
