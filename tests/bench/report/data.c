// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/bench/report/data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/cleanup.h"
#include "tests/bench/report/lines.h"

#define MAX_REPETITIONS 1000

static void *grow(void *array, size_t n, size_t size)
{
	void *more = reallocarray(array, n, size);

	if (!more)
		abort();
	return more;
}

static char *copy(const char *text)
{
	char *p = strdup(text);

	if (!p)
		abort();
	return p;
}

struct cell *bench_cell(const struct bench *bench, const char *name)
{
	for (size_t i = 0; i < bench->n_cells; i++)
		if (strcmp(bench->cells[i].name, name) == 0)
			return &bench->cells[i];
	return NULL;
}

static void empty_run(struct run *run)
{
	for (size_t i = 0; i < run->n_values; i++) {
		free(run->values[i].line);
		free(run->values[i].key);
	}
	free(run->values);
	*run = (struct run){ .good = false };
}

void bench_done(struct bench *bench)
{
	for (size_t i = 0; i < bench->n_cells; i++) {
		struct cell *cell = &bench->cells[i];

		for (size_t k = 0; k < cell->n_runs; k++)
			empty_run(&cell->runs[k]);
		free(cell->runs);
		free(cell->name);
	}
	free(bench->cells);
	*bench = (struct bench){ .n_cells = 0 };
}

static int add_cell(void *arg, char *line, char *problem, size_t size)
{
	struct bench *bench = arg;

	if (bench_cell(bench, line)) {
		snprintf(problem, size, "the cell '%s' is there twice", line);
		return -EEXIST;
	}
	bench->cells = grow(bench->cells, bench->n_cells + 1, sizeof(*bench->cells));
	bench->cells[bench->n_cells++] = (struct cell){ .name = copy(line) };
	return 0;
}

static int want_cell(void *arg, char *line, char *problem, size_t size)
{
	struct cell *cell = bench_cell(arg, line);

	if (!cell) {
		snprintf(problem, size, "there is no cell '%s'", line);
		return -ENOENT;
	}
	cell->wanted = true;
	return 0;
}

static struct run *make_run(struct cell *cell, size_t rep)
{
	if (rep >= cell->n_runs) {
		cell->runs = grow(cell->runs, rep + 1, sizeof(*cell->runs));
		memset(cell->runs + cell->n_runs, 0,
		       (rep + 1 - cell->n_runs) * sizeof(*cell->runs));
		cell->n_runs = rep + 1;
	}
	return &cell->runs[rep];
}

/* What a line is called: its first word, with a number from the second one of that name. */
static char *line_name(const struct run *run, const char *word)
{
	char name[128];

	snprintf(name, sizeof(name), "%s", word);
	for (unsigned int again = 2;; again++) {
		bool used = false;

		for (size_t i = 0; i < run->n_values; i++)
			used = used || strcmp(run->values[i].line, name) == 0;
		if (!used)
			return copy(name);
		snprintf(name, sizeof(name), "%s#%u", word, again);
	}
}

static void add_values(struct run *run, char *text)
{
	char *save = NULL, *word = strtok_r(text, " ", &save), *end;
	_cleanup_free_ char *name = word ? line_name(run, word) : NULL;

	while (name && (word = strtok_r(NULL, " ", &save))) {
		char *equals = strchr(word, '=');
		double number;

		if (!equals)
			continue;
		*equals = '\0';
		number = strtod(equals + 1, &end);
		if (end == equals + 1 || *end)
			continue;
		run->values = grow(run->values, run->n_values + 1, sizeof(*run->values));
		run->values[run->n_values++] =
			(struct value){ .line = copy(name), .key = copy(word), .number = number };
	}
}

static int add_result(void *arg, char *line, char *problem, size_t size)
{
	char *rep_text = strchr(line, '\t'), *text = rep_text ? strchr(rep_text + 1, '\t') : NULL;
	struct cell *cell;
	struct run *run;
	double status;
	size_t rep;

	if (text) {
		*rep_text++ = '\0';
		*text++ = '\0';
	}
	rep = text ? strtoul(rep_text, NULL, 10) : 0;
	if (rep == 0 || rep > MAX_REPETITIONS) {
		snprintf(problem, size, "'%s' is no line of a record", line);
		return -EINVAL;
	}
	cell = bench_cell(arg, line);
	if (!cell)
		return 0;
	run = make_run(cell, rep);
	if (strcmp(text, "begin") == 0) {
		empty_run(run);
		return 0;
	}
	add_values(run, text);
	if (strncmp(text, "end", 3) == 0) {
		run->good = run_value(run, "end.status", &status) == 0 && status == 0;
		cell->failed += !run->good;
	}
	return 0;
}

int bench_catalogue(struct bench *bench, const char *path, char *problem, size_t size)
{
	return lines_each(path, add_cell, bench, problem, size);
}

int bench_wanted(struct bench *bench, const char *path, char *problem, size_t size)
{
	return lines_each(path, want_cell, bench, problem, size);
}

int bench_results(struct bench *bench, const char *path, char *problem, size_t size)
{
	return lines_each(path, add_result, bench, problem, size);
}

const struct run *cell_run(const struct cell *cell, size_t rep)
{
	return rep < cell->n_runs && cell->runs[rep].good ? &cell->runs[rep] : NULL;
}

bool cell_setting(const struct cell *cell, const char *key, char *buf, size_t size)
{
	size_t n = strlen(key);

	for (const char *p = cell->name; (p = strchr(p, ' '));) {
		p++;
		if (strncmp(p, key, n) == 0 && p[n] == '=') {
			snprintf(buf, size, "%.*s", (int)strcspn(p + n + 1, " "), p + n + 1);
			return true;
		}
	}
	return false;
}

int run_value(const struct run *run, const char *key, double *ret)
{
	const char *dot = strrchr(key, '.');
	size_t found = 0;

	for (size_t i = 0; i < run->n_values; i++) {
		const struct value *value = &run->values[i];
		const char *line = value->line;

		if (dot && (strlen(line) != (size_t)(dot - key) ||
			    strncmp(line, key, (size_t)(dot - key)) != 0))
			continue;
		if (strcmp(value->key, dot ? dot + 1 : key) != 0)
			continue;
		if (found++ == 0)
			*ret = value->number;
	}
	return found == 0 ? -ENOENT : found > 1 ? -ENOTUNIQ : 0;
}
