// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lab/report/claims.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB	       1048576.0
#define GIB	       1073741824.0
#define PAGE	       4096.0

#define EXECUTABLE     "exec" /* the guest that runs a large executable */
#define GROWING	       "grow" /* the guest that grows */

#define SETTLE_S       10.0
#define HOLD_S	       60.0
#define RETURN_S       5.0
#define RELIEF_S       1.0
#define SLACK_S	       0.5 /* two samples: how late the record may see something */
#define WINDOW_S       5.0
#define WINDOWS_MAX    64
#define SKEW_S	       0.15 /* an age in the status is of the last round, not of the asking */
#define AFTER_RESTART  3.0 /* a target that moves later has reasons of its own */
#define LAZYFREE_MIN   (4 * MIB) /* a guest with less holds none worth the name */
#define RECLAIM_SLACK  (2 * MIB) /* a reclaim of 32 pages more than asked for, here and there */
#define DEAD_BAND      0.01 /* of a cap: no change of direction within it */
#define MOVE_MIN       (1 * MIB) /* a smaller change of a balloon is none */
#define DAEMON_RSS     (8 * MIB)
#define DAEMON_CPU     0.01
#define CONTROL_FACTOR 1.2
#define FAULTS_PER     10240.0 /* pages that a round runs */

void claims_add(struct claims *claims, bool holds, const char *name, const char *text,
		const char *format, ...)
{
	struct claim *claim;
	va_list args;

	if (claims->n == CLAIMS_MAX)
		return;
	claim = &claims->list[claims->n++];
	claim->name = name;
	claim->text = text;
	claim->holds = holds;
	va_start(args, format);
	vsnprintf(claim->measured, sizeof(claim->measured), format, args);
	va_end(args);
}

double settled_at(const struct run *run)
{
	double last = 0;

	for (size_t i = 0; i < run->n_points; i++) {
		const struct point *point = &run->points[i];

		if (point->t > 0 && point->t < run->restore && run_ram(run, point) > run->budget)
			last = i + 1 < run->n_points ? run->points[i + 1].t : point->t;
	}
	return last;
}

double over_budget(const struct run *run)
{
	double sum = 0;

	for (size_t i = 1; i < run->n_points; i++) {
		const struct point *point = &run->points[i];
		double over = run_ram(run, point) - run->budget;

		if (point->t > 0 && point->t < run->restore && over > 0)
			sum += over * (point->t - run->points[i - 1].t);
	}
	return sum / GIB;
}

static void check_budget(struct claims *claims, const struct run *act, const struct run *control)
{
	const struct point *at_cut = run_at(act, 0);
	double cut = act->before - act->budget, cheap = 0, settled = settled_at(act);

	for (size_t i = 0; i < act->n_guests; i++)
		cheap += at_cut->guests[i].backed_free + at_cut->guests[i].lazyfree;
	claims_add(claims, fabs(act->budget / act->before - 0.65) < 0.01, "cut-to-0.65",
		   "the budget is cut to 0.65 of the footprint", "%.0f to %.0f MiB, %.3f",
		   act->before / MIB, act->budget / MIB, act->budget / act->before);
	claims_add(claims, cheap <= 0.5 * cut, "cut-is-hard",
		   "free and lazyfree memory are at most half of the cut",
		   "%.0f of %.0f MiB, %.0f %%", cheap / MIB, cut / MIB, 100 * cheap / cut);
	claims_add(claims, settled <= SETTLE_S, "under-budget-in-time",
		   "the footprint is under the budget within 10 s", "%.1f s, %.2f GiB s over%s",
		   settled, over_budget(act), control ? "" : " (no control)");
	claims_add(claims, act->restore - settled >= HOLD_S, "stays-under-budget",
		   "and stays under it for 60 s of load", "%.0f s", act->restore - settled);
	if (control)
		claims_add(claims, over_budget(control) > 2 * over_budget(act),
			   "control-is-over-budget", "while nobody acts it stays over",
			   "%.1f GiB s over in the control", over_budget(control));
}

/* When 95 % of each guest's lazyfree memory was gone; INFINITY: never. */
static double lazyfree_gone_at(const struct run *run, double *ret_present)
{
	const struct point *before = run_at(run, 0);
	double all_gone = 0;

	*ret_present = 0;
	for (size_t k = 0; k < run->n_guests; k++) {
		double present = before->guests[k].lazyfree, gone = INFINITY;

		if (!(present > LAZYFREE_MIN))
			continue;
		*ret_present += present;
		for (size_t i = 0; i < run->n_points && isinf(gone); i++)
			if (run->points[i].guests[k].stats_at > 0 &&
			    run->points[i].guests[k].lazyfree <= 0.05 * present)
				gone = run->points[i].guests[k].stats_at;
		all_gone = fmax(all_gone, gone);
	}
	return all_gone;
}

