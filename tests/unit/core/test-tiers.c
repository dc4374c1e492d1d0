// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/core/tiers.h"
#include "tests/unit/harness.h"

#define MIB   (UINT64_C(1) << 20)
#define NOW   (UINT64_C(1000) * 1000000)
#define FRESH (UINT64_C(3) * 1000000)

static struct guest_snapshot guest(void)
{
	struct guest_snapshot g = { .phase = PHASE_RUNNING };

	g.balloon.actual = 400 * MIB;
	g.balloon.maximum = 512 * MIB;
	g.cost.footprint = 200 * MIB;
	g.balloon.at_us = g.cost.at_us = g.agent.at_us = NOW;
	g.agent.link = AGENT_UP;
	stat_put(&g.agent.stats, STAT_FREE, 240 * MIB);
	stat_put(&g.agent.stats, STAT_LAZYFREE, 50 * MIB);
	stat_put(&g.agent.stats, STAT_EXEC_MAPPED, 10 * MIB);
	stat_put(&g.agent.stats, STAT_ACTIVE_FILE, 20 * MIB);
	stat_put(&g.agent.stats, STAT_INACTIVE_FILE, 100 * MIB);
	stat_put(&g.agent.stats, STAT_ACTIVE_ANON, 25 * MIB);
	stat_put(&g.agent.stats, STAT_INACTIVE_ANON, 5 * MIB);
	return g;
}

static struct tiers read(const struct guest_snapshot *g)
{
	struct tiers t;

	tiers_read(g, NOW, FRESH, &t);
	return t;
}

static uint64_t sum(const struct tiers *t)
{
	uint64_t total = 0;

	for (int k = 0; k < TIER_MAX_ID; k++)
		total += t->amount[k];
	return total;
}

static void tiers_are_disjoint(void)
{
	struct guest_snapshot g = guest();
	struct tiers t = read(&g);

	CU_ASSERT(t.known && t.from_agent);
	/* 400 - 240 = 160 are used, so 40 of the 200 that it costs are free memory. */
	CU_ASSERT_EQUAL(t.amount[TIER_FREE], 40 * MIB);
	CU_ASSERT_EQUAL(t.amount[TIER_LAZYFREE], 50 * MIB);
	/* The inactive list of page cache holds the lazyfree memory. */
	CU_ASSERT_EQUAL(t.amount[TIER_FILE], 60 * MIB);
	CU_ASSERT_EQUAL(t.amount[TIER_TEXT], 10 * MIB);
	CU_ASSERT_EQUAL(t.amount[TIER_ANON], 30 * MIB);
}

static void free_memory_that_was_reported_is_no_tier(void)
{
	struct guest_snapshot g = guest();

	g.cost.footprint = 160 * MIB;
	CU_ASSERT_EQUAL(read(&g).amount[TIER_FREE], 0);
	g.cost.footprint = 100 * MIB; /* less than it uses: some was never touched */
	CU_ASSERT_EQUAL(read(&g).amount[TIER_FREE], 0);
}

static void free_pages_that_cpus_hold_ready_are_free(void)
{
	struct guest_snapshot g = guest();
	struct tiers t;

	stat_put(&g.agent.stats, STAT_FREE, 200 * MIB);
	stat_put(&g.agent.stats, STAT_FREE_PCP, 40 * MIB);
	t = read(&g);
	CU_ASSERT_EQUAL(t.amount[TIER_FREE], 40 * MIB);
	CU_ASSERT_EQUAL(t.used, 160 * MIB);
}

static void no_lie_makes_a_guest_larger_than_it_is(void)
{
	uint64_t random = 88172645463325252;

	for (int run = 0; run < 20000; run++) {
		struct guest_snapshot g = guest();
		struct tiers t;

		for (int id = 0; id < STAT_MAX_ID; id++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			if (random & 1)
				stat_put(&g.agent.stats, id,
					 random & 2 ? UINT64_MAX : (random >> 8) % (1024 * MIB));
		}
		g.cost.footprint = random % (600 * MIB);
		t = read(&g);
		CU_ASSERT(sum(&t) <= g.cost.footprint);
		CU_ASSERT(t.used <= g.balloon.actual);
	}
}

