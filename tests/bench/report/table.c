// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/bench/report/table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/cleanup.h"
#include "tests/bench/report/expr.h"
#include "tests/bench/report/lines.h"

#define LABEL 256

static char *copy(const char *text)
{
	char *p = strdup(text);

	if (!p)
		abort();
	return p;
}

/* Does a cell's name have all the words of a pattern: its test first, then settings. */
static bool matches(const struct cell *cell, const char *pattern)
{
	char words[256], value[64], *save = NULL, *word;
	size_t n;

	snprintf(words, sizeof(words), "%s", pattern);
	word = strtok_r(words, " ", &save);
	n = word ? strlen(word) : 0;
	if (!word || strncmp(cell->name, word, n) != 0 || (cell->name[n] && cell->name[n] != ' '))
		return false;
	while ((word = strtok_r(NULL, " ", &save))) {
		char *equals = strchr(word, '=');

		if (!equals)
			return false;
		*equals = '\0';
		if (!cell_setting(cell, word, value, sizeof(value)) ||
		    strcmp(value, equals + 1) != 0)
			return false;
	}
	return true;
}

static int add_cells(struct table *table, const struct bench *bench, const char *pattern)
{
	bool any = false;

	for (size_t i = 0; i < bench->n_cells; i++) {
		if (!matches(&bench->cells[i], pattern))
			continue;
		any = true;
		if (!bench->cells[i].wanted)
			continue;
		if (table->n_rows == TABLE_MAX_ROWS)
			return -E2BIG;
		table->rows[table->n_rows++].cell = &bench->cells[i];
	}
	return any ? 0 : -ENOENT;
}

static int add_numbers(struct table *table, const char *text)
{
	int from, to;

	if (sscanf(text, "%d %d", &from, &to) != 2 || to < from)
		return -EINVAL;
	table->digits = (int)strcspn(text, " ");
	for (int i = from; i <= to; i++) {
		if (table->n_rows == TABLE_MAX_ROWS)
			return -E2BIG;
		table->rows[table->n_rows++].number = i;
	}
	return 0;
}

static int add_column(struct table *table, char *text, bool given)
{
	char *space = strchr(text, ' ');

	if (!space)
		return -EINVAL;
	if (table->n_columns == TABLE_MAX_COLUMNS)
		return -E2BIG;
	*space = '\0';
	table->columns[table->n_columns++] =
		(struct column){ .header = copy(text), .text = copy(space + 1), .given = given };
	return 0;
}

static int add_text(char **texts, size_t *n, size_t most, const char *text)
{
	if (*n == most)
		return -E2BIG;
	texts[(*n)++] = copy(text);
	return 0;
}

static bool is(const char *line, size_t n, const char *word)
{
	return strlen(word) == n && strncmp(line, word, n) == 0;
}

static int directive(struct table *table, const struct bench *bench, char *line)
{
	size_t n = strcspn(line, " ");
	char *rest = line[n] ? line + n + 1 : line + n;

	if (is(line, n, "seed") || is(line, n, "note"))
		return add_text(table->lines, &table->n_lines, TABLE_MAX_LINES, line);
	if (!*rest)
		return -EINVAL;
	if (is(line, n, "title")) {
		free(table->title);
		table->title = copy(rest);
		return 0;
	}
	if (is(line, n, "cells"))
		return add_cells(table, bench, rest);
	if (is(line, n, "each"))
		return add_numbers(table, rest);
	if (is(line, n, "column"))
		return add_column(table, rest, false);
	if (is(line, n, "given"))
		return add_column(table, rest, true);
	if (is(line, n, "plot"))
		return add_text(table->plots, &table->n_plots, TABLE_MAX_PLOTS, rest);
	return -EINVAL;
}

struct reading {
	struct table *table;
	const struct bench *bench;
};

static int take_directive(void *arg, char *line, char *why, size_t size)
{
	const struct reading *reading = arg;
	int r = directive(reading->table, reading->bench, line);

	if (r < 0)
		snprintf(why, size, "'%s': %s", line,
			 r == -ENOENT  ? "there is no such cell"
			 : r == -E2BIG ? "too many"
				       : "what is that?");
	return r;
}

int table_read(struct table *table, const struct bench *bench, const char *path, char *problem,
	       size_t size)
{
	struct reading reading = { .table = table, .bench = bench };
	const char *base = strrchr(path, '/');

	*table = (struct table){ .name = copy(base ? base + 1 : path), .title = copy("") };
	return lines_each(path, take_directive, &reading, problem, size);
}

void table_done(struct table *table)
{
	for (size_t i = 0; i < table->n_columns; i++) {
		free(table->columns[i].header);
		free(table->columns[i].text);
	}
	for (size_t i = 0; i < table->n_lines; i++)
		free(table->lines[i]);
	for (size_t i = 0; i < table->n_plots; i++)
		free(table->plots[i]);
	free(table->name);
	free(table->title);
}

/* A table of numbers is wanted when all cells that its columns speak of are. */
bool table_is_wanted(const struct table *table, const struct bench *bench)
{
	for (size_t i = 0; i < table->n_columns; i++)
		if (!table->columns[i].given && !expr_is_wanted(bench, table->columns[i].text))
			return false;
	return table->n_rows > 0;
}

size_t table_column(const struct table *table, const char *header)
{
	size_t i = 0;

	while (i < table->n_columns && strcmp(table->columns[i].header, header) != 0)
		i++;
	return i;
}

void entry_done(struct entry *entry)
{
	free(entry->values);
	*entry = (struct entry){ .measured = false };
}

