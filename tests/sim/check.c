// SPDX-License-Identifier: GPL-2.0-or-later
/* What must hold at each round, whatever the guests do: design section 5, as far as one round can
 * show it. A broken rule is printed with its time and counted. */
#include "tests/sim/sim.h"

#include <math.h>

static void broken(struct sim *sim, const struct decision *d, const char *rule)
{
	char text[256];

	decision_text(d, text, sizeof(text));
	if (sim->failures++ < 5)
		printf("  %.2f s: %s: %s: %s\n", sim->now - 100, sim->guests[d->slot].snapshot.name,
		       rule, text);
}

static bool is_fresh(const struct sim *sim, uint64_t at_us)
{
	return freshness(at_us, sim->current.now_us, 3000000) == NUMBER_FRESH;
}

static uint64_t stat_or(const struct guest_snapshot *s, enum stat_id id, uint64_t otherwise)
{
	uint64_t value = otherwise;

	(void)stat_get(&s->agent.stats, id, &value);
	return value;
}

static bool takes(const struct decision *d, const struct guest_snapshot *s)
{
	return d->action == ACTION_SHED ||
	       (d->action == ACTION_BALLOON && d->new_target < s->balloon.actual &&
		d->reason != REASON_STUCK && d->reason != REASON_SELF_PRESSURE &&
		d->reason != REASON_AUTODEFLATED);
}

static void check_numbers(struct sim *sim, const struct decision *d, const struct guest_snapshot *s)
{
	bool agent = is_fresh(sim, s->agent.at_us), driver = is_fresh(sim, s->driver.at_us);

	if (!is_fresh(sim, s->balloon.at_us) && d->action == ACTION_BALLOON)
		broken(sim, d, "no balloon action without a fresh actual");
	if (!takes(d, s) || d->reason == REASON_SILENT)
		return;
	if (!agent && (s->agent.at_us > 0 || !driver))
		broken(sim, d, "nothing is taken on stale numbers");
	if (!is_fresh(sim, s->cost.at_us))
		broken(sim, d, "nothing is taken without a fresh footprint");
}

static void check_bounds(struct sim *sim, const struct decision *d, const struct guest_snapshot *s)
{
	if (s->phase != PHASE_RUNNING && d->action != ACTION_NONE)
		broken(sim, d, "a guest that isn't running is left alone");
	if (d->action != ACTION_BALLOON)
		return;
	if (d->new_target < guest_min(s))
		broken(sim, d, "no cap below min");
	if (d->new_target > guest_max(s))
		broken(sim, d, "no cap above the maximum");
}

/* The numbers that the policy saw must carry the size of what it asks for. */
static void check_tiers(struct sim *sim, const struct decision *d, const struct guest_snapshot *s)
{
	uint64_t lazyfree = stat_or(s, STAT_LAZYFREE, 0);
	uint64_t file = stat_or(s, STAT_ACTIVE_FILE, 0) / 2 + stat_or(s, STAT_INACTIVE_FILE, 0) / 2;

	if (d->action == ACTION_SHED && d->shed_flags == 0 && d->bytes > lazyfree)
		broken(sim, d, "no shed is larger than its tier");
	if (d->action == ACTION_SHED && d->shed_flags == SHED_FILE &&
	    d->reason == REASON_TAKE_FILE && d->bytes > fmax((double)file, 2 * SIM_MIB))
		broken(sim, d, "page cache goes a quarter at a time");
	if (d->action == ACTION_BALLOON && s->agent.at_us > 0 &&
	    (d->reason == REASON_SHED_FREE || d->reason == REASON_LOCK)) {
		uint64_t unused = stat_or(s, STAT_FREE, 0) + stat_or(s, STAT_FREE_PCP, 0);
		uint64_t cut = s->balloon.actual - d->new_target;

		if (d->new_target < s->balloon.actual && cut > unused)
			broken(sim, d, "an inflation takes free memory only");
	}
}

/* Ninety-five hundredths of the lazyfree memory that honest guests show is gone before. */
static void check_order(struct sim *sim, const struct decision *d)
{
	double left = 0;

	if (d->action != ACTION_SHED || !(d->shed_flags & SHED_FILE))
		return;
	for (int i = 0; i < sim->n; i++) {
		const struct sim_guest *g = &sim->guests[i];

		enum guest_state state = sim->plan.verdicts[i].state;

		/* Who can't be asked can't be waited for. */
		if (state == STATE_BACKOFF || state == STATE_BLIND || state == STATE_EXCLUDED ||
		    sim->plan.verdicts[i].reason == REASON_FOREIGN)
			continue;
		if (g->exists && g->agent && !g->dead && g->lie == LIE_NONE && g->sheds &&
		    g->phase == PHASE_RUNNING && g->work.lazyfree_rate == 0 &&
		    g->work.stream == 0 && g->work.saw == 0 && !g->grew && g->lazyfree_first_able &&
		    g->balloon_refuse_at >= g->max)
			left += g->lazyfree;
	}
	if (sim->lazyfree_at_cut > 0 && left > 0.05 * sim->lazyfree_at_cut + sim->n * SIM_MIB)
		broken(sim, d, "lazyfree memory goes before page cache");
}

static void check_reversals(struct sim *sim, const struct decision *d,
			    const struct guest_snapshot *s)
{
	struct sim_guest *g = &sim->guests[d->slot];
	int direction = d->new_target > s->balloon.actual ? 1 : -1, in_hour = 0;

	if (d->action != ACTION_BALLOON || d->reason == REASON_RELIEF ||
	    d->reason == REASON_STUCK || d->reason == REASON_SELF_PRESSURE ||
	    d->reason == REASON_AUTODEFLATED)
		return;
	if (g->last_direction != 0 && direction != g->last_direction && g->reversals < SIM_HISTORY)
		g->reversal_at[g->reversals++] = sim->now;
	g->last_direction = direction;
	g->last_move = sim->now;
	for (int i = 0; i < g->reversals; i++)
		in_hour += sim->now - g->reversal_at[i] < 3600;
	if (in_hour > 6)
		broken(sim, d, "at most six reversals an hour");
}

void check_round(struct sim *sim)
{
	for (size_t i = 0; i < sim->plan.n_decisions; i++) {
		const struct decision *d = &sim->plan.decisions[i];
		const struct guest_snapshot *s = &sim->guests[d->slot].snapshot;

		check_numbers(sim, d, s);
		check_bounds(sim, d, s);
		check_tiers(sim, d, s);
		check_order(sim, d);
		check_reversals(sim, d, s);
		if (d->action == ACTION_SHED && sim->guests[d->slot].shed_due > 0)
			broken(sim, d, "one shed at a time");
	}
}
