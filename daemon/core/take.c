// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Taking: which memory there is to take (take_amounts), one step of taking it (take_round), and
 * lowering caps onto footprints so that it isn't taken back (lock_round).
 *
 * A step has up to two parts at once. The balloon is inflated over what is free already, down to
 * where the footprint has to be: that takes no page that the guest uses, and the host sees it
 * within tenths of a second. And a shed makes the next chunk free. The next step, as soon as a
 * sample is newer than both, collects that chunk with its balloon, and so on.
 */
#include "daemon/core/policy-internal.h"

#define LAZYFREE_REST_PART 20 /* the order holds until all but one in so many is gone */
#define TRUST_MIN	   0.2

static bool may_swap(const struct policy *p, const struct view *v)
{
	const struct stat_set *s = &v->g->agent.stats;
	uint64_t room = 0;

	if (v->g->settings.swap == SWAP_NEVER ||
	    (v->g->settings.swap == SWAP_CRITICAL && p->level != LEVEL_CRITICAL))
		return false;
	return v->sheds && stat_get(s, STAT_SWAP_FREE, &room) && room > 0;
}

static uint64_t amount_free(const struct view *v)
{
	const struct tiers *t = &v->m->tiers;

	if (v->balloons)
		return min_u64(less(v->footprint, commit_floor(v)), t->amount[TIER_FREE]);
	/* Without a balloon only reporting returns it. */
	return v->g->balloon.reporting ? less(t->amount[TIER_FREE], t->reserve) : 0;
}

/* Page cache, with the lazyfree memory where the guest can't take that alone. */
static uint64_t file_of(const struct view *v)
{
	const struct tiers *t = &v->m->tiers;
	uint64_t file = t->amount[TIER_FILE];

	if (!v->sheds_lazyfree)
		file += t->amount[TIER_LAZYFREE];
	if (t->from_agent && v->sheds)
		return (uint64_t)((double)file * v->m->trust);
	/* Its agent has just gone, and may be back: a balloon would take lazyfree memory and text
	 * with it. */
	if (t->from_agent && v->g->agent.link != AGENT_UP)
		return 0;
	return v->balloons ? file : 0;
}

static uint64_t anon_of(const struct policy *p, const struct view *v)
{
	uint64_t room = 0;

	if (!may_swap(p, v))
		return 0;
	(void)stat_get(&v->g->agent.stats, STAT_SWAP_FREE, &room);
	return min_u64(v->m->tiers.amount[TIER_ANON], room);
}

/* Page cache that isn't in use, and what the guest holds beyond its entitlement, unless the need
 * is for the pool alone, which isn't worth that. */
static void amounts_dear(struct policy *p, struct view *v, uint64_t over)
{
	struct solver_guest *s = v->s;
	uint64_t file = less(file_of(v), v->m->file.bytes);

	s->amount[ITEM_FILE] = min_u64(file, over);
	if (p->plan->footprint + p->reserve > p->plan->budget)
		s->amount[ITEM_EXCESS] =
			min_u64(less(anon_of(p, v), v->m->anon.bytes), over - s->amount[ITEM_FILE]);
}

/* A guest that is blind: whether its grace is over. */
static bool grace_is_over(const struct policy *p, const struct view *v)
{
	return less(p->now->now_us, v->m->heard_us) >= v->g->settings.stale_grace_us;
}

/* Whether a guest can be lowered, now or after its grace, whatever it says: on what the host itself
 * knows of it. */
static bool squeezable(const struct policy *p, const struct view *v)
{
	uint64_t oldest = min_u64(v->g->cost.at_us, v->g->balloon.at_us);

	return !v->excluded && v->balloons &&
	       (!v->blind || (v->m->heard_us > 0 && v->g->settings.stale == STALE_LOWER)) &&
	       freshness(oldest, p->now->now_us, p->fresh_us) == NUMBER_FRESH &&
	       (!v->observed || p->observing);
}

/*
 * Over the budget with all of that taken. What a guest holds beyond its entitlement counts under
 * whatever name, or under none when it is silent; then what is in use goes too, text last.
 */
