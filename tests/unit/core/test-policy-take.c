// SPDX-License-Identifier: GPL-2.0-or-later
/* Taking: how much, from whom, in which order, and when not. */
#include "tests/unit/core/bench.h"

/* Budgets for three guests of 200 MiB each. R is 50. */
#define FREE_ONLY     580 /* need 70 of 120 free */
#define FREE_AND_LAZY 450 /* need 200 of 120 free and 150 lazyfree */
#define FILE_TOO      330 /* need 320: 50 of page cache beside both */

static void a_host_with_room_takes_nothing(void)
{
	struct bench b;

	bench_init(&b, 3);
	for (int i = 0; i < 50; i++) {
		bench_round(&b, SECOND);
		CU_ASSERT_EQUAL(bench_moves(&b), 0);
	}
	CU_ASSERT_EQUAL(bench_reason(&b, 0), REASON_SETTLED);
	CU_ASSERT_EQUAL(b.plan.need, 0);
	CU_ASSERT_EQUAL(b.plan.footprint, 600 * MIB);
	bench_done(&b);
}

static void free_memory_goes_first_and_only_the_balloon_is_needed_for_it(void)
{
	struct bench b;

	bench_init(&b, 3);
	bench_settle(&b);
	bench_budget(&b, FREE_ONLY);
	bench_round(&b, SECOND);
	CU_ASSERT_EQUAL(b.plan.need, 70 * MIB);
	for (int i = 0; i < 3; i++) {
		const struct decision *d = bench_decision(&b, i, ACTION_BALLOON);

		CU_ASSERT_NOT_EQUAL(d->action, ACTION_NONE);
		CU_ASSERT_EQUAL(d->reason, REASON_SHED_FREE);
		/* A third of the need below the footprint, equal guests giving equally. */
		CU_ASSERT(d->new_target > 176 * MIB && d->new_target < 178 * MIB);
		CU_ASSERT(!bench_did(&b, i, ACTION_SHED));
	}
	bench_done(&b);
}

static void a_balloon_over_free_memory_leaves_the_guest_its_reserve(void)
{
	struct bench b;

	bench_init(&b, 3);
	bench_settle(&b);
	bench_budget(&b, FILE_TOO);
	bench_round(&b, SECOND);
	for (int i = 0; i < 3; i++) {
		const struct decision *d = bench_decision(&b, i, ACTION_BALLOON);

		CU_ASSERT_NOT_EQUAL(d->action, ACTION_NONE);
		/* 512 - 352 = 160 used, and 4 + 512/64 must stay free. */
		CU_ASSERT_EQUAL(d->new_target, 172 * MIB);
	}
	bench_done(&b);
}

static void lazyfree_memory_goes_by_halves_and_nothing_else_may_go_with_it(void)
{
	struct bench b;
	const struct decision *d;

	bench_init(&b, 3);
	bench_settle(&b);
	bench_budget(&b, FREE_AND_LAZY);
	bench_round(&b, SECOND); /* the profile is set first: lazyfree_first */
	CU_ASSERT(bench_did(&b, 0, ACTION_PROFILE));
	CU_ASSERT(!bench_did(&b, 0, ACTION_SHED));
	bench_round(&b, SECOND / 10);
	d = bench_decision(&b, 0, ACTION_SHED);
	CU_ASSERT_NOT_EQUAL(d->action, ACTION_NONE);
	CU_ASSERT_EQUAL(d->reason, REASON_SHED_LAZYFREE);
	CU_ASSERT_EQUAL(d->shed_flags, 0);
	CU_ASSERT(d->bytes <= 25 * MIB && d->bytes > 20 * MIB);
	bench_done(&b);
}

static void no_page_cache_goes_while_lazyfree_memory_is_left_in_any_guest(void)
{
	struct bench b;
	bool file = false;

	bench_init(&b, 3);
	bench_stat(&b, 0, STAT_LAZYFREE, 0); /* nothing cheap in the first */
	bench_settle(&b);
	bench_budget(&b, FILE_TOO);
	for (int i = 0; i < 3; i++) {
		bench_round(&b, SECOND);
		CU_ASSERT(!bench_did(&b, 0, ACTION_SHED));
		bench_stat(&b, 1, STAT_LAZYFREE, 50 * MIB); /* it has more and more */
	}
	CU_ASSERT_EQUAL(bench_reason(&b, 0), REASON_ORDER_WAITS);
	for (int i = 1; i < 3; i++)
		bench_stat(&b, i, STAT_LAZYFREE, 0);
	for (int i = 0; i < 6; i++) {
		bench_round(&b, SECOND);
		file |= bench_did(&b, 0, ACTION_SHED);
	}
	CU_ASSERT(file);
	bench_done(&b);
}

