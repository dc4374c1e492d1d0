// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A round has one direction. follow.c sets down what became of the last actions, what others did
 * to the balloons, and how long an action takes to be seen on the host. budget.c says what the
 * guests cost (H, what the kernel of the host accounts to each QEMU, and nothing that a guest
 * says), what there is (B), and what has to stay free (R: room for growth over the dead time, and
 * the pool that answers pressure). If H + R is more than B, less what is in flight, memory is
 * needed. take.c lays out what each guest holds, by price: free, given up with MADV_FREE, cold
 * page cache, anonymous memory, text. solver.c picks the cheapest. take.c then takes one step of
 * that with each guest that has nothing under way: a balloon over what is free, a shed that frees
 * the next chunk. give.c comes before it with memory for who is under pressure, and after it, when
 * there is room, with memory for all.
 *
 * Two rules hold it still. A guest with an action outstanding, or with numbers from before the end
 * of its last one, is left alone: what is decided is always decided on what was seen. And taking
 * stops at R, while giving starts at a level that is well above it, so that a settled host moves
 * nothing.
 *
 * The order of the tiers is held in three places: by the solver, which takes nothing dear while
 * something cheap is left anywhere; by sheds, which name what they may take and are never larger
 * than the tier; and by order_waits_for(), because what is planned isn't gone yet.
 *
 * What a guest claims is capped by what it costs, so lies can make it lose what it has, and no
 * more. Memory that it claims to have and that doesn't come when it is asked for counts less the
 * next time (trust); what it claims to need counts up to its entitlement.
 */
#include "daemon/core/policy-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int policy_new(struct policy **ret_policy, size_t capacity)
{
	struct policy *p = calloc(1, sizeof(*p));
	size_t n = capacity ? capacity : 1;

	if (!p)
		return -ENOMEM;
	p->capacity = capacity;
	p->mem = calloc(n, sizeof(*p->mem));
	p->views = calloc(n, sizeof(*p->views));
	p->solver = calloc(n, sizeof(*p->solver));
	p->events = calloc(SOLVER_EVENTS(n), sizeof(*p->events));
	if (!p->mem || !p->views || !p->solver || !p->events) {
		policy_free(p);
		return -ENOMEM;
	}
	*ret_policy = p;
	return 0;
}

struct policy *policy_free(struct policy *policy)
{
	if (!policy)
		return NULL;
	free(policy->mem);
	free(policy->views);
	free(policy->solver);
	free(policy->events);
	free(policy);
	return NULL;
}

void policy_forget(struct policy *policy, uint32_t slot)
{
	if (slot < policy->capacity)
		policy->mem[slot] = (struct guest_mem){ 0 };
}

void policy_restore(struct policy *policy, uint32_t slot, uint64_t target)
{
	if (slot >= policy->capacity)
		return;
	policy->mem[slot].balloon.restored = target;
	policy->restarted = true;
}

uint64_t policy_target(const struct policy *policy, uint32_t slot)
{
	const struct follow *b;

	if (slot >= policy->capacity)
		return 0;
	b = &policy->mem[slot].balloon;
	return b->target > 0 ? b->target : b->restored;
}

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
	expect(p, v, bytes, true);
	return true;
}

