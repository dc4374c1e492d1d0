// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a round sees of a guest: whether it may be acted on and why not, by which means, and whether
 * its numbers are newer than the last action.
 */
#include "daemon/core/policy-internal.h"

static void exclude(struct view *v, enum guest_state state, enum reason reason, uint64_t a,
		    uint64_t b, uint64_t c)
{
	v->excluded = true;
	say(v, state, reason, a, b, c);
}

static bool back_in_time(struct policy *p, struct view *v)
{
	struct guest_mem *m = v->m;
	uint64_t now_us = p->now->now_us, tolerance = max_u64(32 * MIB, v->g->balloon.maximum / 8);

	if (!v->footprint_known || m->balloon.moving || v->footprint <= v->actual + tolerance)
		m->high_since_us = 0;
	else if (m->high_since_us == 0)
		m->high_since_us = now_us;
	else if (now_us - m->high_since_us > STUCK_AFTER && now_us >= m->backoff_until_us)
		back_off(m, now_us, REASON_DISBELIEVED);
	return now_us >= m->backoff_until_us;
}

static void exclude_backoff(struct policy *p, struct view *v)
{
	struct guest_mem *m = v->m;
	uint64_t retry = less(m->backoff_until_us, p->now->now_us);

	if (m->backoff_reason == REASON_DISBELIEVED)
		exclude(v, STATE_BACKOFF, REASON_DISBELIEVED, v->footprint, v->actual, retry);
	else if (m->backoff_reason == REASON_AUTODEFLATED)
		exclude(v, STATE_BACKOFF, REASON_AUTODEFLATED, v->actual, m->balloon.target, 0);
	else
		exclude(v, STATE_BACKOFF, REASON_STUCK, m->balloon.commanded, v->actual, retry);
}

#define OBSTACLES_PINNED                                                                           \
	(OBSTACLE_PASSTHROUGH | OBSTACLE_LOCKED | OBSTACLE_HUGEPAGES | OBSTACLE_SHARED)

static void check_exclusion(struct policy *p, struct view *v)
{
	const struct guest_snapshot *g = v->g;

	if (g->settings.manage == MANAGE_NO)
		exclude(v, STATE_EXCLUDED, REASON_UNMANAGED, 0, 0, 0);
	else if (!p->now->hypervisor_ready)
		exclude(v, STATE_BLIND, REASON_NO_HYPERVISOR, 0, 0, 0);
	else if (g->phase != PHASE_RUNNING)
		exclude(v, STATE_EXCLUDED, REASON_PHASE, g->phase, 0, 0);
	else if (g->obstacles & OBSTACLES_PINNED)
		exclude(v, STATE_EXCLUDED, REASON_PINNED, g->obstacles, 0, 0);
	else if ((g->obstacles & OBSTACLE_NO_BALLOON) && g->agent.link != AGENT_UP)
		exclude(v, STATE_EXCLUDED, REASON_NO_BALLOON, 0, 0, 0);
	else if (v->m->foreign)
		exclude(v, STATE_BACKOFF, REASON_FOREIGN, v->actual, v->m->balloon.commanded, 0);
	else if (v->m->balloon.strange_us > 0)
		exclude(v, STATE_WAITING, REASON_FOREIGN, v->actual, v->m->balloon.target, 0);
	else if (!back_in_time(p, v))
		exclude_backoff(p, v);
	if (p->observing)
		return;
	if (!v->excluded && g->settings.manage == MANAGE_OBSERVE)
		say(v, STATE_OBSERVED, REASON_OBSERVE, 0, 0, 0);
}

static void check_means(struct policy *p, struct view *v)
{
	const struct agent_part *a = &v->g->agent;
	uint32_t needs = AGENT_MAY_SHED | AGENT_HAS_RECLAIM;

	v->balloons = !(v->g->obstacles & OBSTACLE_NO_BALLOON) && v->g->balloon.at_us > 0;
	v->sheds = a->link == AGENT_UP && (a->capabilities & needs) == needs &&
		   p->now->now_us >= v->m->refused[true].until_us &&
		   (v->balloons || v->g->balloon.reporting);
	/* Without lazyfree_first the guest's kernel can't take the one and leave the other. */
	v->sheds_lazyfree = a->link == AGENT_UP && (a->capabilities & needs) == needs &&
			    (a->capabilities & AGENT_HAS_LAZYFREE_FIRST) &&
			    p->now->now_us >= v->m->refused[false].until_us &&
			    (v->balloons || v->g->balloon.reporting);
}

/* While the balloon moves, free memory can't be told, but the rest can. */
static void keep_free(struct tiers *known, const struct tiers *t)
{
	for (int k = TIER_LAZYFREE; k < TIER_MAX_ID; k++)
		known->amount[k] = t->moving[k];
	known->at_us = t->at_us;
}

/* Reads the tiers, unless the numbers are from before the end of the last action. */
static void check_numbers(struct policy *p, struct view *v)
{
	struct guest_mem *m = v->m;
	uint64_t now_us = p->now->now_us, oldest = tiers_oldest(v->g);
	bool acting = m->shed_at_us > 0 || m->balloon.moving;
	struct tiers t;

	tiers_read(v->g, now_us, p->fresh_us, &t);
	v->blind = !t.known;
	v->busy = acting || (t.known && t.at_us <= m->numbers_us) || !follow_at_rest(m);
	v->shed_busy = m->shed_at_us > 0 || (t.known && t.at_us <= m->shed_numbers_us);
	if (!v->busy || !m->tiers.known)
		m->tiers = t;
	else if (!v->shed_busy && t.known)
		keep_free(&m->tiers, &t);
	v->v->in_flight = v->footprint_known ? follow_in_flight(v, now_us) : 0;
	if (v->excluded)
		return;
	if (v->blind)
		say(v, STATE_BLIND,
		    v->g->driver.at_us == 0 && !m->had_agent ? REASON_NO_DRIVER : REASON_NO_NUMBERS,
		    oldest > 0 ? now_us - oldest : 0, 0, 0);
	else if (acting)
		say(v, STATE_WAITING, REASON_IN_FLIGHT, v->v->in_flight, now_us - m->take_us, 0);
	else if (v->busy)
		say(v, STATE_WAITING, REASON_RESAMPLE, now_us - m->tiers.at_us, 0, 0);
}

static void show_numbers(struct view *v)
{
	const struct tiers *t = &v->m->tiers;

	v->v->tiers_known = t->known && !v->blind;
	for (int k = 0; k < TIER_MAX_ID; k++)
		v->v->tiers[k] = v->v->tiers_known ? t->amount[k] : 0;
	v->v->dead_time_us = v->m->dead_us;
	v->v->target = v->m->balloon.target;
}

void view_guest(struct policy *p, size_t i)
{
	const struct guest_snapshot *g = &p->now->guests[i];
	struct view *v = &p->views[i];

	*v = (struct view){ .g = g, .v = &p->plan->verdicts[i], .s = &p->solver[i] };
	v->m = &p->mem[g->slot];
	*v->v = (struct verdict){ .slot = g->slot };
	v->footprint = g->cost.footprint;
	v->footprint_known = g->cost.at_us > 0;
	v->actual = g->balloon.actual;
	v->min = guest_min(g);
	v->max = guest_max(g);
	v->observed = p->observing || g->settings.manage == MANAGE_OBSERVE;
	follow_guest(p, v);
	check_means(p, v);
	check_exclusion(p, v);
	check_numbers(p, v);
	v->band = max_u64(max_u64(v->actual / 100, (uint64_t)(3 * v->m->deviation)), CHUNK_MIN);
	show_numbers(v);
}
