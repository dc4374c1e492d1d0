// SPDX-License-Identifier: GPL-2.0-or-later
#include <math.h>
#include <string.h>

#include "tests/lab/report/claims.h"

#define LEVELS	 3
#define START_S	 5.0 /* a daemon that has just started does nothing before it has seen all */
#define FOLLOW_S 2.0 /* how soon a guest has what the level asks for */
#define SEEN_S	 0.5 /* from a reading in the guest to its line in the record, and two samples */
#define SHOWN_S	 1.0 /* ... and to its line in ballastctl's */

/* What the levels ask for, as ballast.yaml(5) has it. */
static const struct levers asked[LEVELS] = { { 2, 0 }, { 2, 2 }, { 3, 2 } };

enum phase { BEFORE, UNDER, AFTER, PHASES };

/* What was found of each guest: a level that it has to be seen at, before, under and after the cut. */
struct findings {
	int at_level[LEVELS], wrong, not_shown;
	bool seen[RUN_GUESTS_MAX][PHASES];
	bool lacking;
};

/* Whether a guest has what it should; of what its kernel lacks nothing can be said. */
static bool same(const struct levers *read, const struct levers *want)
{
	return (isnan(read->exec_protect) || read->exec_protect == want->exec_protect) &&
	       read->lazyfree_first == want->lazyfree_first;
}

/* The level that held for all of a time, or -1. */
static int steady_level(const struct run *run, double from, double to)
{
	int level = -1;

	for (size_t i = 0; i < run->n_points; i++) {
		const struct point *point = &run->points[i];

		if (point->t < from || point->t > to)
			continue;
		if (isnan(point->level) || (level >= 0 && level != (int)point->level))
			return -1;
		level = (int)point->level;
	}
	return level;
}

/* Whether ballastctl showed what was read, about then. */
static bool is_shown(const struct run *run, const struct reading *reading)
{
	for (size_t i = 0; i < run->n_points; i++)
		if (run->points[i].t > reading->t - SEEN_S &&
		    run->points[i].t < reading->t + SHOWN_S &&
		    same(&reading->levers, &run->points[i].guests[reading->guest].shown))
			return true;
	return false;
}

static void judge(const struct run *run, const struct reading *reading, struct findings *findings)
{
	int level = steady_level(run, reading->t - FOLLOW_S - SEEN_S, reading->t + SHOWN_S);

	findings->lacking |= isnan(reading->levers.exec_protect);
	if (level < 0 || reading->t < run->points[0].t + START_S)
		return;
	findings->at_level[level]++;
	findings->wrong += !same(&reading->levers, &asked[level]);
	findings->not_shown += !is_shown(run, reading);
	if (level == 0 && reading->t < 0)
		findings->seen[reading->guest][BEFORE] = true;
	if (level > 0 && reading->t > 0 && reading->t < run->restore)
		findings->seen[reading->guest][UNDER] = true;
	if (level == 0 && reading->t > run->restore)
		findings->seen[reading->guest][AFTER] = true;
}

/* The first guest that wasn't seen at all that it should be, or NULL. */
static const char *unseen(const struct run *run, const struct findings *findings)
{
	for (size_t k = 0; k < run->n_guests; k++)
		for (int phase = 0; phase < PHASES; phase++)
			if (!findings->seen[k][phase])
				return run->names[k];
	return NULL;
}

static void check_follow(struct claims *claims, const struct run *run)
{
	struct findings findings = { .wrong = 0 };
	const char *missing;
	int n;

	for (size_t i = 0; i < run->n_readings; i++)
		judge(run, &run->readings[i], &findings);
	missing = unseen(run, &findings);
	n = findings.at_level[0] + findings.at_level[1] + findings.at_level[2];
	claims_add(claims, !missing && findings.wrong == 0, "settings-follow-level",
		   "exec_protect and lazyfree_first in each guest's own /proc/sys follow the "
		   "host's level within 2 s",
		   "%d readings at relaxed, %d at tight, %d at critical, %d wrong%s%s%s",
		   findings.at_level[0], findings.at_level[1], findings.at_level[2], findings.wrong,
		   missing ? ", too few of " : "", missing ? missing : "",
		   findings.lacking ? " (this kernel has no exec_protect)" : "");
	claims_add(claims, n > 0 && findings.not_shown == 0, "settings-are-shown",
		   "and ballastctl shows them as they are", "%d of %d readings otherwise",
		   findings.not_shown, n);
}

/* What a guest called its own last, before the daemon stopped. */
static const struct levers *own_of(const struct run *run, size_t guest)
{
	const struct levers *own = NULL;

	for (size_t i = 0; i < run->n_points && run->points[i].t < run->stop; i++)
		if (!isnan(run->points[i].guests[guest].own.lazyfree_first))
			own = &run->points[i].guests[guest].own;
	return own;
}

static void check_back(struct claims *claims, const struct run *run)
{
	int n = 0, wrong = 0;

	for (size_t i = 0; i < run->n_readings; i++) {
		const struct reading *reading = &run->readings[i];
		const struct levers *own;

		if (!(reading->t > run->stop + SEEN_S))
			continue;
		own = own_of(run, reading->guest);
		n++;
		wrong += !own || !same(&reading->levers, own);
	}
	claims_add(claims, n >= (int)run->n_guests && wrong == 0, "own-settings-come-back",
		   "when ballastd stops, each guest has its own values back",
		   "%d readings, %d wrong", n, wrong);
}

void claims_levers(struct claims *claims, const struct run *run)
{
	check_follow(claims, run);
	check_back(claims, run);
}
