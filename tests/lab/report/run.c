// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lab/report/run.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USEC 1e-6
#define PAGE 4096.0

int run_guest(const struct run *run, const char *name)
{
	for (size_t i = 0; i < run->n_guests; i++)
		if (strcmp(run->names[i], name) == 0)
			return (int)i;
	return -1;
}

double run_ram(const struct run *run, const struct point *point)
{
	double sum = 0;

	for (size_t i = 0; i < run->n_guests; i++)
		sum += point->guests[i].ram;
	return sum;
}

const struct point *run_at(const struct run *run, double t)
{
	const struct point *found = &run->points[0];

	for (size_t i = 0; i < run->n_points && run->points[i].t <= t; i++)
		found = &run->points[i];
	return found;
}

/* Make room for one more; the arrays grow by doubling. */
static void *one_more(void *array, size_t n, size_t size)
{
	if (n & (n - 1))
		return array;
	return realloc(array, (n ? 2 * n : 1) * size);
}

/* A number at a path like "stats.lazyfree", or NAN. */
static double number(struct json_object *object, const char *path)
{
	char copy[128], *save = NULL;

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *key = strtok_r(copy, ".", &save); key; key = strtok_r(NULL, ".", &save))
		if (!json_object_object_get_ex(object, key, &object))
			return NAN;
	return json_object_get_double(object);
}

static const char *text(struct json_object *object, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value))
		return "";
	return json_object_get_string(value);
}

static struct levers read_levers(struct json_object *object, const char *exec_protect,
				 const char *lazyfree_first)
{
	return (struct levers){ number(object, exec_protect), number(object, lazyfree_first) };
}

/* 0, 1, 2, or NAN while no daemon answers. */
static double read_level(struct json_object *line)
{
	static const char *const levels[] = { "relaxed", "tight", "critical" };
	struct json_object *host;

	if (!json_object_object_get_ex(line, "host", &host))
		return NAN;
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (strcmp(text(host, "level"), levels[i]) == 0)
			return (double)i;
	return NAN;
}

static void read_status(struct guest_point *point, struct json_object *status, double t)
{
	double age = number(status, "ages.stats_us"), pressure = number(status, "ages.pressure_us");
	double cache = number(status, "stats.active_file") + number(status, "stats.inactive_file");

	point->target = number(status, "target");
	point->minimum = number(status, "minimum");
	point->stats_at = t - age * USEC;
	point->pressure_at = t - pressure * USEC;
	point->dead_time = number(status, "dead_time_us") * USEC;
	point->free = number(status, "stats.free");
	point->lazyfree = number(status, "stats.lazyfree");
	point->text = number(status, "stats.exec_mapped");
	/* Counted one after the other, they may be more than there is by a few pages. */
	point->file = fmax(cache - point->lazyfree - point->text, 0);
	point->anon = number(status, "stats.active_anon") + number(status, "stats.inactive_anon");
	point->backed_free = number(status, "tiers.backed_free");
	point->swap_entries = number(status, "stats.swap_entries");
	point->steal_exec = number(status, "stats.steal_exec");
	point->oom_kill = number(status, "stats.oom_kill");
	point->reclaimed =
		(number(status, "stats.steal_file") + number(status, "stats.swap_out")) * PAGE;
	point->waits = strcmp(text(status, "reason"), "relief-waits") == 0;
	point->shown = read_levers(status, "settings.exec_protect", "settings.lazyfree_first");
	point->own =
		read_levers(status, "own_settings.exec_protect", "own_settings.lazyfree_first");
}

static void read_guest(struct guest_point *point, struct json_object *guest, double t)
{
	struct json_object *status = NULL;

	point->ram = number(guest, "ram");
	point->cpu = number(guest, "cpu");
	point->actual = number(guest, "actual");
	point->actual_at = number(guest, "actual_at");
	point->maximum = number(guest, "maximum");
	json_object_object_get_ex(guest, "ballast", &status);
	read_status(point, status, t);
}

