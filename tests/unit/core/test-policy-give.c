// SPDX-License-Identifier: GPL-2.0-or-later
/* Giving: relief, slack, and the calm between taking and giving. */
#include "tests/unit/core/bench.h"

/* Two guests at 200 MiB with caps of 250, and a host that has its reserve and nothing beyond. */
static void bench_tight(struct bench *b)
{
	bench_init(b, 2);
	bench_budget(b, 450);
	for (int i = 0; i < 2; i++) {
		b->guests[i].balloon.actual = 250 * MIB;
		b->guests[i].settings.swap = SWAP_NEVER;
		bench_stat(b, i, STAT_FREE, 50 * MIB);
		bench_stat(b, i, STAT_LAZYFREE, 0);
	}
	bench_settle(b);
}

static void press(struct bench *b, int i)
{
	b->guests[i].agent.pressure_at_us = b->now.now_us + SECOND / 20;
}

static void pressure_is_answered_in_the_same_round_and_in_one_step(void)
{
	struct bench b;
	const struct decision *d;

	bench_tight(&b);
	press(&b, 0);
	bench_round(&b, SECOND / 10);
	d = bench_decision(&b, 0, ACTION_BALLOON);
	CU_ASSERT_EQUAL(d->reason, REASON_RELIEF);
	/* Three quarters of the pool: it is beyond its entitlement of 200. */
	CU_ASSERT_EQUAL(d->new_target, (250 + 30) * MIB);
	CU_ASSERT_EQUAL(d->operand[2], SECOND / 20);
	CU_ASSERT(!bench_did(&b, 1, ACTION_BALLOON));
	bench_done(&b);
}

static void one_frame_is_answered_once(void)
{
	struct bench b;

	bench_tight(&b);
	b.settings.host.budget_hard = true;
	bench_budget(&b, 640); /* there would be more, and it is entitled to it */
	press(&b, 0);
	bench_round(&b, SECOND / 10);
	CU_ASSERT_EQUAL(bench_decision(&b, 0, ACTION_BALLOON)->reason, REASON_RELIEF);
	for (int i = 0; i < 20; i++) {
		bench_round(&b, SECOND);
		CU_ASSERT_NOT_EQUAL(bench_decision(&b, 0, ACTION_BALLOON)->reason, REASON_RELIEF);
	}
	bench_done(&b);
}

static void a_relief_never_lowers_a_cap_that_is_on_its_way_up(void)
{
	struct bench b;

	bench_tight(&b);
	b.balloon_stopped[0] = true; /* it takes its time */
	bench_budget(&b, 4096);
	bench_round(&b, SECOND / 10);
	CU_ASSERT_EQUAL(bench_decision(&b, 0, ACTION_BALLOON)->new_target, 512 * MIB);
	press(&b, 0);
	bench_round(&b, SECOND / 10);
	CU_ASSERT(!bench_did(&b, 0, ACTION_BALLOON));
	bench_done(&b);
}

/* A guest below its entitlement, that is. What others were lent before isn't known any more. */
static void a_restart_keeps_nobody_waiting_who_is_entitled_to_more(void)
{
	for (int beyond = 0; beyond < 2; beyond++) {
		struct bench b;

		bench_tight(&b);
		policy_free(b.policy);
		CU_ASSERT_FATAL(policy_new(&b.policy, BENCH_GUESTS) == 0);
		for (int i = 0; i < 2; i++)
			policy_restore(b.policy, (uint32_t)i, 250 * MIB);
		if (!beyond)
			b.guests[0].settings.shares = 3000; /* entitled to 282 */
		bench_round(&b, SECOND / 5);
		press(&b, 0);
		bench_round(&b, SECOND / 5);
		CU_ASSERT_EQUAL(bench_did(&b, 0, ACTION_BALLOON), !beyond);
		CU_ASSERT(!bench_did(&b, 1, ACTION_BALLOON));
		bench_done(&b);
	}
}

