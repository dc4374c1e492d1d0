/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The plots of a table, as scripts for gnuplot with their data inside: bars or curves of medians,
 * with the interval as a line and every repetition as a dot.
 */
#ifndef BALLAST_TESTS_BENCH_PLOT_H
#define BALLAST_TESTS_BENCH_PLOT_H

#include "tests/bench/report/table.h"

/**
 * plot_table() - write FOLDER/TABLE-N.gp for each of its plots; they draw FOLDER/TABLE-N.svg.
 *
 * Return: 0, or a negative errno and the reason in @problem.
 */
int plot_table(const struct table *table, const struct bench *bench, const char *folder,
	       char *problem, size_t size);

#endif
