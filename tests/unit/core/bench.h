/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A bench for the policy: a few guests whose every number a test sets by hand, a clock, and rounds.
 * Numbers are refreshed each round unless the test says that a source has stopped; balloons follow
 * at once unless the test says that they don't.
 */
#ifndef BALLAST_TESTS_BENCH_H
#define BALLAST_TESTS_BENCH_H

#include <string.h>

#include "daemon/core/policy.h"
#include "daemon/core/profile.h"
#include "tests/unit/harness.h"

#define MIB	     (UINT64_C(1) << 20)
#define SECOND	     UINT64_C(1000000)
#define BENCH_GUESTS 4

struct bench {
	struct policy *policy;
	struct plan plan;
	struct settings settings;
	struct snapshot now;
	struct guest_snapshot guests[BENCH_GUESTS], guests_before[BENCH_GUESTS];
	bool agent_stopped[BENCH_GUESTS], driver_stopped[BENCH_GUESTS];
	bool balloon_stopped[BENCH_GUESTS]; /* actual doesn't follow */
	bool sheds_unanswered;
};

static inline void bench_stat(struct bench *b, int i, enum stat_id id, uint64_t value)
{
	stat_put(&b->guests[i].agent.stats, id, value);
}

/* A guest of 512 MiB: 200 used by the host, of them 40 free, 50 lazyfree, 60 cold page cache, 10
 * text, 30 anonymous. */
static inline void bench_guest(struct bench *b, int i)
{
	struct guest_snapshot *g = &b->guests[i];

	*g = (struct guest_snapshot){ .slot = (uint32_t)i, .phase = PHASE_RUNNING, .rule = -1 };
	snprintf(g->name, sizeof(g->name), "guest%d", i);
	g->settings = b->settings.defaults;
	g->balloon.actual = g->balloon.maximum = 512 * MIB;
	g->balloon.reporting = true;
	g->cost.footprint = g->cost.resident = 200 * MIB;
	g->agent.link = AGENT_UP;
	g->agent.capabilities = AGENT_MAY_SAMPLE | AGENT_MAY_PROFILE | AGENT_MAY_SHED |
				AGENT_HAS_RECLAIM | AGENT_HAS_REPORTING | AGENT_HAS_LAZYFREE_FIRST;
	bench_stat(b, i, STAT_FREE, 352 * MIB);
	bench_stat(b, i, STAT_LAZYFREE, 50 * MIB);
	bench_stat(b, i, STAT_EXEC_MAPPED, 10 * MIB);
	bench_stat(b, i, STAT_ACTIVE_FILE, 20 * MIB);
	bench_stat(b, i, STAT_INACTIVE_FILE, 100 * MIB);
	bench_stat(b, i, STAT_ACTIVE_ANON, 30 * MIB);
	bench_stat(b, i, STAT_INACTIVE_ANON, 0);
	bench_stat(b, i, STAT_SWAP_FREE, 128 * MIB);
	bench_stat(b, i, STAT_PSI_SOME, 0);
	b->now.n_guests = (size_t)i + 1 > b->now.n_guests ? (size_t)i + 1 : b->now.n_guests;
}

static inline void bench_init(struct bench *b, int n)
{
	memset(b, 0, sizeof(*b));
	settings_init_defaults(&b->settings);
	b->settings.host.mode = MODE_ACT;
	b->settings.host.budget_kind = BUDGET_AMOUNT;
	b->settings.host.budget = (struct amount){ AMOUNT_BYTES, 4096 * MIB };
	b->settings.host.headroom = (struct amount){ AMOUNT_BYTES, 10 * MIB };
	b->settings.host.grant_pool = (struct amount){ AMOUNT_BYTES, 40 * MIB };
	b->settings.defaults.min = (struct amount){ AMOUNT_BYTES, 64 * MIB };
	CU_ASSERT_FATAL(policy_new(&b->policy, BENCH_GUESTS) == 0);
	CU_ASSERT_FATAL(plan_init(&b->plan, BENCH_GUESTS) == 0);
	b->now.guests = b->guests;
	b->now.hypervisor_ready = true;
	b->now.now_us = 1000 * SECOND;
	b->now.host.total = 8192 * MIB;
	b->now.host.available = 4096 * MIB;
	for (int i = 0; i < n; i++)
		bench_guest(b, i);
}

static inline void bench_done(struct bench *b)
{
	policy_free(b->policy);
	plan_done(&b->plan);
}

static inline uint64_t *bench_value(struct bench *b, uint32_t i, enum stat_id id)
{
	return &b->guests[i].agent.stats.value[id];
}

/* Inflated over free memory, and the host gets what it backed beyond the new cap. */
static inline void bench_balloon(struct bench *b, uint32_t i, uint64_t target)
{
	struct guest_snapshot *g = &b->guests[i];
	uint64_t *unused = bench_value(b, i, STAT_FREE), cut;

	if (target >= g->balloon.actual) {
		*unused += target - g->balloon.actual;
	} else {
		cut = g->balloon.actual - target;
		*unused -= cut < *unused ? cut : *unused;
	}
	g->balloon.actual = target;
	if (g->cost.footprint > target)
		g->cost.footprint = target;
}