/* An expression with the row's number for each '$'. */
static void with_number(const char *text, int digits, int number, char *buf, size_t size)
{
	size_t n = 0;

	for (; *text && n + 16 < size; text++)
		n += *text == '$' ? (size_t)snprintf(buf + n, size - n, "%0*d", digits, number)
				  : (size_t)snprintf(buf + n, size - n, "%c", *text);
	buf[n] = '\0';
}

int table_entry(const struct table *table, const struct bench *bench, size_t row, size_t column,
		struct entry *ret, char *problem, size_t size)
{
	const struct row *at = &table->rows[row];
	char text[1024];
	int r;

	with_number(table->columns[column].text, table->digits, at->number, text, sizeof(text));
	ret->values = calloc(bench->repeat + 1, sizeof(*ret->values));
	if (!ret->values)
		return -ENOMEM;
	r = expr_summary(bench, at->cell, text, &ret->summary, ret->values, problem, size);
	ret->measured = r == 0;
	return r == -ENODATA ? 0 : r;
}

void format_number(double number, char *buf, size_t size)
{
	double size_of = fabs(number);

	if (size_of >= 100 || number == round(number))
		snprintf(buf, size, "%.0f", number);
	else if (size_of >= 10)
		snprintf(buf, size, "%.1f", number);
	else if (size_of >= 0.1)
		snprintf(buf, size, "%.3f", number);
	else
		snprintf(buf, size, "%.4f", number);
}

static void format_entry(const struct entry *entry, size_t repeat, char *buf, size_t size)
{
	const struct summary *summary = &entry->summary;
	char median[32], low[32], high[32], few[32] = "";

	if (!entry->measured) {
		snprintf(buf, size, "-");
		return;
	}
	format_number(summary->median, median, sizeof(median));
	format_number(summary->low, low, sizeof(low));
	format_number(summary->high, high, sizeof(high));
	if (summary->n < repeat)
		snprintf(few, sizeof(few), " n=%zu", summary->n);
	if (strcmp(low, high) == 0)
		snprintf(buf, size, "%s%s", median, few);
	else
		snprintf(buf, size, "%s (%s..%s)%s", median, low, high, few);
}

/* The n-th word of a text, "-" without it. */
static void word_of(const char *text, size_t n, char *buf, size_t size)
{
	while (n-- > 0) {
		text += strcspn(text, " ");
		text += strspn(text, " ");
	}
	snprintf(buf, size, "%.*s", (int)strcspn(text, " "), *text ? text : "-");
}

static int format_field(const struct table *table, const struct bench *bench, size_t row,
			size_t column, char *buf, size_t size, char *problem, size_t problem_size)
{
	struct entry entry = { .measured = false };
	int r = 0;

	if (table->columns[column].given) {
		word_of(table->columns[column].text, row, buf, size);
	} else {
		r = table_entry(table, bench, row, column, &entry, problem, problem_size);
		format_entry(&entry, bench->repeat, buf, size);
		entry_done(&entry);
	}
	return r;
}

static void label_of(const struct row *row, char *buf, size_t size)
{
	if (row->cell)
		snprintf(buf, size, "%s", row->cell->name);
	else
		snprintf(buf, size, "%d", row->number);
}

/* Fields of all rows, column by column with the label as the first. */
static int fill(const struct table *table, const struct bench *bench, char (*fields)[LABEL],
		size_t *widths, char *problem, size_t size)
{
	const size_t columns = table->n_columns + 1;
	int r;

	for (size_t row = 0; row < table->n_rows; row++)
		for (size_t i = 0; i < columns; i++) {
			char *field = fields[row * columns + i];

			if (i == 0) {
				label_of(&table->rows[row], field, LABEL);
			} else {
				r = format_field(table, bench, row, i - 1, field, LABEL, problem,
						 size);
				if (r < 0)
					return r;
			}
			if (strlen(field) > widths[i])
				widths[i] = strlen(field);
		}
	return 0;
}

static void print_lines(const struct table *table, const char *directive, const char *indent,
			FILE *to)
{
	size_t n = strlen(directive);

	for (size_t i = 0; i < table->n_lines; i++)
		if (strncmp(table->lines[i], directive, n) == 0)
			fprintf(to, "%s%s\n", indent,
				table->lines[i][n] ? table->lines[i] + n + 1 : "");
}

int table_print(const struct table *table, const struct bench *bench, FILE *to, char *problem,
		size_t size)
{
	const size_t columns = table->n_columns + 1;
	_cleanup_free_ char(*fields)[LABEL] = calloc(table->n_rows * columns, sizeof(*fields));
	size_t widths[TABLE_MAX_COLUMNS + 1] = { 0 };
	int r;

	if (!fields)
		return -ENOMEM;
	for (size_t i = 1; i < columns; i++)
		widths[i] = strlen(table->columns[i - 1].header);
	r = fill(table, bench, fields, widths, problem, size);
	if (r < 0)
		return r;
	fprintf(to, "== %s\n\n  %-*s", table->title, (int)widths[0], "");
	for (size_t i = 1; i < columns; i++)
		fprintf(to, "  %*s", (int)widths[i], table->columns[i - 1].header);
	for (size_t row = 0; row < table->n_rows; row++) {
		fprintf(to, "\n  %-*s", (int)widths[0], fields[row * columns]);
		for (size_t i = 1; i < columns; i++)
			fprintf(to, "  %*s", (int)widths[i], fields[row * columns + i]);
	}
	fputs("\n", to);
	print_lines(table, "note", "  ", to);
	print_lines(table, "seed", "  | ", to);
	fputs("\n", to);
	return 0;
}