static void lazyfree_memory_that_comes_again_does_not_block_the_rest_for_ever(void)
{
	struct bench b;
	bool file = false;

	bench_init(&b, 3);
	bench_settle(&b);
	bench_budget(&b, FILE_TOO);
	for (int i = 0; i < 60 && !file; i++) {
		bench_round(&b, SECOND);
		bench_stat(&b, 1, STAT_LAZYFREE, 50 * MIB);
		for (size_t k = 0; k < b.plan.n_decisions; k++)
			file |= b.plan.decisions[k].action == ACTION_SHED &&
				(b.plan.decisions[k].shed_flags & SHED_FILE);
	}
	CU_ASSERT(file);
	bench_done(&b);
}

/* One guest that holds nothing but page cache. */
static void bench_cache(struct bench *b, uint64_t budget)
{
	bench_init(b, 1);
	b->guests[0].balloon.actual = 212 * MIB;
	bench_stat(b, 0, STAT_FREE, 12 * MIB);
	bench_stat(b, 0, STAT_LAZYFREE, 0);
	bench_stat(b, 0, STAT_INACTIVE_FILE, 110 * MIB);
	bench_settle(b);
	bench_budget(b, budget);
}

static void page_cache_goes_a_quarter_at_a_time_and_is_watched_between(void)
{
	struct bench b;
	const struct decision *d;
	uint64_t first, rounds = 0;

	bench_cache(&b, 180);
	for (int i = 0; i < 5 && !bench_did(&b, 0, ACTION_SHED); i++)
		bench_round(&b, SECOND / 2);
	d = bench_decision(&b, 0, ACTION_SHED);
	CU_ASSERT_NOT_EQUAL(d->action, ACTION_NONE);
	CU_ASSERT_EQUAL(d->shed_flags, SHED_FILE);
	CU_ASSERT_EQUAL(d->bytes, 30 * MIB); /* of 20 + 110 - 10 text */
	first = d->at_us;
	for (bench_round(&b, SECOND / 10); !bench_did(&b, 0, ACTION_SHED) && rounds < 50; rounds++)
		bench_round(&b, SECOND / 10);
	d = bench_decision(&b, 0, ACTION_SHED);
	CU_ASSERT_NOT_EQUAL(d->action, ACTION_NONE);
	CU_ASSERT(d->at_us - first >= b.plan.verdicts[0].dead_time_us);
	bench_done(&b);
}

static void nothing_more_is_taken_while_a_shed_is_outstanding(void)
{
	struct bench b;
	int sheds = 0;

	bench_cache(&b, 180);
	b.sheds_unanswered = true;
	for (int i = 0; i < 10; i++) {
		bench_round(&b, SECOND / 2);
		sheds += bench_did(&b, 0, ACTION_SHED);
	}
	CU_ASSERT_EQUAL(sheds, 1);
	CU_ASSERT_EQUAL(bench_reason(&b, 0), REASON_IN_FLIGHT);
	CU_ASSERT(b.plan.in_flight > 0);
	bench_done(&b);
}

static void what_is_in_flight_is_not_asked_for_again(void)
{
	struct bench b;
	uint64_t asked = 0;

	bench_init(&b, 2);
	for (int i = 0; i < 2; i++) {
		b.guests[i].settings.max = (struct amount){ AMOUNT_BYTES, 212 * MIB };
		b.guests[i].balloon.actual = 212 * MIB;
		bench_stat(&b, i, STAT_FREE, 12 * MIB);
		bench_stat(&b, i, STAT_LAZYFREE, 0);
	}
	b.sheds_unanswered = true;
	bench_settle(&b);
	b.agent_stopped[1] = true;
	for (int i = 0; i < 5; i++)
		bench_round(&b, SECOND);
	bench_budget(&b, 430); /* need 20, which the first is asked for */
	for (int i = 0; i < 10 && !bench_did(&b, 0, ACTION_SHED); i++)
		bench_round(&b, SECOND / 5);
	b.agent_stopped[1] = false; /* the second could give as well */
	asked = bench_decision(&b, 0, ACTION_SHED)->bytes;
	for (int i = 0; i < 20; i++) {
		bench_round(&b, SECOND / 5);
		for (int k = 0; k < 2; k++)
			asked += bench_decision(&b, k, ACTION_SHED)->bytes;
	}
	CU_ASSERT(asked > 8 * MIB && asked <= 21 * MIB);
	bench_done(&b);
}

