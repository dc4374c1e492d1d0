// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The host's side of a round: the budget, what the guests cost, the room to keep (R), the need,
 * the level, and what each guest is entitled to.
 */
#include "daemon/core/policy-internal.h"

#define GROWTH_MAX_PART	 30 /* of the budget: growth asks for no more than one in so many */
#define GROWTH_HALF_LIFE (10 * SECOND)
#define HYSTERESIS_PART	 4 /* a level is left when the room is more by one in so many */
#define BUDGET_NEWS	 (10 * SECOND) /* so long a larger budget lifts waits */

/* Where the balloon may go to without the guest having to reclaim for it. */
uint64_t commit_floor(const struct view *v)
{
	const struct tiers *t = &v->m->tiers;

	if (!t->free_known)
		return max_u64(v->footprint + t->reserve, v->min);
	/* A balloon that runs on another CPU doesn't get what this one holds. */
	return max_u64(t->used + t->reserve + t->held / 2, v->min);
}

struct sums {
	uint64_t footprint, swapped, worst; /* worst: unknown footprints count as the cap */
};

static struct sums sum_guests(struct policy *p)
{
	struct sums s = { 0 };

	p->unmanaged = p->commitment = p->promised = 0;
	for (size_t i = 0; i < p->n; i++) {
		struct view *v = &p->views[i];
		uint64_t cost = v->footprint_known ? v->footprint : 0;

		if (v->g->obstacles & OBSTACLE_HUGEPAGES) /* pools aren't this budget's */
			continue;
		s.footprint += cost;
		s.swapped += v->footprint_known ? min_u64(v->g->cost.swapped, cost) : 0;
		s.worst += v->footprint_known ? cost : v->actual;
		if (v->excluded || !v->balloons)
			p->unmanaged += cost;
		else
			p->commitment += min_u64(v->actual, max_u64(v->m->balloon.target, 1));
		if (p->now->now_us - v->m->relief_us < RELIEF_HOLD && v->m->relief_us > 0)
			p->promised += less(v->m->relief_granted,
					    less(v->footprint, v->m->relief_footprint));
	}
	return s;
}

/* Returns false where what the budget is of isn't known. */
static bool budget_of(const struct policy *p, const struct sums *s, uint64_t *ret_budget,
		      uint64_t *ret_configured)
{
	const struct host_settings *hs = &p->settings->host;
	const struct host_snapshot *h = &p->now->host;

	*ret_configured = 0;
	if (hs->budget_kind == BUDGET_AMOUNT && hs->budget.kind == AMOUNT_BYTES) {
		*ret_budget = *ret_configured = hs->budget.value;
		return true;
	}
	if (hs->budget_kind == BUDGET_CGROUP) {
		if (freshness(h->cgroup_at_us, p->now->now_us, p->fresh_us) != NUMBER_FRESH)
			return false;
		*ret_configured = h->cgroup_limit;
		*ret_budget =
			less(h->cgroup_limit, less(h->cgroup_usage, s->footprint - s->swapped));
		return true;
	}
	if (freshness(h->at_us, p->now->now_us, p->fresh_us) != NUMBER_FRESH)
		return false;
	if (hs->budget_kind == BUDGET_AMOUNT) {
		*ret_budget = *ret_configured = amount_resolve(&hs->budget, h->total, h->total);
		return true;
	}
	/* The host's own: what the guests have in memory and what it could still give. */
	*ret_budget = s->footprint - s->swapped + h->available;
	return true;
}

static void note_budget(struct policy *p, uint64_t configured)
{
	if (p->budget_configured > 0 && configured > p->budget_configured) {
		p->budget_rose_us = p->now->now_us;
		p->short_ended_us = 0; /* what was short then is no measure now */
	}
	p->budget_configured = configured;
}

bool budget_rose(const struct policy *p)
{
	return p->budget_rose_us > 0 && p->now->now_us - p->budget_rose_us < BUDGET_NEWS;
}