static void amounts_in_use(struct policy *p, struct view *v)
{
	struct solver_guest *s = v->s;
	uint64_t cheap = s->amount[ITEM_FREE] + s->amount[ITEM_LAZYFREE] + s->amount[ITEM_FILE];
	uint64_t floor = max_u64(v->entitlement, v->min);
	bool told = s->cap > 0 && v->m->trust >= TRUST_MIN;

	if (squeezable(p, v)) {
		s->amount[ITEM_EXCESS] = less(v->footprint, floor + cheap);
		s->cap = max_u64(s->cap, s->amount[ITEM_EXCESS]);
	}
	if (!told)
		return;
	s->amount[ITEM_FILE_ENTITLED] = less(file_of(v), s->amount[ITEM_FILE]);
	s->amount[ITEM_ANON] = less(anon_of(p, v), s->amount[ITEM_EXCESS]);
	if (v->sheds)
		s->amount[ITEM_TEXT] = v->m->tiers.amount[TIER_TEXT];
}

static void amounts_of(struct policy *p, struct view *v)
{
	const struct tiers *t = &v->m->tiers;
	struct solver_guest *s = v->s;
	uint64_t cheap;

	*s = (struct solver_guest){ .weight = v->g->settings.shares / 1000.0 };
	if (s->weight <= 0)
		s->weight = 0.001;
	for (int k = 0; k < ITEM_MAX_ID; k++)
		s->cost[k] = solver_prior(k) * v->m->learned[k];
	if (v->excluded || v->blind || !t->known || p->now->now_us < v->m->pause_until_us ||
	    (v->observed && !p->observing))
		return;
	s->amount[ITEM_FREE] = amount_free(v);
	if (v->sheds_lazyfree && v->m->trust >= TRUST_MIN)
		s->amount[ITEM_LAZYFREE] =
			(uint64_t)((double)t->amount[TIER_LAZYFREE] * v->m->trust);
	/* All that is free is going, by the balloon or by a report. */
	cheap = t->amount[TIER_FREE] + s->amount[ITEM_LAZYFREE];
	s->cap = less(v->footprint, cheap + v->min);
	if (v->m->trust >= TRUST_MIN)
		amounts_dear(p, v, less(v->footprint, max_u64(v->entitlement, v->min) + cheap));
}

void take_amounts(struct policy *p)
{
	struct plan *plan = p->plan;
	uint64_t over = less(plan->footprint, plan->budget + plan->in_flight);

	for (size_t i = 0; i < p->n; i++)
		amounts_of(p, &p->views[i]);
	plan->shortfall = solver_run(p->solver, p->n, plan->need, p->events);
	if (over <= plan->need - plan->shortfall)
		return;
	for (size_t i = 0; i < p->n; i++)
		amounts_in_use(p, &p->views[i]);
	plan->shortfall = plan->need - over + solver_run(p->solver, p->n, over, p->events);
}

/* What comes again faster than it is taken isn't waited for. */
static bool comes_again(const struct guest_mem *m)
{
	return m->lazy_asked > 2 * max_u64(m->lazy_start, GAUGE_SMALL);
}

/* What is there and on its way. A pause or a balloon on the move doesn't make it less. */
static uint64_t lazyfree_of(const struct policy *p, const struct view *v)
{
	const struct guest_mem *m = v->m;
	uint64_t since = max_u64(p->short_since_us, m->lazy_us), rest;

	if (v->excluded || v->blind || (v->observed && !p->observing) || comes_again(m))
		return 0;
	if (m->shed_at_us > 0 && !m->shed_dear)
		return max_u64(m->shed_bytes, m->tiers.amount[TIER_LAZYFREE]);
	if (!v->sheds_lazyfree || m->trust < TRUST_MIN || p->now->now_us - since > ORDER_PATIENCE)
		return 0;
	rest = max_u64(m->lazy_start / LAZYFREE_REST_PART, CHUNK_MIN);
	return m->tiers.amount[TIER_LAZYFREE] > rest ? m->tiers.amount[TIER_LAZYFREE] : 0;
}

/* Cold cache waits until the lazyfree memory is gone everywhere, all but a rest. */
static uint64_t order_waits_for(const struct policy *p)
{
	uint64_t left = 0;

	for (size_t i = 0; i < p->n; i++)
		left += lazyfree_of(p, &p->views[i]);
	return left;
}

