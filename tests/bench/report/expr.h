/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Formulas over what was measured. An expression has numbers, + - * / ( ), min(a, b), max(a, b),
 * references, and median(e), most(e), least(e) and apart(e, e), which are over all repetitions.
 *
 * A reference is [TEST setting=value ... KEY], the cell as its group prints it and a key of what it
 * printed, or [KEY] for the cell that the expression is of. Pure, any thread.
 */
#ifndef BALLAST_TESTS_BENCH_EXPR_H
#define BALLAST_TESTS_BENCH_EXPR_H

#include "tests/bench/report/data.h"
#include "tests/bench/report/stat.h"

/**
 * expr_summary() - the median and interval over all repetitions in which an expression has a value.
 * Where median() and its like are over fewer repetitions, so many count.
 * @own: the cell of [KEY], or NULL.
 * @ret_values: where not NULL, the values; room for bench->repeat.
 *
 * Return: 0; -ENODATA when in no repetition all that it refers to was measured; -EINVAL when the
 * expression is wrong, refers to what does not exist, or by its key alone to what several lines have.
 * Why is in @problem.
 */
int expr_summary(const struct bench *bench, const struct cell *own, const char *text,
		 struct summary *ret, double *ret_values, char *problem, size_t size);

/** expr_is_wanted() - whether all cells that an expression refers to are part of this run. */
bool expr_is_wanted(const struct bench *bench, const char *text);

#endif