static void old_news_of_a_balloon_raises_no_cap(void)
{
	struct bench b;
	uint64_t lowered;

	bench_init(&b, 2);
	b.settings.host.budget_hard = true;
	bench_settle(&b);
	bench_budget(&b, 500);
	for (int i = 0; i < 3; i++)
		bench_round(&b, SECOND / 5);
	lowered = policy_target(b.policy, 0);
	CU_ASSERT(lowered < 400 * MIB);
	b.guests[0].balloon.actual = 492 * MIB; /* read before it was there */
	for (int i = 0; i < 5; i++) {
		bench_round(&b, SECOND / 5);
		CU_ASSERT(policy_target(b.policy, 0) <= lowered);
	}
	bench_done(&b);
}

static void slack_has_to_stay_before_it_is_given(void)
{
	struct bench b;
	int waited = 0;

	bench_tight(&b);
	b.settings.host.budget_kind = BUDGET_HOST;
	b.now.host.available = 45 * MIB;
	for (int i = 0; i < 15; i++)
		bench_round(&b, SECOND);
	b.now.host.available = 4000 * MIB; /* others on the host went away */
	for (; waited < 30 && !bench_did(&b, 0, ACTION_BALLOON); waited++)
		bench_round(&b, SECOND);
	CU_ASSERT(waited >= 10 && waited < 15);
	bench_done(&b);
}

static void a_hard_budget_counts_what_cannot_be_controlled(void)
{
	struct bench b;

	bench_init(&b, 2);
	b.settings.host.budget_hard = true;
	b.guests[1].settings.manage = MANAGE_NO;
	bench_budget(&b, 500);
	bench_settle(&b);
	/* 500 less the pool of 40 less the 200 of the other. */
	CU_ASSERT(b.guests[0].balloon.actual <= 260 * MIB);
	CU_ASSERT(b.guests[0].balloon.actual > 255 * MIB);
	CU_ASSERT_EQUAL(b.guests[1].balloon.actual, 512 * MIB);
	bench_done(&b);
}

static void what_was_granted_is_not_granted_twice(void)
{
	struct bench b;

	bench_tight(&b);
	press(&b, 0);
	press(&b, 1);
	bench_round(&b, SECOND / 10);
	CU_ASSERT(bench_did(&b, 0, ACTION_BALLOON));
	CU_ASSERT(!bench_did(&b, 1, ACTION_BALLOON));
	CU_ASSERT_EQUAL(bench_reason(&b, 1), REASON_RELIEF_WAITS);
	bench_done(&b);
}

static void a_guest_beyond_its_entitlement_leaves_a_part_of_the_pool_to_others(void)
{
	struct bench b;

	bench_tight(&b);
	bench_budget(&b, 600);
	b.guests[0].cost.footprint = 330 * MIB;
	b.guests[0].balloon.actual = 340 * MIB;
	bench_stat(&b, 0, STAT_FREE, 10 * MIB);
	policy_forget(b.policy, 0);
	bench_round(&b, SECOND);
	for (int i = 0; i < 5; i++) {
		press(&b, 0);
		bench_round(&b, SECOND);
	}
	CU_ASSERT(b.guests[0].balloon.actual <= (340 + 50) * MIB);
	press(&b, 1);
	bench_round(&b, SECOND / 10);
	CU_ASSERT_EQUAL(bench_decision(&b, 1, ACTION_BALLOON)->reason, REASON_RELIEF);
	bench_done(&b);
}

static void a_guest_at_its_maximum_is_not_given_more(void)
{
	struct bench b;

	bench_tight(&b);
	b.guests[0].settings.max = (struct amount){ AMOUNT_BYTES, 250 * MIB };
	press(&b, 0);
	bench_round(&b, SECOND / 10);
	CU_ASSERT(!bench_did(&b, 0, ACTION_BALLOON));
	bench_done(&b);
}

