// SPDX-License-Identifier: GPL-2.0-or-later
/* The host's side: what there is, what is to be kept, who is entitled to what. */
#include "tests/unit/core/bench.h"

static void the_need_is_the_footprint_and_the_reserve_less_the_budget(void)
{
	struct bench b;

	bench_init(&b, 3);
	bench_settle(&b);
	bench_budget(&b, 620);
	bench_round(&b, SECOND);
	CU_ASSERT_EQUAL(b.plan.footprint, 600 * MIB);
	CU_ASSERT_EQUAL(b.plan.headroom, 50 * MIB);
	CU_ASSERT_EQUAL(b.plan.need, 30 * MIB);
	CU_ASSERT_EQUAL(b.plan.slack, 0);
	bench_done(&b);
}

static void a_percentage_is_of_the_memory_of_the_host(void)
{
	struct bench b;

	bench_init(&b, 1);
	b.settings.host.budget = (struct amount){ AMOUNT_PERCENT, 5000 };
	bench_settle(&b);
	CU_ASSERT_EQUAL(b.plan.budget, 4096 * MIB);
	bench_done(&b);
}

static void the_hosts_own_budget_is_what_guests_have_and_what_is_available(void)
{
	struct bench b;

	bench_init(&b, 2);
	b.settings.host.budget_kind = BUDGET_HOST;
	b.now.host.available = 700 * MIB;
	bench_settle(&b);
	CU_ASSERT_EQUAL(b.plan.budget, 1100 * MIB);
	/* Memory that the host swapped out is no gain. */
	b.guests[0].cost.swapped = 50 * MIB;
	b.guests[0].cost.resident = 150 * MIB;
	bench_round(&b, SECOND);
	CU_ASSERT_EQUAL(b.plan.budget, 1050 * MIB);
	CU_ASSERT_EQUAL(b.plan.footprint, 400 * MIB);
	bench_done(&b);
}

static void a_cgroups_limit_is_shared_with_what_else_is_in_it(void)
{
	struct bench b;

	bench_init(&b, 2);
	b.settings.host.budget_kind = BUDGET_CGROUP;
	b.now.host.cgroup_limit = 1000 * MIB;
	b.now.host.cgroup_usage = 480 * MIB; /* 400 of guests */
	for (int i = 0; i < 5; i++) {
		b.now.host.cgroup_at_us = b.now.now_us + SECOND;
		bench_round(&b, SECOND);
	}
	CU_ASSERT_EQUAL(b.plan.budget, 920 * MIB);
	bench_done(&b);
}

static void without_a_known_budget_nothing_moves(void)
{
	struct bench b;

	bench_init(&b, 2);
	b.settings.host.budget_kind = BUDGET_CGROUP;
	b.now.host.cgroup_limit = 100 * MIB;
	b.now.host.cgroup_usage = 480 * MIB;
	b.now.host.cgroup_at_us = b.now.now_us - 60 * SECOND;
	for (int i = 0; i < 30; i++) {
		bench_round(&b, SECOND);
		CU_ASSERT_EQUAL(bench_moves(&b), 0);
	}
	bench_done(&b);
}

static void guests_that_grow_ask_for_room_to_grow(void)
{
	struct bench b;
	uint64_t before, grown;

	bench_init(&b, 2);
	bench_settle(&b);
	before = b.plan.headroom;
	for (int i = 0; i < 5; i++) {
		b.guests[0].cost.footprint += 30 * MIB;
		bench_round(&b, SECOND);
	}
	grown = b.plan.headroom;
	CU_ASSERT(grown > before + 10 * MIB);
	for (int i = 0; i < 120; i++)
		bench_round(&b, SECOND);
	CU_ASSERT_EQUAL(b.plan.headroom, before);
	bench_done(&b);
}

static void entitlements_are_the_minimum_and_a_share_of_the_rest(void)
{
	struct bench b;
	uint64_t light, heavy;

	bench_init(&b, 2);
	b.guests[1].settings.shares = 3000;
	bench_budget(&b, 578); /* 400 beyond both minima and the reserve */
	bench_round(&b, SECOND);
	light = b.plan.verdicts[0].entitlement;
	heavy = b.plan.verdicts[1].entitlement;
	CU_ASSERT_EQUAL(light, (64 + 100) * MIB);
	CU_ASSERT_EQUAL(heavy, (64 + 300) * MIB);
	bench_done(&b);
}

static void what_a_full_guest_cannot_use_goes_to_the_others(void)
{
	struct bench b;

	bench_init(&b, 2);
	b.guests[0].settings.max = (struct amount){ AMOUNT_BYTES, 100 * MIB };
	bench_budget(&b, 578);
	bench_round(&b, SECOND);
	CU_ASSERT_EQUAL(b.plan.verdicts[0].entitlement, 100 * MIB);
	CU_ASSERT(b.plan.verdicts[1].entitlement > 425 * MIB);
	CU_ASSERT(b.plan.verdicts[1].entitlement <= 428 * MIB);
	bench_done(&b);
}

static void minima_that_do_not_fit_are_shown(void)
{
	struct bench b;

	bench_init(&b, 2);
	bench_budget(&b, 150);
	bench_round(&b, SECOND);
	CU_ASSERT_EQUAL(b.plan.floor, (2 * 64 + 50) * MIB);
	CU_ASSERT(b.plan.floor > b.plan.budget);
	bench_done(&b);
}

static void a_guest_whose_footprint_is_not_known_is_no_slack_and_no_need(void)
{
	struct bench b;

	bench_init(&b, 2);
	bench_settle(&b);
	b.now.guests = b.guests;
	b.now.now_us += SECOND;
	b.guests[0].cost = (struct cost_part){ 0 };
	b.guests[1].cost.at_us = b.guests[1].balloon.at_us = b.now.now_us;
	policy_decide(b.policy, &b.now, &b.settings, &b.plan);
	CU_ASSERT_EQUAL(b.plan.footprint, 200 * MIB);
	CU_ASSERT_EQUAL(b.plan.slack, (4096 - 200 - 512 - 50) * MIB);
	bench_done(&b);
}

static const struct unit_test tests[] = {
	TEST(the_need_is_the_footprint_and_the_reserve_less_the_budget),
	TEST(a_percentage_is_of_the_memory_of_the_host),
	TEST(the_hosts_own_budget_is_what_guests_have_and_what_is_available),
	TEST(a_cgroups_limit_is_shared_with_what_else_is_in_it),
	TEST(without_a_known_budget_nothing_moves),
	TEST(guests_that_grow_ask_for_room_to_grow),
	TEST(entitlements_are_the_minimum_and_a_share_of_the_rest),
	TEST(what_a_full_guest_cannot_use_goes_to_the_others),
	TEST(minima_that_do_not_fit_are_shown),
	TEST(a_guest_whose_footprint_is_not_known_is_no_slack_and_no_need),
};

HARNESS_MAIN("policy-budget", tests)