/* Begins and ends a shortage, with some room between the two. */
static void latch(struct policy *p)
{
	struct plan *plan = p->plan;
	uint64_t now_us = p->now->now_us;

	if (!p->short_of && plan->need > plan->headroom / 8) {
		p->short_of = true;
		p->short_since_us = now_us;
		if (now_us - p->short_ended_us > 10 * SECOND || p->short_ended_us == 0) {
			for (size_t i = 0; i < p->n; i++)
				p->views[i].m->lazy_start = p->views[i].m->lazy_asked =
					p->views[i].m->lazy_good = 0;
		}
	} else if (p->short_of && plan->need == 0 && plan->in_flight == 0) {
		p->short_of = false;
		p->short_ended_us = now_us;
	}
	for (size_t i = 0; i < p->n; i++)
		p->views[i].m->lazy_start =
			max_u64(p->views[i].m->lazy_start, p->views[i].s->amount[ITEM_LAZYFREE]);
}

/* The least that is worth an action: less of it when the host is over its budget. */
static uint64_t band_of(const struct policy *p, const struct view *v)
{
	bool over = p->plan->footprint > p->plan->budget;

	return over ? max_u64(v->band / 4, CHUNK_MIN) : v->band;
}

static bool take_free(struct policy *p, struct view *v)
{
	uint64_t x = v->s->take[ITEM_FREE], target;
	uint64_t operand[4] = { p->plan->need, v->m->tiers.amount[TIER_FREE] };

	if (!v->balloons || x < CHUNK_MIN)
		return false;
	target = max_u64(v->footprint - x, commit_floor(v));
	if (target + band_of(p, v) > v->actual) {
		say(v, STATE_WAITING, REASON_DEAD_BAND, less(v->actual, target), band_of(p, v), 0);
		return false;
	}
	return decide_balloon(p, v, target, REASON_SHED_FREE, operand);
}

static uint64_t whole_pages(uint64_t bytes)
{
	return bytes & ~UINT64_C(4095);
}

static bool take_lazyfree(struct policy *p, struct view *v)
{
	uint64_t have = v->s->amount[ITEM_LAZYFREE], x = v->s->take[ITEM_LAZYFREE];
	/* Half of it first; where that came, the gauge is true and the rest goes at once. */
	uint64_t chunk = have > GAUGE_SMALL && !v->m->lazy_good ? min_u64(x, have / 2) : x;
	uint64_t operand[4] = { p->plan->need, v->m->tiers.amount[TIER_LAZYFREE] };

	if (!v->sheds_lazyfree || chunk < CHUNK_MIN)
		return false;
	if (!decide_shed(p, v, whole_pages(chunk), 0, REASON_SHED_LAZYFREE, operand))
		return false;
	if (!v->observed) {
		v->m->lazy_asked += chunk;
		v->m->lazy_us = p->now->now_us;
	}
	return true;
}

/* Cold cache and dearer: one chunk, then time to see what it did. */
static bool observing(struct view *v, uint64_t now_us)
{
	struct guest_mem *m = v->m;
	uint64_t age = now_us - m->take_dear_us;

	if (m->take_dear_us == 0 || (age >= m->dead_us && m->tiers.at_us > m->take_dear_us))
		return false;
	say(v, STATE_WAITING, REASON_OBSERVING, age, m->dead_us, 0);
	return true;
}

/* Without an agent the balloon is the only means, and the guest finds the pages itself. */
static bool take_by_balloon(struct policy *p, struct view *v, uint64_t x)
{
	const struct tiers *t = &v->m->tiers;
	uint64_t usable = t->from_agent ? t->amount[TIER_FILE] : t->usable;
	uint64_t base = t->free_known ? max_u64(v->footprint, commit_floor(v)) : v->footprint;
	uint64_t chunk = min_u64(x, min_u64(usable / 2, t->amount[TIER_FILE] / 4));
	uint64_t target = max_u64(less(min_u64(base, v->actual), chunk), v->min);
	uint64_t operand[4] = { p->plan->need, usable };

	if (t->from_agent)
		operand[2] = (uint64_t)(v->s->cost[ITEM_FILE] + 0.5);
	if (!v->balloons || chunk < CHUNK_MIN || target + CHUNK_MIN > v->actual)
		return false;
	return decide_balloon(p, v, target, t->from_agent ? REASON_TAKE_FILE : REASON_TAKE_USABLE,
			      operand);
}