static void a_guest_that_was_relieved_is_left_alone_for_a_while(void)
{
	struct bench b;

	bench_tight(&b);
	press(&b, 0);
	bench_round(&b, SECOND / 10);
	bench_budget(&b, 380);
	for (int i = 0; i < 9; i++) {
		bench_round(&b, SECOND);
		CU_ASSERT(!bench_did(&b, 0, ACTION_BALLOON) && !bench_did(&b, 0, ACTION_SHED));
	}
	bench_done(&b);
}

/* Up to where the first take of page cache is outstanding. */
static void bench_taking(struct bench *b)
{
	bench_tight(b);
	bench_budget(b, 380);
	for (int i = 0; i < 20 && !bench_did(b, 0, ACTION_SHED); i++)
		bench_round(b, SECOND);
	CU_ASSERT(bench_did(b, 0, ACTION_SHED));
}

static void pressure_of_our_own_making_pauses_and_gives_nothing(void)
{
	struct bench b;
	uint64_t actual;

	bench_taking(&b);
	actual = b.guests[0].balloon.actual;
	press(&b, 0);
	bench_round(&b, SECOND / 10);
	CU_ASSERT_EQUAL(bench_reason(&b, 0), REASON_SELF_PRESSURE);
	for (int i = 0; i < 15; i++) {
		bench_round(&b, SECOND / 10);
		CU_ASSERT(!bench_did(&b, 0, ACTION_SHED));
	}
	CU_ASSERT(b.guests[0].balloon.actual <= actual);
	bench_done(&b);
}

static void swap_ins_prove_that_the_pressure_is_real(void)
{
	struct bench b;

	bench_taking(&b);
	bench_stat(&b, 0, STAT_SWAP_IN, 0);
	press(&b, 0);
	bench_round(&b, SECOND / 10);
	bench_budget(&b, 460); /* room, so that the answer shows */
	bench_round(&b, SECOND / 10);
	CU_ASSERT(!bench_did(&b, 0, ACTION_BALLOON));
	bench_stat(&b, 0, STAT_SWAP_IN, 1000);
	bench_round(&b, SECOND / 10);
	CU_ASSERT_EQUAL(bench_decision(&b, 0, ACTION_BALLOON)->reason, REASON_RELIEF);
	bench_done(&b);
}

static void stalls_that_stay_two_windows_later_are_real(void)
{
	for (int real = 0; real < 2; real++) {
		struct bench b;
		uint64_t stalled = 0;
		bool relieved = false;

		bench_taking(&b);
		b.sheds_unanswered = true;
		press(&b, 0);
		bench_round(&b, SECOND / 10);
		bench_budget(&b, 460);
		for (int i = 0; i < 8; i++) {
			stalled += real ? SECOND / 2 : 0;
			bench_stat(&b, 0, STAT_PSI_SOME, stalled);
			bench_round(&b, SECOND);
			relieved |= bench_decision(&b, 0, ACTION_BALLOON)->reason == REASON_RELIEF;
			CU_ASSERT(!relieved || i >= 3);
		}
		CU_ASSERT_EQUAL(relieved, real == 1);
		bench_done(&b);
	}
}

static void an_inflation_ends_where_it_is_when_it_presses_the_guest(void)
{
	struct bench b;
	uint64_t actual;

	bench_tight(&b);
	b.balloon_stopped[0] = true;
	bench_stat(&b, 0, STAT_FREE, 90 * MIB);
	bench_budget(&b, 400);
	bench_round(&b, SECOND);
	CU_ASSERT(bench_did(&b, 0, ACTION_BALLOON));
	actual = b.guests[0].balloon.actual -= 4 * MIB;
	press(&b, 0);
	bench_round(&b, SECOND / 5);
	CU_ASSERT_EQUAL(bench_decision(&b, 0, ACTION_BALLOON)->new_target, actual);
	bench_done(&b);
}