static int read_sample(struct run *run, struct json_object *line, struct json_object *guests)
{
	struct point *point;
	void *more = one_more(run->points, run->n_points, sizeof(*run->points));

	if (!more)
		return -ENOMEM;
	run->points = more;
	point = &run->points[run->n_points++];
	point->t = number(line, "t");
	point->level = read_level(line);
	point->budget = number(line, "host.budget");
	point->dead_time = number(line, "host.dead_time_us") * USEC;
	point->daemon_pid = number(line, "daemon.pid");
	point->daemon_rss_anon = number(line, "daemon.rss_anon");
	point->daemon_cpu = number(line, "daemon.cpu");
	for (size_t i = 0; i < RUN_GUESTS_MAX; i++)
		read_guest(&point->guests[i], NULL, point->t);
	json_object_object_foreach(guests, name, guest)
	{
		int at = run_guest(run, name);

		if (at < 0) {
			if (run->n_guests == RUN_GUESTS_MAX)
				return -E2BIG;
			at = (int)run->n_guests++;
			snprintf(run->names[at], RUN_NAME_MAX, "%s", name);
		}
		read_guest(&point->guests[at], guest, point->t);
	}
	return 0;
}

static int read_reading(struct run *run, double t, size_t guest, struct json_object *work)
{
	void *more = one_more(run->readings, run->n_readings, sizeof(*run->readings));

	if (!more)
		return -ENOMEM;
	run->readings = more;
	run->readings[run->n_readings++] = (struct reading){
		.t = t,
		.guest = guest,
		.levers = read_levers(work, "exec_protect", "lazyfree_first"),
	};
	return 0;
}

static int read_work(struct run *run, struct json_object *line, struct json_object *work)
{
	int guest = run_guest(run, text(line, "guest"));
	struct round *round;
	void *more;

	if (guest >= 0 && strcmp(text(work, "kind"), "settings") == 0)
		return read_reading(run, number(line, "t"), (size_t)guest, work);
	if (guest < 0 || isnan(number(work, "round")))
		return 0;
	more = one_more(run->rounds, run->n_rounds, sizeof(*run->rounds));
	if (!more)
		return -ENOMEM;
	run->rounds = more;
	round = &run->rounds[run->n_rounds++];
	*round = (struct round){ .t = number(line, "t"),
				 .guest = (size_t)guest,
				 .faults = number(work, "minflt") + number(work, "majflt"),
				 .wrong = number(work, "wrong"),
				 .kept = number(work, "kept") };
	return 0;
}

static enum decision_kind decision_kind(struct json_object *decision)
{
	const char *action = text(decision, "action");

	if (strcmp(action, "shed") == 0)
		return DECISION_SHED;
	if (strcmp(action, "balloon") == 0)
		return DECISION_BALLOON;
	return DECISION_OTHER;
}

/* The same decision may be explained twice; a round makes at most one of a kind for a guest. */
static bool is_known(const struct run *run, size_t guest, enum decision_kind kind, double t)
{
	for (size_t i = 0; i < run->n_decisions; i++) {
		const struct decision_point *known = &run->decisions[i];

		if (known->guest == guest && known->kind == kind && fabs(known->t - t) < USEC / 2)
			return true;
	}
	return false;
}

static int read_decision(struct run *run, size_t guest, struct json_object *decision, double offset)
{
	enum decision_kind kind = decision_kind(decision);
	double t = number(decision, "time_us") * USEC - offset;
	void *more;

	if (isnan(t) || is_known(run, guest, kind, t))
		return 0;
	more = one_more(run->decisions, run->n_decisions, sizeof(*run->decisions));
	if (!more)
		return -ENOMEM;
	run->decisions = more;
	run->decisions[run->n_decisions++] = (struct decision_point){
		.t = t,
		.guest = guest,
		.kind = kind,
		.is_relief = strcmp(text(decision, "reason"), "relief") == 0,
		.latency = number(decision, "operands.latency_us") * USEC,
		.freed = number(decision, "freed"),
	};
	return 0;
}

static int read_explained(struct run *run, struct json_object *line, struct json_object *explain)
{
	double offset = number(line, "rt") - number(line, "t");
	int guest = run_guest(run, text(line, "guest")), r = 0;
	struct json_object *decisions;

	if (guest < 0 || !json_object_object_get_ex(explain, "decisions", &decisions))
		return 0;
	for (size_t i = 0; r == 0 && i < json_object_array_length(decisions); i++)
		r = read_decision(run, (size_t)guest, json_object_array_get_idx(decisions, i),
				  offset);
	return r;
}

