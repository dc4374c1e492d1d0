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

#include "daemon/core/profile.h"

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
	p->seen = all;
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

/* Also after a reload, or when the guest has become another: what was asked is what would be. */
static bool profile_stands(const struct policy *p, const struct guest_snapshot *g)
{
	struct profile want;

	if (!g->agent.profile_set || g->agent.profile_level != p->level)
		return false;
	profile_for(p->settings, &p->now->host, g, p->level, &want);
	return profile_equal(&want, &g->agent.asked);
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
		if (profile_stands(p, v->g)) {
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

static void say_settled(const struct policy *p, struct view *v)
{
	if (v->actual < v->max)
		say(v, STATE_LOCKED, REASON_LOCK, v->footprint, less(v->actual, v->footprint), 0);
	else if (p->plan->need > 0)
		say(v, STATE_IDLE, REASON_NOTHING_LEFT, v->footprint, v->min, 0);
	else
		say(v, STATE_IDLE, REASON_SETTLED, 0, 0, 0);
}

static void settle_verdicts(struct policy *p)
{
	bool frozen = p->now->frozen;

	for (size_t i = 0; i < p->n; i++) {
		struct view *v = &p->views[i];

		v->v->entitlement = v->entitlement;
		if (!v->excluded && v->v->reason == REASON_NONE)
			say_settled(p, v);
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

void policy_decide(struct policy *policy, const struct snapshot *current,
		   const struct settings *settings, struct plan *plan)
{
	begin(policy, current, settings, plan);
	for (size_t i = 0; i < policy->n; i++)
		view_guest(policy, i);
	budget_round(policy);
	standstill(policy);
	/* Who calls for memory isn't kept waiting by a restart. */
	if (!policy->settled && policy->seen && policy->budget_known)
		relief_round(policy);
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