static bool take_file(struct policy *p, struct view *v)
{
	uint64_t x = v->s->take[ITEM_FILE] + v->s->take[ITEM_FILE_ENTITLED];
	uint64_t have = file_of(v), lazyfree = less(have, v->m->tiers.amount[TIER_FILE]);
	enum reason reason = lazyfree > 0 ? REASON_TAKE_MIXED : REASON_TAKE_FILE;
	uint64_t operand[4] = { p->plan->need, have, lazyfree };

	if (lazyfree == 0)
		operand[2] = (uint64_t)(v->s->cost[ITEM_FILE] + 0.5);

	if (x == 0)
		return false;
	if (!v->sheds)
		return take_by_balloon(p, v, x);
	x = min_u64(x, max_u64(have / v->m->file_part, CHUNK_MIN));
	if (x < CHUNK_MIN)
		return false;
	return decide_shed(p, v, whole_pages(x), SHED_FILE, reason, operand);
}

static bool take_anon(struct policy *p, struct view *v)
{
	uint64_t excess = v->s->take[ITEM_EXCESS], x = excess + v->s->take[ITEM_ANON];
	uint64_t have = v->m->tiers.amount[TIER_ANON];
	bool over = excess > 0;
	uint64_t operand[4] = { p->plan->need, over ? excess : have,
				over ? v->entitlement : (uint64_t)(v->s->cost[ITEM_ANON] + 0.5) };

	/* What is in use beyond the entitlement would come back: the cap is for that. */
	x = min_u64(min_u64(x, have / 4), less(anon_of(p, v), over ? v->m->anon.bytes : 0));
	if (!v->sheds || x < CHUNK_MIN)
		return false;
	return decide_shed(p, v, whole_pages(x), SHED_FILE | SHED_ANON,
			   over ? REASON_TAKE_EXCESS : REASON_TAKE_ANON, operand);
}

static bool take_text(struct policy *p, struct view *v)
{
	uint64_t have = v->s->amount[ITEM_TEXT];
	uint64_t x = min_u64(v->s->take[ITEM_TEXT], have / 4);
	uint64_t operand[4] = { p->plan->need, have, (uint64_t)(v->s->cost[ITEM_TEXT] + 0.5) };

	if (!v->sheds || x < CHUNK_MIN)
		return false;
	return decide_shed(p, v, whole_pages(x), SHED_FILE, REASON_TAKE_TEXT, operand);
}

static bool wants_dear(const struct view *v)
{
	uint64_t x = 0;

	for (int k = ITEM_FILE; k < ITEM_MAX_ID; k++)
		x += v->s->take[k];
	return x >= CHUNK_MIN;
}

/* What a guest doesn't give by name beyond its entitlement: by its cap, slowly, and never below. */
static void squeeze(struct policy *p, struct view *v)
{
	uint64_t base = min_u64(v->actual, v->footprint);
	uint64_t target = max_u64(less(base, base / 16), max_u64(v->entitlement, v->min));
	uint64_t first = v->blind ? less(p->now->now_us, v->m->heard_us) : p->plan->need;
	uint64_t operand[4] = { first, v->entitlement };

	if (!v->blind) {
		operand[1] = v->s->take[ITEM_EXCESS];
		operand[2] = v->entitlement;
	}
	if ((v->blind && !grace_is_over(p, v)) ||
	    (v->m->relief_us > 0 && p->now->now_us - v->m->relief_us < RELIEF_HOLD))
		return;
	if (v->s->take[ITEM_EXCESS] < CHUNK_MIN || !squeezable(p, v) || v->m->balloon.moving ||
	    p->now->now_us - v->m->take_us < max_u64(4 * v->m->dead_us, 5 * SECOND) ||
	    target + CHUNK_MIN > v->actual)
		return;
	(void)decide_balloon(p, v, target, v->blind ? REASON_SILENT : REASON_TAKE_EXCESS, operand);
}

static void take_dear(struct policy *p, struct view *v)
{
	if (!wants_dear(v))
		return;
	if (p->cheaper > 0) {
		say(v, STATE_WAITING, REASON_ORDER_WAITS, p->cheaper, 0, 0);
		return;
	}
	if (observing(v, p->now->now_us))
		return;
	if ((take_file(p, v) || take_anon(p, v) || take_text(p, v)) && !v->observed)
		follow_take(v, p->now->now_us);
	if (!v->acted)
		squeeze(p, v);
}

/* The order needs lazyfree_first in the guest before the first shed. */
static bool profile_pending(const struct policy *p, const struct view *v)
{
	const struct agent_part *a = &v->g->agent;

	return (a->capabilities & AGENT_HAS_LAZYFREE_FIRST) &&
	       (a->capabilities & AGENT_MAY_PROFILE) && !v->observed &&
	       (!a->profile_set || a->profile_level == LEVEL_RELAXED) &&
	       p->now->now_us - p->short_since_us < 3 * SECOND;
}

