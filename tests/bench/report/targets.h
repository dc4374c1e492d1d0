/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What has to hold: lines of "name: expression <= bound" (or >= or =), see tests/bench/targets. The
 * median of an expression over at least five repetitions is held against the bound.
 */
#ifndef BALLAST_TESTS_BENCH_TARGETS_H
#define BALLAST_TESTS_BENCH_TARGETS_H

#include <stdio.h>

#include "tests/bench/report/data.h"

struct verdicts {
	unsigned int met, missed;
	unsigned int unasked; /* of cells that were not part of this run */
};

/**
 * targets_check() - judge every line of a file and print a line for each.
 *
 * Return: 0 whether they are met or not; a negative errno and the reason in @problem when the file
 * can't be read or a line is wrong.
 */
int targets_check(const struct bench *bench, const char *path, FILE *to, struct verdicts *ret,
		  char *problem, size_t size);

#endif