/* When more than 10 % of a guest's cold cache was gone; INFINITY: never. */
static double cache_lost_at(const struct run *run)
{
	const struct point *before = run_at(run, 0);
	double first = INFINITY;

	for (size_t i = 0; i < run->n_points; i++)
		for (size_t k = 0; k < run->n_guests; k++) {
			const struct guest_point *guest = &run->points[i].guests[k];

			if (guest->stats_at > 0 && guest->stats_at < run->restore &&
			    guest->file < 0.9 * before->guests[k].file)
				first = fmin(first, guest->stats_at);
		}
	return first;
}

/*
 * What guests reclaimed up to a time beyond what sheds asked for: the work of balloons that took
 * more than was free.
 */
static double reclaimed_otherwise(const struct run *run, double until)
{
	double sum = 0;

	for (size_t k = 0; k < run->n_guests; k++) {
		double before = run_at(run, 0)->guests[k].reclaimed, last = before, shed = 0;

		for (size_t i = 0; i < run->n_points; i++)
			if (run->points[i].guests[k].stats_at <= until)
				last = run->points[i].guests[k].reclaimed;
		for (size_t i = 0; i < run->n_decisions; i++)
			if (run->decisions[i].guest == k && run->decisions[i].t > 0 &&
			    run->decisions[i].t < until + SKEW_S && run->decisions[i].freed > 0)
				shed += run->decisions[i].freed;
		sum += fmax(0, last - before - shed);
	}
	return sum;
}

static void check_dirtied(struct claims *claims, const struct run *run)
{
	double kept = 0, wrong = 0;
	int rounds = 0;

	for (size_t i = 0; i < run->n_rounds; i++) {
		const struct round *round = &run->rounds[i];

		if (round->t < 0 || isnan(round->kept))
			continue;
		rounds++;
		kept = round->kept;
		wrong = fmax(wrong, round->wrong);
	}
	claims_add(claims, rounds >= 30 && kept > 0 && wrong == 0, "dirtied-is-kept",
		   "pages that are dirtied again keep what was written",
		   "%.0f pages checked in each of %d rounds, %.0f wrong", kept, rounds, wrong);
}

static void check_order(struct claims *claims, const struct run *act)
{
	double present, gone = lazyfree_gone_at(act, &present), lost = cache_lost_at(act);
	double hard = reclaimed_otherwise(act, gone);

	claims_add(claims, present > 0 && !isinf(gone) && gone <= lost, "lazyfree-first",
		   "95 % of the lazyfree memory goes before 10 % of any cold cache",
		   "of %.0f MiB after %.1f s, cache after %.1f s", present / MIB, gone, lost);
	claims_add(claims, present > 0 && !isinf(gone) && hard <= RECLAIM_SLACK,
		   "no-inflation-before", "and before any inflation that makes a guest reclaim",
		   "%.1f MiB reclaimed but by sheds in the first %.1f s", hard / MIB, gone);
	check_dirtied(claims, act);
}

/* The dead time that is shown for a guest once it is measured: the largest before the kill. */
static double shown_dead_time(const struct run *run, size_t guest)
{
	double until = isnan(run->kill) ? run->restore : run->kill, shown = 0;

	for (size_t i = 0; i < run->n_points && run->points[i].t < until; i++)
		shown = fmax(shown, run->points[i].guests[guest].dead_time);
	return shown;
}

static double ram_fall(const struct run *run, size_t guest, double from, double to)
{
	double before = run_at(run, from)->guests[guest].ram, least = before;

	for (size_t i = 0; i < run->n_points; i++)
		if (run->points[i].t >= from && run->points[i].t <= to)
			least = fmin(least, run->points[i].guests[guest].ram);
	return before - least;
}