static void the_reserve_that_a_shed_filled_is_in_flight_until_it_was_reported(void)
{
	struct bench b;

	bench_init(&b, 1);
	bench_settle(&b);
	bench_budget(&b, 120);
	for (int i = 0; i < 10 && !bench_did(&b, 0, ACTION_SHED); i++)
		bench_round(&b, SECOND / 5);
	bench_budget(&b, 4096);
	bench_round(&b, SECOND);
	bench_round(&b, SECOND);
	CU_ASSERT_EQUAL(b.plan.in_flight, 12 * MIB);
	for (int i = 0; i < 5; i++)
		bench_round(&b, SECOND);
	CU_ASSERT_EQUAL(b.plan.in_flight, 0);
	bench_done(&b);
}

static void what_was_freed_while_the_balloon_moves_counts(void)
{
	struct bench b;

	bench_init(&b, 2);
	bench_stat(&b, 1, STAT_FREE, 312 * MIB);
	bench_stat(&b, 1, STAT_LAZYFREE, 0);
	bench_settle(&b);
	b.balloon_stopped[0] = true;
	bench_budget(&b, 375); /* need 75: 28 free and 47 lazyfree, all of the first */
	for (int i = 0; i < 15; i++) {
		uint64_t target = policy_target(b.policy, 0);

		bench_round(&b, SECOND / 5);
		if (b.guests[0].balloon.actual > target)
			bench_balloon(&b, 0, b.guests[0].balloon.actual - MIB); /* slowly */
		CU_ASSERT(!bench_did(&b, 1, ACTION_SHED));
	}
	bench_done(&b);
}

static void numbers_from_before_the_last_action_are_not_acted_on(void)
{
	struct bench b;

	bench_cache(&b, 180);
	for (int i = 0; i < 5 && !bench_did(&b, 0, ACTION_SHED); i++)
		bench_round(&b, SECOND / 2);
	b.agent_stopped[0] = true;
	for (int i = 0; i < 4; i++) {
		bench_round(&b, SECOND / 2);
		CU_ASSERT_EQUAL(bench_moves(&b), 0);
	}
	CU_ASSERT_EQUAL(bench_reason(&b, 0), REASON_RESAMPLE);
	bench_done(&b);
}

static void stale_numbers_of_any_source_stop_the_taking(void)
{
	struct bench b;

	bench_cache(&b, 150);
	b.agent_stopped[0] = true;
	b.now.now_us += 5 * SECOND;
	for (int i = 0; i < 5; i++) {
		bench_round(&b, SECOND);
		CU_ASSERT_EQUAL(bench_moves(&b), 0);
	}
	CU_ASSERT_EQUAL(bench_reason(&b, 0), REASON_NO_NUMBERS);
	CU_ASSERT_EQUAL(b.plan.verdicts[0].state, STATE_BLIND);
	bench_done(&b);
}

static void the_floor_is_never_gone_below(void)
{
	struct bench b;
	uint64_t lowest = UINT64_MAX;

	bench_cache(&b, 60);
	b.guests[0].settings.min = (struct amount){ AMOUNT_BYTES, 150 * MIB };
	for (int i = 0; i < 60; i++) {
		const struct decision *d;

		bench_round(&b, SECOND);
		d = bench_decision(&b, 0, ACTION_BALLOON);
		if (d->action != ACTION_NONE && d->new_target < lowest)
			lowest = d->new_target;
	}
	CU_ASSERT(lowest >= 150 * MIB);
	CU_ASSERT(b.plan.shortfall > 0);
	CU_ASSERT(b.plan.floor > b.plan.budget);
	bench_done(&b);
}

static void text_is_not_asked_for_while_anything_else_is_left(void)
{
	struct bench b;

	bench_cache(&b, 180);
	for (int i = 0; i < 40; i++) {
		bench_round(&b, SECOND);
		for (size_t k = 0; k < b.plan.n_decisions; k++)
			CU_ASSERT_NOT_EQUAL(b.plan.decisions[k].reason, REASON_TAKE_TEXT);
	}
	bench_done(&b);
}

static void page_cache_that_comes_back_is_left_alone(void)
{
	struct bench b;
	int sheds = 0;

	bench_cache(&b, 180);
	b.guests[0].settings.swap = SWAP_NEVER;
	for (int i = 0; i < 60; i++) {
		const struct decision *d;

		bench_round(&b, SECOND);
		d = bench_decision(&b, 0, ACTION_SHED);
		sheds += d->action != ACTION_NONE;
		if (d->action != ACTION_NONE) /* read again, all of it */
			bench_stat(&b, 0, STAT_REFAULT_FILE,
				   b.guests[0].agent.stats.value[STAT_REFAULT_FILE] +
					   d->bytes / 4096);
		else
			bench_stat(&b, 0, STAT_REFAULT_FILE,
				   b.guests[0].agent.stats.value[STAT_REFAULT_FILE]);
	}
	CU_ASSERT(sheds >= 1 && sheds <= 2);
	CU_ASSERT_EQUAL(bench_reason(&b, 0), REASON_HOT);
	bench_done(&b);
}

