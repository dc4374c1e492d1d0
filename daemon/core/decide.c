// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From what a round wants to a decision in the plan, and what has to be remembered of it: the
 * target, what is expected of the footprint, the direction. What is only observed leaves no trace
 * but the record.
 */
#include "daemon/core/policy-internal.h"

#include <string.h>

void say(struct view *v, enum guest_state state, enum reason reason, uint64_t a, uint64_t b,
	 uint64_t c)
{
	v->v->state = state;
	v->v->reason = reason;
	v->v->operand[0] = a;
	v->v->operand[1] = b;
	v->v->operand[2] = c;
	v->v->operand[3] = 0;
}

static enum guest_state state_for(enum reason reason)
{
	switch (reason) {
	case REASON_RELIEF:
	case REASON_GIVE_SLACK:
		return STATE_RELIEVED;
	case REASON_LOCK:
		return STATE_LOCKED;
	case REASON_STUCK:
	case REASON_AUTODEFLATED:
		return STATE_BACKOFF;
	case REASON_SELF_PRESSURE:
		return STATE_WAITING;
	default:
		return STATE_GIVING;
	}
}

/* Puts the decision where it belongs. Returns whether it is to be carried out. */
static bool record(struct policy *p, struct view *v, const struct decision *d)
{
	struct plan *plan = p->plan;
	struct guest_mem *m = v->m;

	if (d->action != ACTION_PROFILE && d->action != ACTION_SAMPLE) {
		say(v, state_for(d->reason), d->reason, d->operand[0], d->operand[1],
		    d->operand[2]);
		v->v->wants = d->action;
		if (d->action == ACTION_BALLOON)
			v->v->target = d->new_target;
	}
	if (!v->observed) {
		if (plan->n_decisions >= plan->capacity * PLAN_DECISIONS_PER_GUEST)
			return false;
		plan->decisions[plan->n_decisions++] = *d;
		m->observed[d->action] = REASON_NONE;
		return true;
	}
	v->v->state = STATE_OBSERVED;
	/* The same thought round after round is told once. */
	if (m->observed[d->action] != d->reason &&
	    plan->n_observed < plan->capacity * PLAN_DECISIONS_PER_GUEST)
		plan->observed[plan->n_observed++] = *d;
	m->observed[d->action] = d->reason;
	return false;
}

static void note_lost(struct guest_mem *m, uint64_t now_us, uint64_t bytes)
{
	uint64_t bucket = now_us / (HOUR / LOST_BUCKETS);

	for (uint64_t i = 0; m->lost_bucket < bucket && i < LOST_BUCKETS; i++)
		m->lost[++m->lost_bucket % LOST_BUCKETS] = 0;
	m->lost_bucket = bucket;
	m->lost[bucket % LOST_BUCKETS] += bytes;
}

bool reversal_allowed(const struct policy *p, const struct view *v, enum direction direction)
{
	const struct guest_mem *m = v->m;
	uint64_t oldest = m->reversal_us[REVERSALS_PER_HOUR - 1];

	/* A give is only the first half: the take that follows may be needed. */
	if (direction == DIRECTION_GIVE)
		oldest = m->reversal_us[REVERSALS_PER_HOUR - 2];
	return m->direction == DIRECTION_NONE || m->direction == direction || oldest == 0 ||
	       p->now->now_us - oldest >= HOUR;
}

static void note_direction(struct guest_mem *m, uint64_t now_us, enum direction direction,
			   enum reason reason)
{
	if (reason == REASON_RELIEF || reason == REASON_STUCK || reason == REASON_AUTODEFLATED ||
	    reason == REASON_SELF_PRESSURE)
		return;
	if (m->direction != DIRECTION_NONE && m->direction != direction) {
		memmove(&m->reversal_us[1], &m->reversal_us[0],
			sizeof(m->reversal_us) - sizeof(m->reversal_us[0]));
		m->reversal_us[0] = now_us;
	}
	m->direction = direction;
}