static inline void bench_shed(struct bench *b, uint32_t i, const struct decision *d)
{
	uint64_t *from = bench_value(b, i, d->shed_flags ? STAT_INACTIVE_FILE : STAT_LAZYFREE);
	uint64_t n = d->bytes < *from ? d->bytes : *from;

	*from -= n;
	if (!d->shed_flags)
		*bench_value(b, i, STAT_INACTIVE_FILE) -= n;
	*bench_value(b, i, STAT_FREE) += n;
	b->guests[i].agent.shed_done_at_us = d->at_us + 100000;
	b->guests[i].agent.shed_freed = n;
}

/* What the actuators would do, done at once. */
static inline void bench_carry_out(struct bench *b)
{
	for (size_t i = 0; i < b->plan.n_decisions; i++) {
		const struct decision *d = &b->plan.decisions[i];
		struct guest_snapshot *g = &b->guests[d->slot];

		if (d->action == ACTION_BALLOON) {
			g->request = (struct request_part){ d->at_us, d->at_us, d->new_target, 0 };
			if (!b->balloon_stopped[d->slot])
				bench_balloon(b, d->slot, d->new_target);
		} else if (d->action == ACTION_SHED && !b->sheds_unanswered) {
			bench_shed(b, d->slot, d);
		} else if (d->action == ACTION_PROFILE) {
			g->agent.profile_set = true;
			g->agent.profile_level = d->level;
			profile_for(&b->settings, &b->now.host, g, d->level, &g->agent.asked);
		}
	}
}

static inline void bench_refresh(struct bench *b)
{
	uint64_t now = b->now.now_us;

	b->now.host.at_us = b->now.host.psi_at_us = now;
	for (size_t i = 0; i < b->now.n_guests; i++) {
		struct guest_snapshot *g = &b->guests[i];

		g->cost.at_us = g->balloon.at_us = now;
		if (g->agent.link == AGENT_UP && !b->agent_stopped[i]) {
			g->agent.previous = b->guests_before[i].agent.stats;
			g->agent.previous_at_us = b->guests_before[i].agent.at_us;
			g->agent.at_us = now;
		}
		if (g->driver.has_usable && !b->driver_stopped[i])
			g->driver.at_us = now;
	}
}

/* One round, @after µs after the last. */
static inline void bench_round(struct bench *b, uint64_t after)
{
	b->now.now_us += after;
	bench_refresh(b);
	policy_decide(b->policy, &b->now, &b->settings, &b->plan);
	memcpy(b->guests_before, b->guests, sizeof(b->guests));
	bench_carry_out(b);
}

/* Rounds until a first observation has settled. */
static inline void bench_settle(struct bench *b)
{
	for (int i = 0; i < 12; i++)
		bench_round(b, SECOND);
}

static inline void bench_budget(struct bench *b, uint64_t mib)
{
	b->settings.host.budget = (struct amount){ AMOUNT_BYTES, mib * MIB };
}

/* The decision of that kind for a guest; one of ACTION_NONE where there is none. */
static inline const struct decision *bench_decision(const struct bench *b, int i,
						    enum action action)
{
	static const struct decision none;

	for (size_t k = 0; k < b->plan.n_decisions; k++)
		if (b->plan.decisions[k].slot == (uint32_t)i &&
		    b->plan.decisions[k].action == action)
			return &b->plan.decisions[k];
	return &none;
}

static inline bool bench_did(const struct bench *b, int i, enum action action)
{
	return bench_decision(b, i, action)->action == action;
}

/* Decisions that move memory. */
static inline int bench_moves(const struct bench *b)
{
	int n = 0;

	for (size_t k = 0; k < b->plan.n_decisions; k++)
		n += b->plan.decisions[k].action == ACTION_BALLOON ||
		     b->plan.decisions[k].action == ACTION_SHED;
	return n;
}

static inline enum reason bench_reason(const struct bench *b, int i)
{
	return b->plan.verdicts[i].reason;
}

/* Short of memory, with much free and lazyfree memory in both guests. */
static inline void bench_short(struct bench *b)
{
	bench_init(b, 2);
	bench_settle(b);
	bench_budget(b, 300);
}

/* Ten rounds in which nothing is taken from the guest, for this reason. */
static inline void bench_expect_left_alone(struct bench *b, int i, enum reason reason)
{
	for (int k = 0; k < 10; k++) {
		bench_round(b, SECOND);
		CU_ASSERT(!bench_did(b, i, ACTION_BALLOON) && !bench_did(b, i, ACTION_SHED));
	}
	CU_ASSERT_EQUAL(bench_reason(b, i), reason);
}

#endif
