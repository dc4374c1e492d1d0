/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the demo claims, each with its bound and what was measured of it in a run and, where it is a
 * comparison, in the control. Pure: nothing here reads or prints.
 */
#ifndef BALLAST_LAB_REPORT_CLAIMS_H
#define BALLAST_LAB_REPORT_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/lab/report/run.h"

#define CLAIMS_MAX 32

struct claim {
	const char *name; /* for machines: "under-budget-in-time" */
	const char *text; /* for people, with the bound */
	char measured[160];
	bool holds;
};

struct claims {
	struct claim list[CLAIMS_MAX];
	size_t n;
};

/**
 * claims_check() - measure every claim.
 * @control: the same run while the daemon only observed, or NULL: then the comparisons fail.
 */
void claims_check(struct claims *claims, const struct run *act, const struct run *control);

/** claims_add() - one claim, and what was measured of it. */
void claims_add(struct claims *claims, bool holds, const char *name, const char *text,
		const char *format, ...) __attribute__((format(printf, 5, 6)));

/** claims_levers() - the claims of the guests' kernel settings: levers.c. */
void claims_levers(struct claims *claims, const struct run *run);

/** settled_at() - seconds after the cut from which the footprint stayed within the budget. */
double settled_at(const struct run *run);

/** over_budget() - GiB x s above the budget, from the cut until it is given back. */
double over_budget(const struct run *run);

#endif