static void check_sheds(struct claims *claims, const struct run *run)
{
	double freed = 0, seen = 0, longest = 0;
	int sheds = 0;

	for (size_t i = 0; i < run->n_decisions; i++) {
		const struct decision_point *shed = &run->decisions[i];
		double dead;

		if (shed->kind != DECISION_SHED || !(shed->freed > 0) || shed->t < 0 ||
		    shed->t > run->restore)
			continue;
		dead = shown_dead_time(run, shed->guest);
		longest = fmax(longest, dead);
		sheds++;
		freed += shed->freed;
		seen += fmin(shed->freed,
			     ram_fall(run, shed->guest, shed->t, shed->t + dead + SLACK_S));
	}
	claims_add(claims, sheds > 0 && seen >= 0.9 * freed, "shed-is-seen",
		   "90 % of what sheds freed is seen on the host within the dead time shown",
		   "%.0f of %.0f MiB, %.0f %%, in %d sheds, %.1f s", seen / MIB, freed / MIB,
		   freed > 0 ? 100 * seen / freed : 0, sheds, longest);
}

static int rounds_between(const struct run *run, int guest, double from, double to,
			  double *ret_faults)
{
	int n = 0;

	*ret_faults = 0;
	for (size_t i = 0; i < run->n_rounds; i++) {
		const struct round *round = &run->rounds[i];

		if ((int)round->guest != guest || round->t < from || round->t >= to)
			continue;
		*ret_faults += round->faults;
		n++;
	}
	return n;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * CPU time of a guest's round from the cut until the budget is given back: the median of windows of
 * a few seconds, so that what a shed itself costs once is left out. It is the time of its QEMU:
 * where the guest's processor is a thread, the guest counts as its own what other processes of the
 * host took from it.
 */
static double round_cpu(const struct run *run, int guest)
{
	double window[WINDOWS_MAX], faults;
	size_t n = 0;

	for (double t = 0; t + WINDOW_S <= run->restore && n < WINDOWS_MAX; t += WINDOW_S) {
		double cpu = run_at(run, t + WINDOW_S)->guests[guest].cpu -
			     run_at(run, t)->guests[guest].cpu;
		int in_it = rounds_between(run, guest, t, t + WINDOW_S, &faults);

		if (in_it > 0)
			window[n++] = cpu / in_it;
	}
	if (n == 0)
		return NAN;
	qsort(window, n, sizeof(*window), by_size);
	return window[n / 2];
}

static void check_rounds(struct claims *claims, const struct run *act, const struct run *control)
{
	int ours, theirs, at = run_guest(act, EXECUTABLE);
	int other = control ? run_guest(control, EXECUTABLE) : -1;
	double cpu, cpu_control, faults, faults_control;

	if (at < 0 || other < 0) {
		claims_add(claims, false, "rounds-like-control",
			   "its rounds are like those of the control", "there is no control");
		return;
	}
	cpu = round_cpu(act, at);
	cpu_control = round_cpu(control, other);
	ours = rounds_between(act, at, 0, act->restore, &faults);
	theirs = rounds_between(control, other, 0, control->restore, &faults_control);
	faults /= ours > 0 ? ours : 1;
	faults_control /= theirs > 0 ? theirs : 1;
	claims_add(claims, ours >= 20 && theirs >= 20 && cpu <= CONTROL_FACTOR * cpu_control,
		   "cpu-like-control", "its CPU time a round is within 1.2 times the control's",
		   "%.1f against %.1f ms, %.2f times", 1e3 * cpu, 1e3 * cpu_control,
		   cpu / cpu_control);
	claims_add(claims,
		   ours >= 20 && theirs >= 20 &&
			   faults <= CONTROL_FACTOR * faults_control + FAULTS_PER / 1000,
		   "faults-like-control",
		   "its faults a round are within 1.2 times the control's and 1 in 1000 pages",
		   "%.2f against %.2f in a round of %.0f pages", faults, faults_control,
		   FAULTS_PER);
}

static void check_executable(struct claims *claims, const struct run *act,
			     const struct run *control)
{
	const struct guest_point *before, *after;
	double beyond, gave, lost, text;
	int at = run_guest(act, EXECUTABLE);

	if (at < 0) {
		claims_add(claims, false, "executable", "the executable guest",
			   "is not in the record");
		return;
	}
	before = &run_at(act, 0)->guests[at];
	after = &run_at(act, act->restore)->guests[at];
	text = before->text / PAGE;
	beyond = before->ram - before->text;
	gave = before->ram - after->ram;
	lost = after->steal_exec - before->steal_exec;
	claims_add(claims, gave >= 0.25 * beyond, "executable-gives",
		   "the executable guest gives a quarter of what it holds beyond text",
		   "%.0f of %.0f MiB, %.0f %%", gave / MIB, beyond / MIB, 100 * gave / beyond);
	claims_add(claims, text > 0 && lost <= 0.01 * text, "text-stays",
		   "and loses at most 1 % of its text", "%.0f of %.0f pages, %.2f %%", lost, text,
		   100 * lost / text);
	check_rounds(claims, act, control);
}

static void check_oom(struct claims *claims, const struct run *run)
{
	const struct point *first = run_at(run, 0), *last = &run->points[run->n_points - 1];
	double kills = 0;

	for (size_t k = 0; k < run->n_guests; k++)
		kills += last->guests[k].oom_kill - first->guests[k].oom_kill;
	claims_add(claims, kills == 0, "no-oom-kill", "no OOM kill", "%.0f", kills);
}

/* Rises of a balloon above every target of the last seconds. */
static int uncommanded(const struct run *run, size_t guest)
{
	int found = 0;

	for (size_t i = 1; i < run->n_points; i++) {
		double rise = run->points[i].guests[guest].actual -
			      run->points[i - 1].guests[guest].actual;
		double allowed = 0;

		if (run->points[i].t < 0 || rise < MOVE_MIN)
			continue;
		/* The status is a sample old at most; the next one tells what was asked for. */
		for (size_t k = 0; k < run->n_points; k++)
			if (fabs(run->points[k].t - run->points[i].t) < 3)
				allowed = fmax(allowed, run->points[k].guests[guest].target);
		if (run->points[i].guests[guest].actual > allowed + MOVE_MIN)
			found++;
	}
	return found;
}

/* Changes of a balloon against the direction of the one before, once all has settled. */
static int reversals(const struct run *run, size_t guest, double from)
{
	int direction = -1, found = 0; /* the cut has taken */
	double last = run_at(run, from)->guests[guest].actual;

	for (size_t i = 0; i < run->n_points; i++) {
		double now = run->points[i].guests[guest].actual;
		int is;

		if (run->points[i].t < from || run->points[i].t > run->restore ||
		    !(fabs(now - last) >= fmax(MOVE_MIN, DEAD_BAND * last)))
			continue;
		is = now > last ? 1 : -1;
		if (is != direction)
			found++;
		direction = is;
		last = now;
	}
	return found;
}

static void check_calm(struct claims *claims, const struct run *run)
{
	int rises = 0, turns = 0;
	double least = INFINITY;

	check_oom(claims, run);
	for (size_t k = 0; k < run->n_guests; k++) {
		rises += uncommanded(run, k);
		if (strcmp(run->names[k], GROWING) != 0)
			turns += reversals(run, k, fmax(settled_at(run), SETTLE_S));
		for (size_t i = 0; i < run->n_points; i++)
			least = fmin(least, run->points[i].guests[k].actual -
						    run->points[i].guests[k].minimum);
	}
	claims_add(claims, rises == 0, "no-uncommanded-deflation", "no balloon gives by itself",
		   "%d", rises);
	claims_add(claims, least >= 0 && !isinf(least), "none-below-min",
		   "no guest is below its minimum", "the nearest is %.0f MiB above", least / MIB);
	claims_add(claims, turns == 0 && settled_at(run) < run->restore - HOLD_S, "no-reversals",
		   "no reversal after the first settling, outside the growing guest", "%d", turns);
}

static void check_return(struct claims *claims, const struct run *run)
{
	double last = INFINITY;

	for (size_t i = run->n_points; i-- > 0 && run->points[i].t > run->restore;) {
		bool all = true;

		for (size_t k = 0; k < run->n_guests; k++)
			all = all &&
			      run->points[i].guests[k].actual >= run->points[i].guests[k].maximum;
		if (!all)
			break;
		last = run->points[i].t;
	}
	claims_add(claims, last - run->restore <= RETURN_S, "back-at-maximum",
		   "when the budget returns, every guest is at its maximum within 5 s", "%.1f s",
		   last - run->restore);
}

/* Seconds from the arrival of a guest's call to the rise of its balloon. */
static double relief_time(const struct run *run, const struct decision_point *relief)
{
	double arrival = relief->t - relief->latency;
	double before = run_at(run, relief->t - 0.01)->guests[relief->guest].actual;

	for (size_t i = 0; i < run->n_points; i++) {
		const struct guest_point *guest = &run->points[i].guests[relief->guest];

		if (guest->actual_at > relief->t && guest->actual > before)
			return guest->actual_at - arrival;
	}
	return INFINITY;
}

/* Did the guest have to wait: for others to give first, or for the daemon to look around again? */
static bool had_to_wait(const struct run *run, const struct decision_point *relief)
{
	double call = relief->t - relief->latency;

	if (call >= run->kill && call <= run->restart + AFTER_RESTART)
		return true;
	for (size_t i = 0; i < run->n_points; i++)
		if (run->points[i].t > call && run->points[i].t < relief->t &&
		    run->points[i].guests[relief->guest].waits > 0)
			return true;
	return false;
}

static void check_relief(struct claims *claims, const struct run *run)
{
	int at = run_guest(run, GROWING), reliefs = 0, waited = 0;
	double longest = 0;

	for (size_t i = 0; i < run->n_decisions; i++) {
		const struct decision_point *relief = &run->decisions[i];

		if (!(relief->is_relief > 0) || relief->kind != DECISION_BALLOON ||
		    (int)relief->guest != at || relief->t < 0 || relief->t > run->restore)
			continue;
		if (had_to_wait(run, relief)) {
			waited++;
			continue;
		}
		reliefs++;
		longest = fmax(longest, relief_time(run, relief));
	}
	claims_add(
		claims, reliefs > 0 && longest < RELIEF_S, "relief-at-once",
		"the growing guest's balloon rises within 1 s of its call while the host has room",
		"at most %.2f s in %d calls; %d more had to wait", longest, reliefs, waited);
}

static double daemon_rss(const struct run *run)
{
	double most = NAN;

	for (size_t i = 0; run && i < run->n_points; i++)
		most = fmax(most, run->points[i].daemon_rss_anon);
	return most;
}

/* Share of a core; over a restart the two processes are added. */
static double daemon_cpu(const struct run *run)
{
	double sum = 0, time = 0;

	for (size_t i = 1; run && i < run->n_points; i++) {
		const struct point *now = &run->points[i], *last = &run->points[i - 1];

		if (now->daemon_pid != last->daemon_pid || isnan(now->daemon_cpu))
			continue;
		sum += now->daemon_cpu - last->daemon_cpu;
		time += now->t - last->t;
	}
	return time > 0 ? sum / time : NAN;
}

static void check_daemon(struct claims *claims, const struct run *act, const struct run *control)
{
	double rss = fmax(daemon_rss(act), daemon_rss(control)), cpu = daemon_cpu(act);

	claims_add(claims, rss < DAEMON_RSS, "daemon-memory",
		   "ballastd has less than 8 MiB of private anonymous memory", "%.1f MiB",
		   rss / MIB);
	claims_add(claims, cpu < DAEMON_CPU, "daemon-cpu", "and takes less than 1 % of a core",
		   "%.2f %%", 100 * cpu);
}

/* Until when a guest's target has to stand after the restart: a call of the guest may end it. */
static double stands_until(const struct run *run, size_t guest)
{
	double until = run->restart + AFTER_RESTART;

	for (size_t i = 0; i < run->n_decisions; i++) {
		const struct decision_point *relief = &run->decisions[i];

		if (relief->guest == guest && relief->is_relief > 0 && relief->t > run->restart)
			until = fmin(until, relief->t);
	}
	return until;
}

static void check_kill(struct claims *claims, const struct run *run)
{
	const struct point *before = run_at(run, run->kill);
	double moved = 0, retargeted = 0;

	if (isnan(run->kill) || isnan(run->restart)) {
		claims_add(claims, false, "kill-moves-nothing", "a killed daemon moves no target",
			   "it was not killed");
		return;
	}
	for (size_t k = 0; k < run->n_guests; k++) {
		const struct guest_point *was = &before->guests[k];
		double until = stands_until(run, k);

		for (size_t i = 0; i < run->n_points; i++) {
			const struct guest_point *is = &run->points[i].guests[k];

			if (run->points[i].t < run->kill || run->points[i].t > until)
				continue;
			moved = fmax(moved, fabs(is->actual - was->actual));
			/* Unknown while there is no daemon, which fmax() passes over. */
			retargeted = fmax(retargeted, fabs(is->target - was->target));
		}
	}
	claims_add(claims, moved < MOVE_MIN && retargeted < MOVE_MIN, "kill-moves-nothing",
		   "a kill -9 of ballastd and a restart move no target",
		   "balloons by %.1f MiB, targets by %.1f MiB", moved / MIB, retargeted / MIB);
}

void claims_check(struct claims *claims, const struct run *act, const struct run *control)
{
	claims->n = 0;
	check_budget(claims, act, control);
	check_order(claims, act);
	check_sheds(claims, act);
	check_executable(claims, act, control);
	check_calm(claims, act);
	check_return(claims, act);
	check_relief(claims, act);
	check_daemon(claims, act, control);
	check_kill(claims, act);
	claims_levers(claims, act);
}