/* A guest is all anonymous and far above its entitlement; the other is below its own. */
static void bench_greedy(struct bench *b)
{
	bench_init(b, 2);
	for (int i = 0; i < 2; i++) {
		bench_stat(b, i, STAT_LAZYFREE, 0);
		bench_stat(b, i, STAT_FREE, 12 * MIB);
	}
	b->guests[0].cost.footprint = 400 * MIB;
	b->guests[0].balloon.actual = 412 * MIB;
	bench_stat(b, 0, STAT_ACTIVE_ANON, 390 * MIB);
	bench_stat(b, 0, STAT_INACTIVE_FILE, 0);
	bench_stat(b, 0, STAT_ACTIVE_FILE, 10 * MIB);
	b->guests[1].cost.footprint = 150 * MIB;
	b->guests[1].balloon.actual = 162 * MIB;
	bench_settle(b);
	bench_budget(b, 480);
}

static void claims_beyond_an_entitlement_go_before_what_others_are_entitled_to(void)
{
	struct bench b;
	bool excess = false;

	bench_greedy(&b);
	for (int i = 0; i < 20; i++) {
		const struct decision *d;

		bench_round(&b, SECOND);
		d = bench_decision(&b, 0, ACTION_SHED);
		excess |= d->reason == REASON_TAKE_EXCESS;
		CU_ASSERT(!bench_did(&b, 1, ACTION_SHED));
	}
	CU_ASSERT(excess);
	CU_ASSERT(b.plan.verdicts[1].entitlement > 150 * MIB);
	bench_done(&b);
}

static void nobody_swaps_where_the_configuration_says_never(void)
{
	struct bench b;

	bench_greedy(&b);
	for (int i = 0; i < 2; i++)
		b.guests[i].settings.swap = SWAP_NEVER;
	for (int i = 0; i < 20; i++) {
		bench_round(&b, SECOND);
		for (size_t k = 0; k < b.plan.n_decisions; k++)
			CU_ASSERT(!(b.plan.decisions[k].shed_flags & SHED_ANON));
	}
	bench_done(&b);
}

static void memory_that_was_claimed_and_does_not_come_counts_less(void)
{
	struct bench b;
	uint64_t first = 0, last = 0;

	bench_init(&b, 1);
	bench_settle(&b);
	bench_budget(&b, 150);
	for (int i = 0; i < 90; i++) {
		const struct decision *d;

		bench_round(&b, SECOND);
		b.guests[0].cost.footprint = 200 * MIB; /* whatever it says to have freed */
		bench_stat(&b, 0, STAT_LAZYFREE, 50 * MIB);
		bench_stat(&b, 0, STAT_INACTIVE_FILE, 100 * MIB);
		d = bench_decision(&b, 0, ACTION_SHED);
		*(i < 30 ? &first : &last) += d->shed_flags == 0 ? d->bytes : 0;
	}
	CU_ASSERT(first > 0 && last / 2 < first / 2);
	bench_done(&b);
}

static const struct unit_test tests[] = {
	TEST(a_host_with_room_takes_nothing),
	TEST(free_memory_goes_first_and_only_the_balloon_is_needed_for_it),
	TEST(a_balloon_over_free_memory_leaves_the_guest_its_reserve),
	TEST(lazyfree_memory_goes_by_halves_and_nothing_else_may_go_with_it),
	TEST(no_page_cache_goes_while_lazyfree_memory_is_left_in_any_guest),
	TEST(lazyfree_memory_that_comes_again_does_not_block_the_rest_for_ever),
	TEST(page_cache_goes_a_quarter_at_a_time_and_is_watched_between),
	TEST(nothing_more_is_taken_while_a_shed_is_outstanding),
	TEST(what_is_in_flight_is_not_asked_for_again),
	TEST(the_reserve_that_a_shed_filled_is_in_flight_until_it_was_reported),
	TEST(what_was_freed_while_the_balloon_moves_counts),
	TEST(numbers_from_before_the_last_action_are_not_acted_on),
	TEST(stale_numbers_of_any_source_stop_the_taking),
	TEST(the_floor_is_never_gone_below),
	TEST(text_is_not_asked_for_while_anything_else_is_left),
	TEST(page_cache_that_comes_back_is_left_alone),
	TEST(claims_beyond_an_entitlement_go_before_what_others_are_entitled_to),
	TEST(nobody_swaps_where_the_configuration_says_never),
	TEST(memory_that_was_claimed_and_does_not_come_counts_less),
};

HARNESS_MAIN("policy-take", tests)