static void read_mark(struct run *run, struct json_object *line, double *ret_cut)
{
	const char *mark = text(line, "mark");
	double t = number(line, "t");

	if (strcmp(mark, "cut") == 0) {
		*ret_cut = t;
		run->before = number(line, "before");
		run->budget = number(line, "budget");
	} else if (strcmp(mark, "kill") == 0) {
		run->kill = t;
	} else if (strcmp(mark, "restart") == 0) {
		run->restart = t;
	} else if (strcmp(mark, "restore") == 0) {
		run->restore = t;
	} else if (strcmp(mark, "end") == 0) {
		run->end = t;
	} else if (strcmp(mark, "stop") == 0) {
		run->stop = t;
	}
}

static int read_line(struct run *run, const char *line_text, double *ret_cut)
{
	struct json_object *line = json_tokener_parse(line_text), *part;
	int r = 0;

	/* A line that a full disk or a crash cut off is not there. */
	if (!line)
		return 0;
	if (json_object_object_get_ex(line, "guests", &part))
		r = read_sample(run, line, part);
	else if (json_object_object_get_ex(line, "work", &part))
		r = read_work(run, line, part);
	else if (json_object_object_get_ex(line, "explain", &part))
		r = read_explained(run, line, part);
	else
		read_mark(run, line, ret_cut);
	json_object_put(line);
	return r;
}

/* While no daemon answers, the guests' numbers are those that were last known, of that time. */
static void carry_on(struct run *run)
{
	for (size_t i = 1; i < run->n_points; i++)
		for (size_t k = 0; k < run->n_guests; k++) {
			const struct guest_point *last = &run->points[i - 1].guests[k];
			struct guest_point *now = &run->points[i].guests[k];

			if (!isnan(now->stats_at))
				continue;
			now->stats_at = last->stats_at;
			now->free = last->free;
			now->file = last->file;
			now->lazyfree = last->lazyfree;
			now->text = last->text;
			now->anon = last->anon;
			now->backed_free = last->backed_free;
			now->swap_entries = last->swap_entries;
			now->steal_exec = last->steal_exec;
			now->oom_kill = last->oom_kill;
			now->reclaimed = last->reclaimed;
		}
}

/* Count all times from the cut. */
static void shift(struct run *run, double cut)
{
	run->kill -= cut;
	run->restart -= cut;
	run->restore -= cut;
	run->end -= cut;
	run->stop -= cut;
	for (size_t i = 0; i < run->n_points; i++) {
		run->points[i].t -= cut;
		for (size_t k = 0; k < run->n_guests; k++) {
			run->points[i].guests[k].actual_at -= cut;
			run->points[i].guests[k].stats_at -= cut;
			run->points[i].guests[k].pressure_at -= cut;
		}
	}
	for (size_t i = 0; i < run->n_rounds; i++)
		run->rounds[i].t -= cut;
	for (size_t i = 0; i < run->n_readings; i++)
		run->readings[i].t -= cut;
	for (size_t i = 0; i < run->n_decisions; i++) {
		struct decision_point *decision = &run->decisions[i];

		decision->t -= cut;
		decision->dead_time = run_at(run, decision->t)->guests[decision->guest].dead_time;
	}
}

int run_read(struct run *run, const char *path, char *problem, size_t size)
{
	double cut = NAN;
	char *line = NULL;
	size_t room = 0;
	FILE *file;
	int r = 0;

	*run = (struct run){ .before = NAN,
			     .budget = NAN,
			     .kill = NAN,
			     .restart = NAN,
			     .restore = NAN,
			     .end = NAN,
			     .stop = NAN };
	file = fopen(path, "re");
	if (!file) {
		r = -errno;
		snprintf(problem, size, "%s: %s", path, strerror(-r));
		return r;
	}
	while (r == 0 && getline(&line, &room, file) > 0)
		r = read_line(run, line, &cut);
	free(line);
	fclose(file);
	if (r == 0 && (run->n_points == 0 || isnan(cut) || isnan(run->restore)))
		r = -ENODATA;
	if (r < 0) {
		snprintf(problem, size, "%s: %s", path,
			 r == -ENODATA ? "no samples, or no cut and return of the budget in it"
				       : strerror(-r));
		run_done(run);
		return r;
	}
	carry_on(run);
	shift(run, cut);
	return 0;
}

void run_done(struct run *run)
{
	free(run->points);
	free(run->rounds);
	free(run->readings);
	free(run->decisions);
	*run = (struct run){ .n_guests = 0 };
}