static void decide_simple(struct policy *p, struct view *v, enum action action, enum reason reason,
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
		known->amount[k] = t->amount[k];
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
	v->busy = acting || (t.known && t.at_us <= m->numbers_us);
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

static void view_guest(struct policy *p, size_t i)
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

/* No move before everything was seen, and seen to stand: a restart changes nothing. */
static void standstill(struct policy *p)
{
	uint64_t now_us = p->now->now_us, age;
	bool all = true;

	if (p->settled || !p->now->hypervisor_ready)
		return;
	if (p->first_us == 0)
		p->first_us = now_us;
	age = now_us - p->first_us;
	for (size_t i = 0; i < p->n; i++)
		all = all && (p->views[i].excluded || !p->views[i].blind);
	p->settled = age >= STANDSTILL_MAX || (all && age >= STANDSTILL_MIN);
	for (size_t i = 0; i < p->n; i++) {
		struct view *v = &p->views[i];
		struct follow *b = &v->m->balloon;

		if (p->settled && b->actual > 0) {
			if (b->restored > 0 && !v->excluded)
				say(v, STATE_WAITING, REASON_RECONCILED, b->actual, b->target, 0);
			b->target = b->actual;
			b->restored = 0;
		} else if (!v->excluded && !v->blind) {
			say(v, STATE_WAITING, REASON_STANDSTILL, age, 0, 0);
		}
	}
}

static void retarget_round(struct policy *p)
{
	for (size_t i = 0; i < p->n; i++) {
		struct view *v = &p->views[i];
		struct follow *b = &v->m->balloon;
		uint64_t operand[4] = { b->commanded, v->actual,
					less(v->m->backoff_until_us, p->now->now_us) };

		if (!b->retarget || v->g->phase != PHASE_RUNNING)
			continue;
		b->retarget = false;
		if (b->retarget_reason == REASON_AUTODEFLATED)
			operand[0] = v->actual, operand[1] = b->commanded;
		(void)decide_balloon(p, v, v->actual, b->retarget_reason, operand);
	}
}

/* An agent that falls silent while its guest is being inflated may be thrashing. */
static void silence_round(struct policy *p)
{
	for (size_t i = 0; i < p->n; i++) {
		struct view *v = &p->views[i];
		const struct follow *b = &v->m->balloon;

		if (!v->excluded && v->blind && v->m->had_agent && b->moving &&
		    b->target < v->actual && b->sent_us < p->now->now_us - p->fresh_us)
			pause_guest(p, v);
	}
}

static void profile_round(struct policy *p)
{
	for (size_t i = 0; i < p->n; i++) {
		struct view *v = &p->views[i];
		const struct agent_part *a = &v->g->agent;
		uint64_t now_us = p->now->now_us;

		if (v->g->settings.manage != MANAGE_ACT || v->g->phase != PHASE_RUNNING ||
		    a->link != AGENT_UP || !(a->capabilities & AGENT_MAY_PROFILE))
			continue;
		if (a->profile_set && a->profile_level == p->level) {
			v->m->profile = (struct refusal){ 0 };
		} else if (now_us >= v->m->profile.until_us) {
			if (!v->observed)
				refuse(&v->m->profile, now_us, 2 * SECOND);
			decide_simple(p, v, ACTION_PROFILE, REASON_PROFILE, p->level);
		}
	}
}

/* Whether a sample that isn't there yet would let something go on. */
static bool wants_sample(const struct view *v)
{
	const struct guest_mem *m = v->m;

	if (v->excluded || v->g->agent.link != AGENT_UP || m->shed_at_us > 0)
		return false;
	if (v->shed_busy)
		return m->asked_us <= m->shed_numbers_us;
	return v->busy && !m->balloon.moving && m->asked_us <= m->numbers_us;
}

static void sample_round(struct policy *p)
{
	for (size_t i = 0; i < p->n; i++) {
		struct view *v = &p->views[i];
		uint64_t now_us = p->now->now_us;

		if (!wants_sample(v))
			continue;
		v->m->asked_us = now_us;
		decide_simple(p, v, ACTION_SAMPLE, REASON_RESAMPLE, now_us - v->g->agent.at_us);
	}
}

static void settle_verdicts(struct policy *p)
{
	bool frozen = p->now->frozen;

	for (size_t i = 0; i < p->n; i++) {
		struct view *v = &p->views[i];

		v->v->entitlement = v->entitlement;
		if (!v->excluded && v->v->reason == REASON_NONE)
			say(v, STATE_IDLE, REASON_SETTLED, p->plan->need, 0, 0);
		if (v->v->state == STATE_IDLE && v->actual < v->max)
			v->v->state = STATE_LOCKED;
		if (p->observing && !v->excluded && !v->acted && !v->blind)
			say(v, STATE_OBSERVED, frozen ? REASON_FROZEN : REASON_OBSERVE, 0, 0, 0);
	}
}

static void begin(struct policy *p, const struct snapshot *now, const struct settings *settings,
		  struct plan *plan)
{
	p->now = now;
	p->settings = settings;
	p->plan = plan;
	p->n = 0;
	while (p->n < now->n_guests && p->n < plan->capacity && p->n < p->capacity &&
	       now->guests[p->n].slot < p->capacity)
		p->n++;
	p->fresh_us = settings_fresh_limit(settings);
	p->observing = settings->host.mode == MODE_OBSERVE || now->frozen;
	*plan = (struct plan){
		.at_us = now->now_us,
		.verdicts = plan->verdicts,
		.decisions = plan->decisions,
		.observed = plan->observed,
		.capacity = plan->capacity,
		.n_verdicts = p->n,
	};
}

void policy_decide(struct policy *policy, const struct snapshot *previous,
		   const struct snapshot *current, const struct settings *settings,
		   struct plan *plan)
{
	(void)previous; /* what a round needs of the one before is in the state */
	begin(policy, current, settings, plan);
	for (size_t i = 0; i < policy->n; i++)
		view_guest(policy, i);
	budget_round(policy);
	standstill(policy);
	if (policy->settled && policy->budget_known) {
		retarget_round(policy);
		silence_round(policy);
		relief_round(policy);
		take_amounts(policy);
		take_round(policy);
		lock_round(policy);
		give_round(policy);
		profile_round(policy);
		sample_round(policy);
	}
	settle_verdicts(policy);
}
