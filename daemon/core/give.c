// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Giving: at once to a guest under pressure, from the pool (relief_round), and to all while the
 * host has room (give_round).
 */
#include "daemon/core/policy-internal.h"

#define RELIEF_MIN     (4 * MIB)
#define FRAME_LIFETIME (5 * SECOND) /* a pressure frame that can't be answered by then is void */
#define REFAULTS_REAL  64 /* pages between two samples */
#define POOL_KEPT_PART 4 /* one in so many is never lent beyond an entitlement */
#define PSI_REAL       0.1 /* stalled part of the time above the baseline */

static uint64_t delta(const struct agent_part *a, enum stat_id id)
{
	uint64_t then = 0, now = 0;

	if (!stat_get(&a->previous, id, &then) || !stat_get(&a->stats, id, &now))
		return 0;
	return less(now, then);
}

/* More than our own reclaim would make: the guest needs again what was taken. */
static bool evidence(const struct view *v)
{
	const struct agent_part *a = &v->g->agent;

	if (a->at_us <= v->m->judge_us || a->previous_at_us == 0)
		return false;
	return delta(a, STAT_ALLOC_STALL) > 0 || delta(a, STAT_OOM_KILL) > 0 ||
	       delta(a, STAT_SWAP_IN) + delta(a, STAT_REFAULT_ANON) + delta(a, STAT_REFAULT_FILE) +
			       delta(a, STAT_REFAULT_EXEC) >
		       REFAULTS_REAL;
}

/* During our own action or just after it, by what it takes to be seen. */
static bool self_made(const struct view *v, uint64_t frame_us)
{
	const struct guest_mem *m = v->m;
	uint64_t last = max_u64(m->take_us, m->acted_us);

	if (m->give_us > m->take_us)
		return false;
	return m->take_us > 0 && (m->shed_at_us > 0 || less(frame_us, last) < PRESSURE_WINDOW ||
				  (m->balloon.moving && m->balloon.target < v->actual));
}

/* Stops what presses the guest: an inflation ends where it is. */
void pause_guest(struct policy *p, struct view *v)
{
	struct guest_mem *m = v->m;
	uint64_t operand[4] = { (uint64_t)(m->psi_rate * 1e6), (uint64_t)(m->psi_baseline * 1e6) };

	say(v, STATE_WAITING, REASON_SELF_PRESSURE, operand[0], operand[1], 0);
	if (v->observed)
		return;
	m->pause_until_us = p->now->now_us + PRESSURE_WINDOW;
	if (m->balloon.moving && m->balloon.target < v->actual)
		(void)decide_balloon(p, v, v->actual, REASON_SELF_PRESSURE, operand);
}

/* Whether a frame of the guest is waiting for memory. */
static bool pressed(struct policy *p, struct view *v)
{
	struct guest_mem *m = v->m;
	uint64_t frame = v->g->agent.pressure_at_us, now_us = p->now->now_us;

	if (frame > m->pressure_us && frame > m->judge_us) {
		if (!self_made(v, frame))
			return true;
		m->judge_us = frame;
		pause_guest(p, v);
	}
	if (m->judge_us == 0)
		return false;
	if (evidence(v))
		return true;
	if (now_us - m->judge_us < 2 * PRESSURE_WINDOW)
		return false;
	if (v->g->agent.at_us > m->judge_us + PRESSURE_WINDOW &&
	    m->psi_rate > m->psi_baseline + PSI_REAL)
		return true;
	m->pressure_us = m->judge_us;
	m->judge_us = 0;
	return false;
}

static uint64_t lost_in_hour(const struct guest_mem *m)
{
	uint64_t lost = 0;

	for (int i = 0; i < LOST_BUCKETS; i++)
		lost += m->lost[i];
	return lost;
}

/* What can be given without taking from others first. */
static uint64_t room_now(const struct policy *p)
{
	const struct plan *plan = p->plan;
	uint64_t room = less(plan->budget, plan->footprint + p->promised + p->reserve);

	if (p->settings->host.budget_hard)
		room = min_u64(room, less(plan->budget, p->commitment + p->unmanaged));
	return room;
}

static void answered(struct view *v)
{
	v->m->pressure_us = v->g->agent.pressure_at_us;
	v->m->judge_us = 0;
}

/* Where the cap is, or is on its way up to. */
static uint64_t cap_of(const struct view *v)
{
	const struct follow *b = &v->m->balloon;

	return b->moving ? max_u64(b->target, v->actual) : v->actual;
}

/* What a guest can be given in one step. Beyond its entitlement it gets what is slack, and of the
 * pool no more than leaves a part of it to those that are entitled. */
static uint64_t grant_for(const struct policy *p, const struct view *v, uint64_t room)
{
	uint64_t cap = cap_of(v), slack = less(room, p->pool), whole = p->pool + p->lent;
	uint64_t lendable = less(whole - whole / POOL_KEPT_PART, p->lent);
	uint64_t want = max_u64(p->pool, 2 * lost_in_hour(v->m));

	/* What was lent before a restart isn't known: it may have been all. */
	if (p->restarted && p->now->now_us - p->first_us < ACCEPT_FOR)
		lendable = 0;
	want = min_u64(min_u64(want, room), less(v->max, cap));
	return min_u64(want, less(v->entitlement, cap) + slack + lendable);
}