static void take_cheap(struct policy *p, struct view *v)
{
	bool ballooned;

	/* Neither silence nor calls for more keep what is beyond an entitlement. */
	if (v->blind || p->now->now_us < v->m->pause_until_us)
		squeeze(p, v);
	if (v->blind || v->shed_busy || p->now->now_us < v->m->pause_until_us)
		return;
	ballooned = !v->busy && take_free(p, v);
	if (profile_pending(p, v) || take_lazyfree(p, v))
		return;
	/* A shed may go on while the balloon takes what the last one freed. */
	v->dear = (!ballooned && !v->busy) || v->sheds;
}

static void say_why_not(struct policy *p, struct view *v)
{
	if (v->acted || v->busy || v->v->reason != REASON_NONE)
		return;
	if (v->footprint <= v->min + CHUNK_MIN)
		say(v, STATE_LOCKED, REASON_AT_MINIMUM, v->min, 0, 0);
	else if (v->m->file.bytes > 0)
		say(v, STATE_LOCKED, REASON_HOT, v->m->tiers.amount[TIER_FILE],
		    less(v->m->file.until_us, p->now->now_us), 0);
	else
		say(v, STATE_LOCKED, REASON_NOTHING_LEFT, v->footprint, v->min, 0);
}

void take_round(struct policy *p)
{
	latch(p);
	if (!p->short_of || p->plan->need == 0)
		return;
	for (size_t i = 0; i < p->n; i++) {
		struct view *v = &p->views[i];

		if (!v->excluded && !v->acted && (!v->observed || p->observing))
			take_cheap(p, v);
	}
	p->cheaper = order_waits_for(p);
	for (size_t i = 0; i < p->n; i++) {
		struct view *v = &p->views[i];

		if (!v->dear)
			continue;
		take_dear(p, v);
		say_why_not(p, v);
	}
}

/* How far a cap may be lowered onto the footprint. */
static uint64_t lock_floor(const struct policy *p, const struct view *v)
{
	uint64_t whole = v->g->balloon.maximum, room = less(p->plan->budget, p->plan->footprint);
	uint64_t burst = amount_resolve(&v->g->settings.burst, whole, v->m->tiers.reserve);

	burst = min_u64(burst, less(room, p->pool) / max_u64(p->n, 1));
	return max_u64(v->footprint + burst, commit_floor(v));
}

static bool lockable(const struct policy *p, const struct view *v)
{
	return !v->excluded && !v->busy && !v->blind && !v->acted && v->balloons &&
	       v->m->tiers.known && (!v->observed || p->observing) &&
	       p->now->now_us >= v->m->pause_until_us &&
	       (v->m->relief_us == 0 || p->now->now_us - v->m->relief_us >= RELIEF_HOLD);
}

static bool locks(struct policy *p)
{
	const struct host_settings *hs = &p->settings->host;
	uint64_t now_us = p->now->now_us;

	if (p->short_of && now_us - p->short_since_us >= hs->lock_after_us)
		p->lock_since_us = now_us;
	else if (p->level == LEVEL_RELAXED)
		p->lock_since_us = 0;
	return hs->budget_hard || p->lock_since_us > 0;
}

void lock_round(struct policy *p)
{
	uint64_t excess = p->caps_excess, possible = 0;

	if (!locks(p) || excess == 0)
		return;
	for (size_t i = 0; i < p->n; i++)
		if (lockable(p, &p->views[i]))
			possible += less(p->views[i].actual, lock_floor(p, &p->views[i]));
	for (size_t i = 0; i < p->n && possible > 0 && excess > 0; i++) {
		struct view *v = &p->views[i];
		uint64_t burst = amount_resolve(&v->g->settings.burst, v->g->balloon.maximum, 0);
		uint64_t operand[4] = { v->footprint, burst }, most, cut;

		if (!lockable(p, v))
			continue;
		/* Its part of the excess, but no move that isn't worth one. */
		most = less(v->actual, lock_floor(p, v));
		cut = excess < possible
			      ? (uint64_t)((double)most * ((double)excess / (double)possible))
			      : most;
		cut = min_u64(max_u64(cut, v->band), most);
		possible -= most;
		if (cut < v->band || !decide_balloon(p, v, v->actual - cut, REASON_LOCK, operand))
			continue;
		excess = less(excess, cut);
	}
}
