/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the benchmark has measured: for each cell and repetition the values of the lines that it
 * printed. The caller owns a struct bench; everything in it lives until bench_done().
 *
 * A record is text, a line each of "CELL <tab> REPETITION <tab> LINE": LINE is what the cell printed,
 * "NAME key=number ...", and at the end of a run "end status=0 seconds=N". A run counts when its end
 * says that it went well; of several runs of a cell and repetition the last one counts.
 */
#ifndef BALLAST_TESTS_BENCH_DATA_H
#define BALLAST_TESTS_BENCH_DATA_H

#include <stdbool.h>
#include <stddef.h>

struct value {
	char *line, *key; /* NAME, or NAME#2 and so on, and its key */
	double number;
};

struct run {
	struct value *values;
	size_t n_values;
	bool good;
};

struct cell {
	char *name; /* "TEST key=value ..." */
	bool wanted; /* part of this run of the benchmark */
	struct run *runs; /* by repetition, from 1: runs[0] is not used */
	size_t n_runs; /* greatest repetition, and one */
	unsigned int failed; /* runs that ended badly, also those that were repeated */
};

struct bench {
	struct cell *cells; /* in the order of the catalogue */
	size_t n_cells;
	size_t repeat;
};

/**
 * bench_catalogue() - add the cells of a file, one a line, that is all that there are.
 * bench_wanted() - mark those of a file as part of this run.
 * bench_results() - read a record; lines of cells that are not in the catalogue are left out.
 *
 * Return: 0, -ENOENT for a cell that is not in the catalogue, or another negative errno; what is
 * wrong is in @problem then.
 */
int bench_catalogue(struct bench *bench, const char *path, char *problem, size_t size);
int bench_wanted(struct bench *bench, const char *path, char *problem, size_t size);
int bench_results(struct bench *bench, const char *path, char *problem, size_t size);
void bench_done(struct bench *bench);

/** bench_cell() - the cell of that name, NULL if there is none. */
struct cell *bench_cell(const struct bench *bench, const char *name);

/** cell_run() - a repetition that went well, else NULL. */
const struct run *cell_run(const struct cell *cell, size_t rep);

/** cell_setting() - the value of a setting in the cell's name, copied to @buf; false without it. */
bool cell_setting(const struct cell *cell, const char *key, char *buf, size_t size);

/**
 * run_value() - a number by "key" or "NAME.key".
 *
 * Return: 0, -ENOENT without it, -ENOTUNIQ when several lines have that key.
 */
int run_value(const struct run *run, const char *key, double *ret);

#endif