static void granted(struct policy *p, struct view *v, uint64_t cap, uint64_t grant, uint64_t room)
{
	struct guest_mem *m = v->m;
	uint64_t beyond = min_u64(grant, less(cap + grant, v->entitlement)), lent;

	answered(v);
	m->relief_us = p->now->now_us;
	m->relief_granted = grant;
	m->relief_footprint = v->footprint;
	m->pause_until_us = p->now->now_us + max_u64(RELIEF_HOLD, 4 * m->dead_us);
	/* Lent, that is, not made good by others. */
	lent = less(beyond, less(room, p->pool));
	m->debt += lent;
	p->lent += min_u64(lent, p->pool);
	p->pool = less(p->pool, lent);
	p->promised += grant;
	p->commitment += grant;
}

static void relieve(struct policy *p, struct view *v)
{
	uint64_t frame = v->g->agent.pressure_at_us, room = room_now(p), cap = cap_of(v);
	uint64_t grant = grant_for(p, v, room);
	uint64_t operand[4] = { grant, room, p->now->now_us - frame };

	if (less(v->max, cap) < ACTUAL_TOLERANCE || cap > v->actual + p->pool) {
		answered(v); /* it has all, or is being given enough */
		return;
	}
	if (grant < min_u64(RELIEF_MIN, less(v->max, cap))) {
		say(v, STATE_RELIEVED, REASON_RELIEF_WAITS, room, 0, 0);
		if (p->now->now_us - frame > FRAME_LIFETIME)
			answered(v);
		return;
	}
	if (decide_balloon(p, v, cap + grant, REASON_RELIEF, operand) && !v->observed)
		granted(p, v, cap, grant, room);
}

void relief_round(struct policy *p)
{
	for (size_t i = 0; i < p->n; i++) {
		struct view *v = &p->views[i];

		v->m->debt = min_u64(
			v->m->debt, less(max_u64(v->actual, v->m->balloon.target), v->entitlement));
		if (v->excluded && v->v->reason != REASON_STUCK &&
		    v->v->reason != REASON_DISBELIEVED && v->v->reason != REASON_AUTODEFLATED) {
			v->m->pressure_us = v->g->agent.pressure_at_us;
			continue;
		}
		if (!p->settled && !follow_at_rest(v->m))
			continue;
		if (v->footprint_known && v->actual > 0 && pressed(p, v))
			relieve(p, v);
	}
}

static bool givable(const struct policy *p, const struct view *v)
{
	return !v->excluded && !v->acted && !v->m->balloon.moving && v->m->shed_at_us == 0 &&
	       v->actual > 0 && v->actual < v->max && (!v->observed || p->observing) &&
	       freshness(v->g->balloon.at_us, p->now->now_us, p->fresh_us) == NUMBER_FRESH;
}

static void give_to(struct policy *p, struct view *v, uint64_t bytes)
{
	uint64_t target = v->actual + bytes, operand[4] = { p->plan->slack, bytes };
	uint64_t wait = 4 * v->m->dead_us, age = p->now->now_us - v->m->take_us;

	if (less(v->max, target) < v->band)
		target = v->max;
	if (target < v->max && bytes < v->band)
		return;
	/* Given in steps, each is to be seen before the next. */
	if (target < v->max && v->m->give_us > 0 && p->now->now_us - v->m->give_us < wait)
		return;
	if (v->m->take_us > 0 && age < wait && !budget_rose(p)) {
		say(v, STATE_WAITING, REASON_REVERSAL_WAITS, age, wait, 0);
		return;
	}
	if (!reversal_allowed(p, v, DIRECTION_GIVE) && !budget_rose(p)) {
		say(v, STATE_WAITING, REASON_REVERSAL_WAITS, age, HOUR, 0);
		return;
	}
	(void)decide_balloon(p, v, target, REASON_GIVE_SLACK, operand);
}

/* Caps as promises: what is promised to none yet. */
static uint64_t unpromised(const struct policy *p)
{
	return less(p->plan->budget, p->pool + p->unmanaged + p->commitment);
}

/*
 * What there is to give. Soft, and never short under this budget: a cap costs nothing until it is
 * used, so with ample slack all go to their maximum at once. Hard, or where it was short before:
 * caps are promises, and no more is promised than there is; and a little isn't worth a move.
 */
static uint64_t room_to_give(const struct policy *p, uint64_t wanted)
{
	bool was_short = p->short_of || p->short_ended_us > 0;
	uint64_t room;

	if (p->settings->host.budget_hard || was_short) {
		room = unpromised(p);
		return room >= wanted || room > p->plan->budget / 10 ? room : 0;
	}
	room = p->plan->slack;
	return room >= wanted / 4 ? wanted : room;
}

void give_round(struct policy *p)
{
	uint64_t room, wanted = 0, shares = 0;

	if (p->level != LEVEL_RELAXED || p->plan->slack == 0 ||
	    (p->now->now_us - p->slack_since_us < SLACK_STAY && !budget_rose(p)))
		return;
	for (size_t i = 0; i < p->n; i++) {
		if (!givable(p, &p->views[i]))
			continue;
		wanted += p->views[i].max - p->views[i].actual;
		shares += p->views[i].g->settings.shares;
	}
	room = room_to_give(p, wanted);
	for (size_t i = 0; i < p->n && room > 0; i++) {
		struct view *v = &p->views[i];
		uint64_t most = less(v->max, v->actual);
		double part = (double)room * v->g->settings.shares / (double)shares;

		if (givable(p, v))
			give_to(p, v,
				room >= wanted || part > (double)most ? most : (uint64_t)part);
	}
}
