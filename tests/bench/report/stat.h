/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Median and interval of a few repetitions. Pure, any thread.
 */
#ifndef BALLAST_TESTS_BENCH_STAT_H
#define BALLAST_TESTS_BENCH_STAT_H

#include <stddef.h>

struct summary {
	size_t n;
	double median, low, high;
	double coverage; /* probability that low ... high holds the true median */
};

/**
 * stat_summary() - the median of @n > 0 values and an interval of at least 90 % for it.
 * @values: sorted on return.
 *
 * The interval is between order statistics, the k-th least and the k-th greatest, and assumes
 * nothing about the values' distribution: it misses the true median only when fewer than k of the
 * values fell on one side of it, which has the probability 2 * sum(C(n, i), i < k) / 2^n. k is the
 * greatest with which that is at most 10 %. For n = 5 that is k = 1, least to greatest, 93.75 %.
 * Below five values there is no such k: the interval is least to greatest, @coverage is what it is.
 */
void stat_summary(double *values, size_t n, struct summary *ret);

#endif