static void expect(struct policy *p, struct view *v, uint64_t amount, bool shed)
{
	struct guest_mem *m = v->m;
	uint64_t now_us = p->now->now_us;

	m->take_us = now_us;
	note_lost(m, now_us, amount);
	if (m->probe.at_us > 0 && m->probe.at_us == now_us) {
		m->probe.amount += amount;
		m->probe.shed |= shed;
	} else if (m->probe.at_us == 0 && amount >= 2 * MIB) {
		m->probe = (struct probe){ now_us, v->footprint, amount, shed };
	}
}

static void start_balloon(struct policy *p, struct view *v, uint64_t target, enum reason reason)
{
	struct guest_mem *m = v->m;
	struct follow *b = &m->balloon;
	uint64_t now_us = p->now->now_us;
	enum direction direction = target < v->actual ? DIRECTION_TAKE : DIRECTION_GIVE;

	b->target = b->commanded = target;
	b->moving = true;
	b->retarget = false;
	b->sent_us = b->progress_us = now_us;
	note_direction(m, now_us, direction, reason);
	if (direction == DIRECTION_GIVE) {
		m->give_us = now_us;
		m->issued = 0;
		m->probe.at_us = 0;
		return;
	}
	m->expected = min_u64(v->footprint, target);
	m->tiers.amount[TIER_FREE] = less(m->tiers.amount[TIER_FREE], v->footprint - m->expected);
	m->issued = v->footprint - m->expected;
	m->flight_until_us = now_us + max_u64(4 * m->dead_us, 3 * SECOND);
	if (m->issued > 0)
		expect(p, v, m->issued, false);
	else
		m->take_us = now_us;
}

/* Whether a decision for this reason is to lower a cap, and nothing else. */
static bool lowers(enum reason reason)
{
	return reason == REASON_LOCK || reason == REASON_SHED_FREE || reason == REASON_TAKE_FILE ||
	       reason == REASON_TAKE_USABLE || reason == REASON_TAKE_EXCESS ||
	       reason == REASON_SILENT;
}

bool decide_balloon(struct policy *p, struct view *v, uint64_t target, enum reason reason,
		    const uint64_t operand[4])
{
	struct decision d = {
		.at_us = p->now->now_us,
		.slot = v->g->slot,
		.action = ACTION_BALLOON,
		.reason = reason,
		.old_target = v->m->balloon.target,
	};

	if (!p->now->hypervisor_ready || v->g->obstacles & OBSTACLE_NO_BALLOON)
		return false;
	/* Where actual is old news, a step down from it may be one up from where the cap is. */
	if (lowers(reason) && d.old_target > 0 && target >= d.old_target)
		return false;
	d.new_target = max_u64(min_u64(target, v->max), v->min) & ~UINT64_C(4095);
	memcpy(d.operand, operand, sizeof(d.operand));
	v->acted = true;
	if (record(p, v, &d))
		start_balloon(p, v, d.new_target, reason);
	return true;
}

bool decide_shed(struct policy *p, struct view *v, uint64_t bytes, uint32_t flags,
		 enum reason reason, const uint64_t operand[4])
{
	struct decision d = {
		.at_us = p->now->now_us,
		.slot = v->g->slot,
		.action = ACTION_SHED,
		.reason = reason,
		.bytes = bytes,
		.shed_flags = flags,
		.lifetime_us = SHED_LIFETIME,
	};

	memcpy(d.operand, operand, sizeof(d.operand));
	v->acted = true;
	if (!record(p, v, &d))
		return true;
	v->m->shed_at_us = d.at_us;
	v->m->shed_until_us = d.at_us + SHED_LIFETIME + SECOND;
	v->m->shed_bytes = bytes;
	v->m->shed_dear = flags != 0;
	v->m->shed_anon = flags & SHED_ANON;
	expect(p, v, bytes, true);
	return true;
}

void decide_simple(struct policy *p, struct view *v, enum action action, enum reason reason,
		   uint64_t operand)
{
	struct decision d = {
		.at_us = p->now->now_us,
		.slot = v->g->slot,
		.action = action,
		.reason = reason,
		.operand = { operand },
		.level = p->level,
	};

	if (!v->observed)
		(void)record(p, v, &d);
}
