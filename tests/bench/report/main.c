// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * bench-report: what the benchmark of the kernel has measured. Prints every table and every target
 * with its verdict and writes the plots.
 *
 *	bench-report --cells FILE --wanted FILE --repeat N --results FILE --targets FILE
 *		     [--plots FOLDER] TABLE...
 *
 * --cells has all cells that there are, --wanted those of this run. Ends with 1 when a target is
 * missed or a run is missing, with 2 when something can't be read or means nothing.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/report/plot.h"
#include "tests/bench/report/table.h"
#include "tests/bench/report/targets.h"

struct arguments {
	const char *cells, *wanted, *results, *targets, *plots;
	size_t repeat;
	char **tables;
};

static bool parse(struct arguments *arguments, int argc, char **argv)
{
	static const struct option options[] = { { "cells", required_argument, NULL, 'c' },
						 { "wanted", required_argument, NULL, 'w' },
						 { "repeat", required_argument, NULL, 'n' },
						 { "results", required_argument, NULL, 'r' },
						 { "targets", required_argument, NULL, 't' },
						 { "plots", required_argument, NULL, 'p' },
						 { 0 } };
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
		switch (c) {
		case 'c':
			arguments->cells = optarg;
			break;
		case 'w':
			arguments->wanted = optarg;
			break;
		case 'n':
			arguments->repeat = strtoul(optarg, NULL, 10);
			break;
		case 'r':
			arguments->results = optarg;
			break;
		case 't':
			arguments->targets = optarg;
			break;
		case 'p':
			arguments->plots = optarg;
			break;
		default:
			return false;
		}
	arguments->tables = argv + optind;
	return arguments->cells && arguments->wanted && arguments->results && arguments->targets &&
	       arguments->repeat > 0;
}

static int do_table(const struct arguments *arguments, const struct bench *bench, const char *path,
		    char *problem, size_t size)
{
	struct table table;
	int r;

	r = table_read(&table, bench, path, problem, size);
	if (r == 0 && table_is_wanted(&table, bench)) {
		r = table_print(&table, bench, stdout, problem, size);
		if (r == 0 && arguments->plots)
			r = plot_table(&table, bench, arguments->plots, problem, size);
	}
	table_done(&table);
	return r;
}

/* Those of a cell's repetitions that gave no result, as "2, 4 to 5"; how many they are. */
static unsigned int missing_of(const struct bench *bench, const struct cell *cell, char *buf,
			       size_t size)
{
	unsigned int missing = 0;
	size_t n = 0;

	buf[0] = '\0';
	for (size_t rep = 1; rep <= bench->repeat; rep++) {
		size_t last = rep;

		if (cell_run(cell, rep))
			continue;
		while (last < bench->repeat && !cell_run(cell, last + 1))
			last++;
		if (n < size)
			n += (size_t)snprintf(buf + n, size - n, "%s%zu", n ? ", " : "", rep);
		if (n < size && last > rep)
			n += (size_t)snprintf(buf + n, size - n, " to %zu", last);
		missing += (unsigned int)(last - rep + 1);
		rep = last;
	}
	return missing;
}

/* Every wanted cell has to have every repetition. */
static unsigned int print_missing(const struct bench *bench)
{
	unsigned int missing, sum = 0;
	char which[256];

	for (size_t i = 0; i < bench->n_cells; i++) {
		const struct cell *cell = &bench->cells[i];

		missing = cell->wanted ? missing_of(bench, cell, which, sizeof(which)) : 0;
		if (missing > 0)
			printf("MISS  %s: no result in %u of %zu repetitions (%s)\n", cell->name,
			       missing, bench->repeat, which);
		if (cell->failed > 0)
			printf("note  %s: %u of its runs failed\n", cell->name, cell->failed);
		sum += missing;
	}
	return sum;
}

static int report(const struct arguments *arguments, struct bench *bench, char *problem,
		  size_t size)
{
	struct verdicts verdicts;
	unsigned int missing;
	int r;

	r = bench_catalogue(bench, arguments->cells, problem, size);
	r = r < 0 ? r : bench_wanted(bench, arguments->wanted, problem, size);
	r = r < 0 ? r : bench_results(bench, arguments->results, problem, size);
	for (char **path = arguments->tables; r == 0 && *path; path++)
		r = do_table(arguments, bench, *path, problem, size);
	if (r < 0)
		return r;
	printf("== Targets: medians and their interval, the value in each repetition on its "
	       "own\n\n");
	r = targets_check(bench, arguments->targets, stdout, &verdicts, problem, size);
	if (r < 0)
		return r;
	missing = print_missing(bench);
	printf("\n%u targets met, %u missed", verdicts.met, verdicts.missed);
	if (verdicts.unasked > 0)
		printf(", %u of cells that were not asked for", verdicts.unasked);
	printf("; %u runs without a result\n", missing);
	return verdicts.missed > 0 || missing > 0;
}

int main(int argc, char **argv)
{
	struct arguments arguments = { .cells = NULL };
	struct bench bench = { .n_cells = 0 };
	char problem[512] = "";
	int r;

	if (!parse(&arguments, argc, argv)) {
		fprintf(stderr, "usage: bench-report --cells FILE --wanted FILE --repeat N "
				"--results FILE --targets FILE [--plots FOLDER] TABLE...\n");
		return 2;
	}
	bench.repeat = arguments.repeat;
	r = report(&arguments, &bench, problem, sizeof(problem));
	if (r < 0)
		fprintf(stderr, "bench-report: %s\n", problem[0] ? problem : strerror(-r));
	if (fflush(stdout) != 0) {
		fprintf(stderr, "bench-report: the report can't be written: %s\n", strerror(errno));
		r = -EIO;
	}
	bench_done(&bench);
	return r < 0 ? 2 : r;
}