/* Bytes per second that the guests grow by: up at once, down slowly. */
static void follow_growth(struct policy *p, uint64_t footprint)
{
	uint64_t now_us = p->now->now_us, dt = now_us - p->last_us;
	double rate;

	if (p->last_us == 0 || dt >= SECOND / 2) {
		if (p->last_us > 0 && dt > 0) {
			rate = (double)less(footprint, p->last_footprint) * 1e6 / (double)dt;
			p->growth *= 1 - min_u64(dt, GROWTH_HALF_LIFE) / (2.0 * GROWTH_HALF_LIFE);
			p->growth = rate > p->growth ? rate : p->growth;
		}
		p->last_us = now_us;
		p->last_footprint = footprint;
	}
}

/* Stalls on the host ask for more room, slowly, up to twice as much. */
static void follow_psi(struct policy *p, uint64_t dt_us)
{
	const struct host_settings *hs = &p->settings->host;
	const struct host_snapshot *h = &p->now->host;
	double want = 1, step = (double)dt_us / 1e7;

	if (freshness(h->psi_at_us, p->now->now_us, p->fresh_us) == NUMBER_FRESH &&
	    h->psi_some_avg10 > hs->psi_low && hs->psi_high > hs->psi_low) {
		want += (double)(h->psi_some_avg10 - hs->psi_low) / (hs->psi_high - hs->psi_low);
		want = want > 2 ? 2 : want;
	}
	if (p->psi_scale < 1)
		p->psi_scale = 1;
	if (want > p->psi_scale)
		p->psi_scale = want < p->psi_scale + step ? want : p->psi_scale + step;
	else
		p->psi_scale = want > p->psi_scale - step ? want : p->psi_scale - step;
}

static void room_to_keep(struct policy *p, uint64_t whole)
{
	const struct host_settings *hs = &p->settings->host;
	uint64_t growth = (uint64_t)(p->growth * (double)p->plan->dead_time_us / 1e6);
	uint64_t debt = 0;

	growth = min_u64(growth, whole / GROWTH_MAX_PART);
	p->reserve = max_u64(amount_resolve(&hs->headroom, whole, 0), growth);
	p->pool = amount_resolve(&hs->grant_pool, whole, 0);
	p->reserve = (uint64_t)((double)p->reserve * p->psi_scale);
	for (size_t i = 0; i < p->n; i++)
		debt += p->views[i].m->debt;
	/* What was lent beyond an entitlement is not made good by others, and is no slack. */
	p->lent = min_u64(p->pool, debt);
	p->pool -= p->lent;
}

static enum level level_by_room(const struct policy *p, uint64_t room_pct, uint32_t part)
{
	const struct host_settings *hs = &p->settings->host;

	if (room_pct < hs->critical_below + part * hs->critical_below / HYSTERESIS_PART)
		return LEVEL_CRITICAL;
	if (room_pct < hs->tight_below + part * hs->tight_below / HYSTERESIS_PART ||
	    p->plan->need > 0)
		return LEVEL_TIGHT;
	return LEVEL_RELAXED;
}

static void follow_level(struct policy *p)
{
	struct plan *plan = p->plan;
	uint64_t room = less(plan->budget, plan->footprint), now_us = p->now->now_us;
	uint64_t room_pct = plan->budget >= 10000 ? room / (plan->budget / 10000) : 0;
	enum level up = level_by_room(p, room_pct, 0), down = level_by_room(p, room_pct, 1);

	if (up > p->level) {
		p->level = up;
		p->level_since_us = now_us;
	} else if (down < p->level &&
		   (now_us - p->level_since_us >= p->settings->host.level_min_stay_us ||
		    budget_rose(p))) {
		p->level = down;
		p->level_since_us = now_us;
	}
	plan->level = p->level;
}