static void with_room_all_are_back_at_their_maximum_at_once(void)
{
	struct bench b;

	bench_tight(&b);
	bench_budget(&b, 4096);
	bench_round(&b, SECOND);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(bench_decision(&b, i, ACTION_BALLOON)->reason, REASON_GIVE_SLACK);
		CU_ASSERT_EQUAL(bench_decision(&b, i, ACTION_BALLOON)->new_target, 512 * MIB);
	}
	bench_done(&b);
}

static void a_hard_budget_promises_no_more_than_there_is(void)
{
	struct bench b;

	bench_tight(&b);
	b.settings.host.budget_hard = true;
	bench_budget(&b, 640);
	for (int i = 0; i < 30; i++) {
		bench_round(&b, SECOND);
		CU_ASSERT(b.guests[0].balloon.actual + b.guests[1].balloon.actual <= 640 * MIB);
	}
	CU_ASSERT(b.guests[0].balloon.actual > 290 * MIB);
	bench_done(&b);
}

static void a_guest_with_more_shares_is_given_more(void)
{
	struct bench b;

	bench_tight(&b);
	b.settings.host.budget_hard = true;
	b.guests[1].settings.shares = 3000;
	bench_budget(&b, 640);
	for (int i = 0; i < 30; i++)
		bench_round(&b, SECOND);
	CU_ASSERT(b.guests[1].balloon.actual - 250 * MIB >
		  2 * (b.guests[0].balloon.actual - 250 * MIB));
	bench_done(&b);
}

static void a_hard_budget_locks_caps_onto_footprints(void)
{
	struct bench b;

	bench_init(&b, 2);
	b.settings.host.budget_hard = true;
	bench_budget(&b, 500);
	bench_settle(&b);
	CU_ASSERT(b.guests[0].balloon.actual + b.guests[1].balloon.actual <= (500 - 40) * MIB);
	CU_ASSERT(b.guests[0].balloon.actual >= 200 * MIB);
	bench_done(&b);
}

static void a_lock_leaves_what_the_guest_uses_and_its_reserve(void)
{
	struct bench b;

	bench_init(&b, 2);
	b.settings.host.budget_hard = true;
	bench_stat(&b, 0, STAT_FREE, 300 * MIB); /* it uses 212: some was never touched */
	bench_budget(&b, 460);
	bench_settle(&b);
	CU_ASSERT(b.guests[0].balloon.actual >= (212 + 12) * MIB);
	bench_done(&b);
}

static void a_soft_budget_locks_when_a_shortage_lasts(void)
{
	struct bench b;
	bool locked = false;

	bench_init(&b, 2);
	for (int i = 0; i < 2; i++) { /* nothing to be had */
		bench_stat(&b, i, STAT_FREE, 312 * MIB);
		bench_stat(&b, i, STAT_LAZYFREE, 0);
		bench_stat(&b, i, STAT_EXEC_MAPPED, 120 * MIB);
		b.guests[i].settings.swap = SWAP_NEVER;
	}
	bench_settle(&b);
	bench_budget(&b, 420);
	for (int i = 0; i < 8; i++) {
		bench_round(&b, SECOND);
		CU_ASSERT_EQUAL(bench_moves(&b), 0);
	}
	for (int i = 0; i < 10; i++) {
		bench_round(&b, SECOND);
		locked |= bench_decision(&b, 0, ACTION_BALLOON)->reason == REASON_LOCK;
	}
	CU_ASSERT(locked);
	bench_done(&b);
}

static void a_settled_host_moves_nothing(void)
{
	struct bench b;
	int moves = 0;

	bench_tight(&b);
	bench_budget(&b, 400);
	for (int i = 0; i < 120; i++)
		bench_round(&b, SECOND);
	for (int i = 0; i < 600; i++) {
		bench_round(&b, SECOND);
		moves += bench_moves(&b);
	}
	CU_ASSERT_EQUAL(moves, 0);
	bench_done(&b);
}

