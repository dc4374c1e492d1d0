/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Time: microseconds of CLOCK_MONOTONIC everywhere, read only at the edges and handed down.
 * Header only, any thread.
 */
#ifndef BALLAST_UTIL_TIME_H
#define BALLAST_UTIL_TIME_H

#include <stdint.h>
#include <time.h>

#define USEC_PER_MSEC UINT64_C(1000)
#define USEC_PER_SEC  UINT64_C(1000000)
#define NSEC_PER_USEC 1000

/** now_us() - the monotonic time in microseconds; never 0, which means "never" everywhere. */
static inline uint64_t now_us(void)
{
	struct timespec ts = { 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / NSEC_PER_USEC + 1;
}

/** timespec_of() - a time of now_us() as the system takes it; @us in microseconds. */
static inline struct timespec timespec_of(uint64_t us)
{
	return (struct timespec){ .tv_sec = (time_t)(us / USEC_PER_SEC),
				  .tv_nsec = (long)(us % USEC_PER_SEC * NSEC_PER_USEC) };
}

/** realtime_offset_us() - CLOCK_REALTIME minus CLOCK_MONOTONIC at present; steps with the clock. */
static inline int64_t realtime_offset_us(void)
{
	struct timespec ts = { 0 };

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * (int64_t)USEC_PER_SEC + ts.tv_nsec / NSEC_PER_USEC - (int64_t)now_us();
}

#endif
