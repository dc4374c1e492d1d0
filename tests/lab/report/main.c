// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * report: what a run in the lab has shown. Prints a table of before and after, every claim with its
 * bound and what was measured, and draws the picture. Ends with 1 when a claim does not hold.
 *
 *	demo-report --act RECORD [--control RECORD] [--svg FILE] [--tap]
 *
 * --tap prints lines of "ok" and "not ok" for the test runner instead.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/lab/report/claims.h"
#include "tests/lab/report/plot.h"
#include "tests/lab/report/run.h"

#define MIB 1048576.0

struct arguments {
	const char *act, *control, *svg;
	bool tap;
};

static bool parse(struct arguments *arguments, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char **value = NULL;

		if (strcmp(argv[i], "--tap") == 0) {
			arguments->tap = true;
			continue;
		}
		if (strcmp(argv[i], "--act") == 0)
			value = &arguments->act;
		else if (strcmp(argv[i], "--control") == 0)
			value = &arguments->control;
		else if (strcmp(argv[i], "--svg") == 0)
			value = &arguments->svg;
		if (!value || i + 1 == argc)
			return false;
		*value = argv[++i];
	}
	return arguments->act != NULL;
}

static void print_guest(const struct run *run, size_t k)
{
	const struct guest_point *before = &run_at(run, 0)->guests[k];
	const struct guest_point *cut = &run_at(run, run->restore)->guests[k];
	const struct guest_point *after = &run->points[run->n_points - 1].guests[k];

	printf("  %-8s %6.0f > %4.0f > %4.0f  %6.0f > %4.0f > %4.0f  %6.0f > %4.0f  %6.0f > %4.0f"
	       "  %6.0f > %4.0f\n",
	       run->names[k], before->ram / MIB, cut->ram / MIB, after->ram / MIB,
	       before->actual / MIB, cut->actual / MIB, after->actual / MIB, before->file / MIB,
	       cut->file / MIB, before->lazyfree / MIB, cut->lazyfree / MIB, before->text / MIB,
	       cut->text / MIB);
}

static void print_table(const struct run *run)
{
	printf("The budget was cut to %.0f MiB, held for %.0f s, and given back.\n\n",
	       run->budget / MIB, run->restore);
	printf("  %-8s %-20s  %-20s  %-13s  %-13s  %-13s\n", "MiB", "footprint", "allowed (actual)",
	       "page cache", "lazyfree", "text");
	printf("  %-8s %-20s  %-20s  %-13s  %-13s  %-13s\n", "guest", "before > cut > after",
	       "before > cut > after", "before > cut", "before > cut", "before > cut");
	for (size_t k = 0; k < run->n_guests; k++)
		print_guest(run, k);
	printf("  %-8s %6.0f > %4.0f > %4.0f\n\n", "sum", run_ram(run, run_at(run, 0)) / MIB,
	       run_ram(run, run_at(run, run->restore)) / MIB,
	       run_ram(run, &run->points[run->n_points - 1]) / MIB);
}

static int print_claims(const struct claims *claims, bool tap)
{
	int failed = 0;

	for (size_t i = 0; i < claims->n; i++) {
		const struct claim *claim = &claims->list[i];

		failed += !claim->holds;
		if (!tap)
			printf("%s  %s: %s\n", claim->holds ? "PASS" : "FAIL", claim->text,
			       claim->measured);
		else if (claim->holds)
			printf("ok %s (%s)\n", claim->name, claim->measured);
		else
			printf("not ok %s - %s: %s\n", claim->name, claim->text, claim->measured);
	}
	if (!tap)
		printf("\n%zu claims, %d of them not met\n", claims->n, failed);
	return failed;
}

static int draw(const char *path, const struct run *act, const struct run *control)
{
	FILE *file = fopen(path, "we");
	int r;

	if (!file) {
		r = -errno;
	} else {
		r = plot_write(file, act, control);
		if (fclose(file) != 0 && r == 0)
			r = -errno;
	}
	if (r < 0)
		fprintf(stderr, "demo-report: the plot can't be written to %s: %s\n", path,
			strerror(-r));
	return r;
}

int main(int argc, char **argv)
{
	struct arguments arguments = { .tap = false };
	struct run act = { .n_guests = 0 }, control = { .n_guests = 0 };
	struct claims claims;
	char problem[256];
	bool bad;

	if (!parse(&arguments, argc, argv)) {
		fprintf(stderr, "usage: demo-report --act RECORD [--control RECORD] [--svg FILE] "
				"[--tap]\n");
		return 2;
	}
	if (run_read(&act, arguments.act, problem, sizeof(problem)) < 0 ||
	    (arguments.control &&
	     run_read(&control, arguments.control, problem, sizeof(problem)) < 0)) {
		fprintf(stderr, "demo-report: %s\n", problem);
		run_done(&act);
		return 2;
	}
	claims_check(&claims, &act, control.n_points ? &control : NULL);
	if (!arguments.tap)
		print_table(&act);
	bad = print_claims(&claims, arguments.tap) > 0;
	if (arguments.svg && draw(arguments.svg, &act, control.n_points ? &control : NULL) < 0)
		bad = true;
	if (fflush(stdout) != 0) {
		fprintf(stderr, "demo-report: the report can't be written: %s\n", strerror(errno));
		bad = true;
	}
	run_done(&act);
	run_done(&control);
	return bad;
}
