// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/bench/report/expr.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/cleanup.h"

struct parser {
	const struct bench *bench;
	const struct cell *own;
	const char *at;
	size_t rep;
	size_t least; /* repetitions that a function over all of them has found */
	int depth;
	char *problem;
	size_t size;
};

static int sum(struct parser *p, double *ret);

static void skip(struct parser *p)
{
	while (isspace((unsigned char)*p->at))
		p->at++;
}

static bool accept(struct parser *p, char c)
{
	skip(p);
	if (*p->at != c)
		return false;
	p->at++;
	return true;
}

static int expect(struct parser *p, char c)
{
	if (accept(p, c))
		return 0;
	snprintf(p->problem, p->size, "'%c' is missing before '%s'", c, p->at);
	return -EINVAL;
}

/* Take a reference apart: the cell's name (empty for the own one) and the key. */
static int split(const char *at, char *cell, char *key, size_t size, const char **ret_end)
{
	const char *end = strchr(at, ']');
	char *space;

	if (!end || (size_t)(end - at) >= size)
		return -EINVAL;
	snprintf(cell, size, "%.*s", (int)(end - at), at);
	space = strrchr(cell, ' ');
	snprintf(key, size, "%s", space ? space + 1 : cell);
	*(space ? space : cell) = '\0';
	*ret_end = end + 1;
	return 0;
}

static int reference(struct parser *p, double *ret)
{
	char name[256], key[256];
	const struct cell *cell = p->own;
	const struct run *run;
	int r;

	if (split(p->at, name, key, sizeof(name), &p->at) < 0) {
		snprintf(p->problem, p->size, "']' is missing after '[%.40s'", p->at);
		return -EINVAL;
	}
	if (name[0])
		cell = bench_cell(p->bench, name);
	if (!cell) {
		snprintf(p->problem, p->size, "there is no cell '%s'", name);
		return -EINVAL;
	}
	run = cell_run(cell, p->rep);
	if (!run) {
		snprintf(p->problem, p->size, "'%s' has no result in repetition %zu", cell->name,
			 p->rep);
		return -ENODATA;
	}
	r = run_value(run, key, ret);
	if (r == 0)
		return 0;
	snprintf(p->problem, p->size, "'%s' printed %s '%s' in repetition %zu%s", cell->name,
		 r == -ENOENT ? "no" : "more than one", key, p->rep,
		 r == -ENOENT ? "" : ", it has to be NAME.key");
	/* What was not measured can be absent; a key that means nothing is wrong. */
	return r == -ENOENT ? -ENODATA : -EINVAL;
}

/* An expression in all repetitions that have it; the position is behind it on return. */
static int collect(struct parser *p, double *values, size_t *ret_n)
{
	const char *begin = p->at, *end = begin;
	const size_t rep = p->rep;
	size_t n = 0;
	int r, last = -ENODATA;

	for (p->rep = 1; p->rep <= p->bench->repeat; p->rep++) {
		p->at = begin;
		r = sum(p, &values[n]);
		if (r == -EINVAL)
			return r;
		if (r == 0) {
			end = p->at;
			n++;
		} else {
			last = r;
		}
	}
	p->rep = rep;
	if (n == 0)
		return last;
	p->at = end;
	p->least = n < p->least ? n : p->least;
	*ret_n = n;
	return 0;
}

/* The repetitions of what stands in the parentheses. */
static int over_all(struct parser *p, const char *name, double *ret)
{
	_cleanup_free_ double *values = calloc(p->bench->repeat + 1, sizeof(*values));
	struct summary summary;
	size_t n = 0;
	int r;

	if (!values)
		return -ENOMEM;
	r = collect(p, values, &n);
	if (r < 0)
		return r;
	stat_summary(values, n, &summary);
	*ret = strcmp(name, "median") == 0 ? summary.median
	       : strcmp(name, "most") == 0 ? values[n - 1]
					   : values[0];
	return expect(p, ')');
}

/* apart(a, b): at most 0 where the repetitions of both are alike. */
static int apart(struct parser *p, double *ret)
{
	_cleanup_free_ double *values = calloc(2 * p->bench->repeat + 2, sizeof(*values));
	double *a, *b, gap, medians;
	struct summary of_a, of_b;
	size_t n_a = 0, n_b = 0;
	int r;

	if (!values)
		return -ENOMEM;
	a = values;
	b = values + p->bench->repeat + 1;
	r = collect(p, a, &n_a);
	r = r < 0 ? r : expect(p, ',');
	r = r < 0 ? r : collect(p, b, &n_b);
	r = r < 0 ? r : expect(p, ')');
	if (r < 0)
		return r;
	stat_summary(a, n_a, &of_a);
	stat_summary(b, n_b, &of_b);
	gap = fmax(a[0] - b[n_b - 1], b[0] - a[n_a - 1]);
	medians = fabs(of_a.median - of_b.median) - fmax(a[n_a - 1] - a[0], b[n_b - 1] - b[0]);
	*ret = fmax(gap, medians);
	return 0;
}

