/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Arithmetic on amounts and times that doesn't wrap around. Header only, any thread.
 */
#ifndef BALLAST_UTIL_NUM_H
#define BALLAST_UTIL_NUM_H

#include <stdint.h>

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/** less() - a - b, or 0. */
static inline uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

#endif