static void a_budget_that_swings_sees_few_reversals(void)
{
	struct bench b;
	int reversals = 0, last = 0;

	bench_tight(&b);
	for (int i = 0; i < 3600; i++) {
		const struct decision *d;
		int direction;

		/* The others on the host come and go: no setting changes. */
		b.settings.host.budget_kind = BUDGET_HOST;
		b.now.host.available = i / 30 % 2 ? 600 * MIB : 20 * MIB;
		for (int k = 0; k < 2; k++)
			b.guests[k].cost.footprint = 200 * MIB;
		bench_round(&b, SECOND);
		d = bench_decision(&b, 0, ACTION_BALLOON);
		if (d->action == ACTION_NONE)
			continue;
		direction = d->new_target > d->old_target ? 1 : -1;
		reversals += last != 0 && direction != last;
		last = direction;
	}
	CU_ASSERT(reversals <= 6);
	bench_done(&b);
}

static void levels_rise_at_once_and_fall_after_their_stay(void)
{
	struct bench b;
	int stay = 0;

	bench_tight(&b);
	b.settings.host.budget_kind = BUDGET_HOST;
	b.now.host.available = 5 * MIB;
	bench_round(&b, SECOND);
	CU_ASSERT_EQUAL(b.plan.level, LEVEL_CRITICAL);
	b.now.host.available = 4000 * MIB;
	for (; stay < 30 && b.plan.level == LEVEL_CRITICAL; stay++)
		bench_round(&b, SECOND);
	CU_ASSERT(stay >= 10 && stay < 13);
	CU_ASSERT_EQUAL(b.plan.level, LEVEL_RELAXED);
	bench_done(&b);
}

static void stalls_on_the_host_double_the_reserve_and_slowly(void)
{
	struct bench b;
	uint64_t before;

	bench_tight(&b);
	before = b.plan.headroom - b.plan.grant_pool;
	b.now.host.psi_some_avg10 = 5000;
	bench_round(&b, SECOND);
	CU_ASSERT(b.plan.headroom - b.plan.grant_pool < before * 13 / 10);
	for (int i = 0; i < 20; i++)
		bench_round(&b, SECOND);
	CU_ASSERT(b.plan.headroom - b.plan.grant_pool == 2 * before);
	bench_done(&b);
}

static const struct unit_test tests[] = {
	TEST(pressure_is_answered_in_the_same_round_and_in_one_step),
	TEST(one_frame_is_answered_once),
	TEST(a_relief_never_lowers_a_cap_that_is_on_its_way_up),
	TEST(a_restart_keeps_nobody_waiting_who_is_entitled_to_more),
	TEST(old_news_of_a_balloon_raises_no_cap),
	TEST(slack_has_to_stay_before_it_is_given),
	TEST(a_hard_budget_counts_what_cannot_be_controlled),
	TEST(what_was_granted_is_not_granted_twice),
	TEST(a_guest_beyond_its_entitlement_leaves_a_part_of_the_pool_to_others),
	TEST(a_guest_at_its_maximum_is_not_given_more),
	TEST(a_guest_that_was_relieved_is_left_alone_for_a_while),
	TEST(pressure_of_our_own_making_pauses_and_gives_nothing),
	TEST(swap_ins_prove_that_the_pressure_is_real),
	TEST(stalls_that_stay_two_windows_later_are_real),
	TEST(an_inflation_ends_where_it_is_when_it_presses_the_guest),
	TEST(with_room_all_are_back_at_their_maximum_at_once),
	TEST(a_hard_budget_promises_no_more_than_there_is),
	TEST(a_guest_with_more_shares_is_given_more),
	TEST(a_hard_budget_locks_caps_onto_footprints),
	TEST(a_lock_leaves_what_the_guest_uses_and_its_reserve),
	TEST(a_soft_budget_locks_when_a_shortage_lasts),
	TEST(a_settled_host_moves_nothing),
	TEST(a_budget_that_swings_sees_few_reversals),
	TEST(levels_rise_at_once_and_fall_after_their_stay),
	TEST(stalls_on_the_host_double_the_reserve_and_slowly),
};

HARNESS_MAIN("policy-give", tests)