/* Its min and its share of what the minima leave; what a full guest can't use goes to the rest. */
static void entitle(struct policy *p)
{
	uint64_t floor = 0, left;

	for (size_t i = 0; i < p->n; i++) {
		p->views[i].entitlement = p->views[i].min;
		if (!p->views[i].excluded)
			floor += p->views[i].min;
	}
	p->plan->floor = floor + p->unmanaged + p->reserve + p->pool;
	left = less(p->plan->budget, p->plan->floor);
	for (int pass = 0; pass < 4 && left > MIB; pass++) {
		uint64_t shares = 0, given = 0;

		for (size_t i = 0; i < p->n; i++)
			if (!p->views[i].excluded && p->views[i].entitlement < p->views[i].max)
				shares += p->views[i].g->settings.shares;
		for (size_t i = 0; shares > 0 && i < p->n; i++) {
			struct view *v = &p->views[i];
			uint64_t part =
				(uint64_t)((double)left * v->g->settings.shares / (double)shares);

			if (v->excluded)
				continue;
			part = min_u64(part, less(v->max, v->entitlement));
			v->entitlement += part;
			given += part;
		}
		left = less(left, given);
	}
}

/*
 * Under a hard budget it is the caps that must fit, with the pool, and a cap can't go below what
 * its guest uses: that can be lowered by sheds alone, so free memory doesn't count for it.
 */
static uint64_t need_of_caps(const struct policy *p)
{
	uint64_t floors = p->unmanaged + p->pool, unused = 0;

	if (!p->settings->host.budget_hard)
		return 0;
	for (size_t i = 0; i < p->n; i++) {
		const struct view *v = &p->views[i];

		if (v->excluded || !v->balloons)
			continue;
		floors += v->m->tiers.known ? min_u64(commit_floor(v), v->actual) : v->actual;
		if (v->m->tiers.known)
			unused += less(v->footprint, commit_floor(v));
	}
	floors = less(floors, p->plan->budget + p->plan->in_flight);
	return floors > 0 ? floors + unused : 0;
}

/*
 * What was lent before a restart, and which memory is in use, is forgotten. So what the reserve
 * lacked then is taken as it is: @lack less what was accepted, which only ever shrinks.
 */
static uint64_t accept(const struct policy *p, uint64_t *accepted, uint64_t lack)
{
	if (!p->restarted || p->now->now_us - p->first_us > ACCEPT_FOR ||
	    p->plan->footprint > p->plan->budget)
		*accepted = 0;
	else if (!p->settled)
		*accepted = lack;
	*accepted = min_u64(*accepted, lack);
	return lack - *accepted;
}

void budget_round(struct policy *p)
{
	struct sums s = sum_guests(p);
	struct plan *plan = p->plan;
	uint64_t configured, keep;

	plan->footprint = s.footprint;
	for (size_t i = 0; i < p->n; i++) {
		plan->dead_time_us = max_u64(plan->dead_time_us, p->views[i].m->dead_us);
		plan->in_flight += p->views[i].v->in_flight;
	}
	p->budget_known = budget_of(p, &s, &plan->budget, &configured);
	if (!p->budget_known) {
		plan->level = p->level;
		return;
	}
	note_budget(p, configured);
	follow_psi(p, p->last_round_us > 0 ? p->now->now_us - p->last_round_us : 0);
	p->last_round_us = p->now->now_us;
	follow_growth(p, s.footprint);
	room_to_keep(p, p->settings->host.budget_kind == BUDGET_HOST ? p->now->host.total
								     : plan->budget);
	keep = p->reserve + p->pool;
	plan->headroom = keep;
	plan->grant_pool = p->pool;
	plan->need = less(s.footprint + keep, plan->budget + plan->in_flight);
	plan->need = accept(p, &p->accepted, max_u64(plan->need, need_of_caps(p)));
	p->caps_excess = accept(p, &p->accepted_caps,
				less(p->commitment + p->pool + p->unmanaged, plan->budget));
	plan->slack = less(plan->budget, s.worst + keep + p->lent);
	follow_level(p);
	if (plan->slack == 0 || p->level != LEVEL_RELAXED)
		p->slack_since_us = p->now->now_us;
	entitle(p);
}