static void absent_number_is_never_zero(void)
{
	static const enum stat_id needed[] = { STAT_FREE, STAT_ACTIVE_FILE, STAT_INACTIVE_FILE };

	for (int i = 0; i < 3; i++) {
		struct guest_snapshot g = guest();

		g.agent.stats.present &= ~(UINT64_C(1) << needed[i]);
		CU_ASSERT(!read(&g).known);
	}
}

static void each_source_has_to_be_fresh(void)
{
	struct guest_snapshot g = guest();

	g.agent.at_us = NOW - FRESH - 1;
	CU_ASSERT(!read(&g).known);
	g = guest();
	g.cost.at_us = NOW - FRESH - 1;
	CU_ASSERT(!read(&g).known);
	g = guest();
	g.balloon.at_us = 0;
	CU_ASSERT(!read(&g).known);
	g = guest();
	g.agent.at_us = NOW - FRESH;
	CU_ASSERT(read(&g).known);
}

static void a_guest_whose_agent_fell_silent_is_not_read_from_its_driver(void)
{
	struct guest_snapshot g = guest();

	g.agent.link = AGENT_CONNECTING;
	g.agent.at_us = NOW - 60000000;
	g.driver.at_us = NOW;
	g.driver.has_usable = g.driver.has_unused = true;
	CU_ASSERT(!read(&g).known);
}

static void without_an_agent_usable_memory_counts_as_page_cache(void)
{
	struct guest_snapshot g = guest();
	struct tiers t;

	g.agent = (struct agent_part){ .link = AGENT_NONE };
	g.driver = (struct driver_part){ NOW, true, true, 350 * MIB, 240 * MIB };
	t = read(&g);
	CU_ASSERT(t.known && !t.from_agent && t.free_known);
	CU_ASSERT_EQUAL(t.amount[TIER_FREE], 40 * MIB);
	CU_ASSERT_EQUAL(t.amount[TIER_FILE], 60 * MIB);
	CU_ASSERT_EQUAL(t.amount[TIER_LAZYFREE], 0);
	g.driver.has_usable = false;
	CU_ASSERT(!read(&g).known);
}

static void a_stock_kernel_shows_no_lazyfree_and_its_mapped_cache_is_spared(void)
{
	struct guest_snapshot g = guest();
	struct tiers t;

	g.agent.stats.present &= ~(UINT64_C(1) << STAT_LAZYFREE);
	g.agent.stats.present &= ~(UINT64_C(1) << STAT_EXEC_MAPPED);
	stat_put(&g.agent.stats, STAT_MAPPED, 35 * MIB);
	t = read(&g);
	CU_ASSERT_EQUAL(t.amount[TIER_LAZYFREE], 0);
	CU_ASSERT_EQUAL(t.amount[TIER_TEXT], 35 * MIB);
	CU_ASSERT_EQUAL(t.amount[TIER_FILE], 85 * MIB);
}

static const struct unit_test tests[] = {
	TEST(tiers_are_disjoint),
	TEST(free_memory_that_was_reported_is_no_tier),
	TEST(free_pages_that_cpus_hold_ready_are_free),
	TEST(no_lie_makes_a_guest_larger_than_it_is),
	TEST(absent_number_is_never_zero),
	TEST(each_source_has_to_be_fresh),
	TEST(a_guest_whose_agent_fell_silent_is_not_read_from_its_driver),
	TEST(without_an_agent_usable_memory_counts_as_page_cache),
	TEST(a_stock_kernel_shows_no_lazyfree_and_its_mapped_cache_is_spared),
};

HARNESS_MAIN("tiers", tests)