static int function(struct parser *p, double *ret)
{
	size_t n = strspn(p->at, "abcdefghijklmnopqrstuvwxyz");
	char name[16];
	double a, b;
	int r;

	snprintf(name, sizeof(name), "%.*s", (int)n, p->at);
	p->at += n;
	r = expect(p, '(');
	if (r < 0)
		return r;
	if (strcmp(name, "median") == 0 || strcmp(name, "most") == 0 || strcmp(name, "least") == 0)
		return over_all(p, name, ret);
	if (strcmp(name, "apart") == 0)
		return apart(p, ret);
	if (strcmp(name, "min") != 0 && strcmp(name, "max") != 0) {
		snprintf(p->problem, p->size, "there is no function '%s'", name);
		return -EINVAL;
	}
	r = sum(p, &a);
	r = r < 0 ? r : expect(p, ',');
	r = r < 0 ? r : sum(p, &b);
	r = r < 0 ? r : expect(p, ')');
	if (r == 0)
		*ret = name[1] == 'i' ? fmin(a, b) : fmax(a, b);
	return r;
}

static int factor(struct parser *p, double *ret)
{
	char *end;
	int r;

	if (accept(p, '-')) {
		r = factor(p, ret);
		*ret = r == 0 ? -*ret : *ret;
		return r;
	}
	if (accept(p, '[')) {
		return reference(p, ret);
	}
	if (accept(p, '(')) {
		if (++p->depth > 50)
			return -EINVAL;
		r = sum(p, ret);
		p->depth--;
		return r < 0 ? r : expect(p, ')');
	}
	if (islower((unsigned char)*p->at))
		return function(p, ret);
	*ret = strtod(p->at, &end);
	if (end == p->at) {
		snprintf(p->problem, p->size, "no number before '%s'", p->at);
		return -EINVAL;
	}
	p->at = end;
	return 0;
}

static int product(struct parser *p, double *ret)
{
	double value;
	int r;

	r = factor(p, ret);
	while (r == 0) {
		bool times = accept(p, '*');

		if (!times && !accept(p, '/'))
			return 0;
		r = factor(p, &value);
		if (r == 0)
			*ret = times ? *ret * value : *ret / value;
	}
	return r;
}

static int sum(struct parser *p, double *ret)
{
	double value;
	int r;

	r = product(p, ret);
	while (r == 0) {
		bool plus = accept(p, '+');

		if (!plus && !accept(p, '-'))
			return 0;
		r = product(p, &value);
		if (r == 0)
			*ret += plus ? value : -value;
	}
	return r;
}

/*
 * The value in one repetition, with the errors of expr_summary(); *least becomes at most what functions
 * over all repetitions have found.
 */
static int value_of(const struct bench *bench, const struct cell *own, const char *text, size_t rep,
		    double *ret, size_t *least, char *problem, size_t size)
{
	struct parser p = { .bench = bench,
			    .own = own,
			    .at = text,
			    .rep = rep,
			    .least = *least,
			    .problem = problem,
			    .size = size };
	double value = 0;
	int r;

	problem[0] = '\0';
	r = sum(&p, &value);
	skip(&p);
	if (r == 0 && *p.at) {
		snprintf(problem, size, "what is '%s'?", p.at);
		return -EINVAL;
	}
	/* 0 / 0: nothing was measured. */
	if (r == 0 && isnan(value)) {
		snprintf(problem, size, "nothing divided by nothing in repetition %zu", rep);
		return -ENODATA;
	}
	if (r == 0) {
		*ret = value;
		*least = p.least;
	}
	return r;
}

int expr_summary(const struct bench *bench, const struct cell *own, const char *text,
		 struct summary *ret, double *ret_values, char *problem, size_t size)
{
	_cleanup_free_ double *values = calloc(bench->repeat + 1, sizeof(*values));
	size_t n = 0, least = SIZE_MAX;
	char why[256] = "";
	int r;

	if (!values)
		return -ENOMEM;
	for (size_t rep = 1; rep <= bench->repeat; rep++) {
		r = value_of(bench, own, text, rep, &values[n], &least, problem, size);
		if (r == -EINVAL)
			return r;
		if (r == 0)
			n++;
		else if (!why[0])
			snprintf(why, sizeof(why), "%s", problem);
	}
	snprintf(problem, size, "%s", why);
	if (n == 0)
		return -ENODATA;
	/* What is over all repetitions is the same in each, however few there are. */
	n = least < n ? least : n;
	if (ret_values)
		memcpy(ret_values, values, n * sizeof(*values));
	stat_summary(values, n, ret);
	return 0;
}

bool expr_is_wanted(const struct bench *bench, const char *text)
{
	char name[256], key[256];

	while ((text = strchr(text, '['))) {
		const struct cell *cell;

		if (split(text + 1, name, key, sizeof(name), &text) < 0)
			return true; /* whoever evaluates it says what is wrong */
		cell = name[0] ? bench_cell(bench, name) : NULL;
		if (cell && !cell->wanted)
			return false;
	}
	return true;
}
