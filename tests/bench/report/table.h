/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A table of the benchmark, as a file in tests/bench/tables describes it: which cells are its rows,
 * which expressions its columns, what the seed's author had, and which plots are drawn of it. The
 * directives are described in tests/bench/tables/README. The caller owns a struct table.
 */
#ifndef BALLAST_TESTS_BENCH_TABLE_H
#define BALLAST_TESTS_BENCH_TABLE_H

#include <stdio.h>

#include "tests/bench/report/data.h"
#include "tests/bench/report/stat.h"

#define TABLE_MAX_ROWS	  128
#define TABLE_MAX_COLUMNS 16
#define TABLE_MAX_LINES	  64
#define TABLE_MAX_PLOTS	  8

struct column {
	char *header, *text; /* an expression, or with @given what was given, a word a row */
	bool given;
};

struct row {
	const struct cell *cell; /* NULL when it is a number */
	int number;
};

/* One cell of the printed table. */
struct entry {
	bool measured;
	struct summary summary;
	double *values;
};

struct table {
	char *name, *title;
	struct row rows[TABLE_MAX_ROWS];
	struct column columns[TABLE_MAX_COLUMNS];
	char *lines[TABLE_MAX_LINES]; /* seed and note, with the directive */
	char *plots[TABLE_MAX_PLOTS];
	int digits; /* of a row's number in an expression, with zeros in front */
	size_t n_rows, n_columns, n_lines, n_plots;
};

/**
 * table_read() - read the description of a table; its rows are cells of @bench that are wanted.
 *
 * Return: 0, or a negative errno and the reason in @problem.
 */
int table_read(struct table *table, const struct bench *bench, const char *path, char *problem,
	       size_t size);
void table_done(struct table *table);

/** table_is_wanted() - whether any of its rows was part of this run. */
bool table_is_wanted(const struct table *table, const struct bench *bench);

/**
 * table_entry() - what stands in a row and a column; entry_done() frees its values.
 *
 * Return: 0; -EINVAL and the reason in @problem for an expression that is wrong.
 */
int table_entry(const struct table *table, const struct bench *bench, size_t row, size_t column,
		struct entry *ret, char *problem, size_t size);
void entry_done(struct entry *entry);

/** table_column() - the column with that header, table->n_columns if there is none. */
size_t table_column(const struct table *table, const char *header);

/** table_print() - print it. Return: as table_entry(). */
int table_print(const struct table *table, const struct bench *bench, FILE *to, char *problem,
		size_t size);

/** format_number() - as tables show it. */
void format_number(double number, char *buf, size_t size);

#endif
