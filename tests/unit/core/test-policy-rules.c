// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Who is left alone and why, what a restart changes, and the failures of other balancers (their
 * names are in the comments): each is a kind of fault that this one has to survive.
 */
#include "tests/unit/core/bench.h"

static void observing_decides_and_carries_out_nothing(void)
{
	struct bench b;
	size_t told = 0;

	bench_init(&b, 2);
	b.settings.host.mode = MODE_OBSERVE;
	bench_settle(&b);
	bench_budget(&b, 300);
	for (int i = 0; i < 20; i++) {
		bench_round(&b, SECOND);
		CU_ASSERT_EQUAL(b.plan.n_decisions, 0);
		told += b.plan.n_observed;
	}
	CU_ASSERT(told > 0 && told <= 4); /* once each, not round after round */
	CU_ASSERT_EQUAL(b.plan.verdicts[0].state, STATE_OBSERVED);
	CU_ASSERT_EQUAL(b.plan.verdicts[0].reason, REASON_SHED_LAZYFREE);
	CU_ASSERT_EQUAL(b.plan.verdicts[0].wants, ACTION_SHED);
	bench_done(&b);
}

static void the_freeze_file_stops_all_action(void)
{
	struct bench b;

	bench_short(&b);
	b.now.frozen = true;
	for (int i = 0; i < 20; i++) {
		bench_round(&b, SECOND);
		CU_ASSERT_EQUAL(b.plan.n_decisions, 0);
	}
	b.now.frozen = false;
	bench_round(&b, SECOND);
	CU_ASSERT(bench_moves(&b) > 0);
	bench_done(&b);
}

static void a_guest_that_is_only_observed_is_not_counted_on(void)
{
	struct bench b;

	bench_short(&b);
	b.guests[0].settings.manage = MANAGE_OBSERVE;
	bench_expect_left_alone(&b, 0, REASON_OBSERVE);
	bench_done(&b);
}

static void an_unmanaged_guest_is_left_alone(void)
{
	struct bench b;

	bench_short(&b);
	b.guests[0].settings.manage = MANAGE_NO;
	bench_expect_left_alone(&b, 0, REASON_UNMANAGED);
	CU_ASSERT(b.plan.footprint >= 200 * MIB); /* and its cost counts */
	bench_done(&b);
}

/* xcp-ng: a migration shrank the guest; vm0: no progress once paused; cloudstack: a router that
 * booted with less than its memory. */
static void a_guest_that_does_not_run_is_left_alone(void)
{
	for (int phase = PHASE_BOOTING; phase < PHASE_MAX_ID; phase++) {
		struct bench b;

		bench_short(&b);
		b.guests[0].phase = phase;
		b.guests[0].agent.pressure_at_us = b.now.now_us;
		bench_expect_left_alone(&b, 0, REASON_PHASE);
		bench_done(&b);
	}
}

/* i915-sriov-dkms, kata: passthrough pins the memory. */
static void pinned_memory_is_refused_with_its_reason(void)
{
	static const uint32_t obstacles[] = { OBSTACLE_PASSTHROUGH, OBSTACLE_LOCKED,
					      OBSTACLE_HUGEPAGES, OBSTACLE_SHARED };

	for (int i = 0; i < 4; i++) {
		struct bench b;

		bench_short(&b);
		b.guests[0].obstacles = obstacles[i];
		bench_expect_left_alone(&b, 0, REASON_PINNED);
		bench_done(&b);
	}
}

static void pools_of_huge_pages_are_not_the_budget(void)
{
	struct bench b;

	bench_init(&b, 2);
	b.guests[0].obstacles = OBSTACLE_HUGEPAGES;
	bench_settle(&b);
	CU_ASSERT_EQUAL(b.plan.footprint, 200 * MIB);
	bench_done(&b);
}

static void without_the_hypervisor_nothing_moves(void)
{
	struct bench b;

	bench_short(&b);
	b.now.hypervisor_ready = false;
	bench_expect_left_alone(&b, 0, REASON_NO_HYPERVISOR);
	bench_done(&b);
}

/* arcbox: shrink and fail every five minutes; virtio-win: the driver stops at low memory. */
static void a_balloon_that_does_not_follow_is_left_alone_for_longer_each_time(void)
{
	struct bench b;
	uint64_t at[8] = { 0 };
	int n = 0;

	bench_short(&b);
	b.balloon_stopped[0] = true;
	for (int i = 0; i < 1200 && n < 4; i++) {
		const struct decision *d;

		bench_round(&b, SECOND);
		d = bench_decision(&b, 0, ACTION_BALLOON);
		if (d->action == ACTION_BALLOON && d->reason != REASON_STUCK)
			at[n++] = b.now.now_us;
		if (d->reason == REASON_STUCK) /* so that the driver doesn't go on trying */
			CU_ASSERT_EQUAL(d->new_target, b.guests[0].balloon.actual);
	}
	CU_ASSERT_EQUAL_FATAL(n, 4);
	CU_ASSERT(at[2] - at[1] > 3 * (at[1] - at[0]) / 2);
	CU_ASSERT(at[3] - at[2] > 3 * (at[2] - at[1]) / 2);
	bench_done(&b);
}

/* squeezed: one stuck guest made the others oscillate every few seconds. */
static void a_stuck_guest_does_not_make_the_others_oscillate(void)
{
	struct bench b;
	int reversals = 0, last = 0;

	bench_short(&b);
	b.balloon_stopped[0] = true;
	for (int i = 0; i < 600; i++) {
		const struct decision *d;

		bench_round(&b, SECOND);
		d = bench_decision(&b, 1, ACTION_BALLOON);
		if (d->action == ACTION_NONE)
			continue;
		reversals += last != 0 && (d->new_target > d->old_target ? 1 : -1) != last;
		last = d->new_target > d->old_target ? 1 : -1;
	}
	CU_ASSERT_EQUAL(reversals, 0);
	bench_done(&b);
}

static void a_footprint_above_the_cap_is_not_believed(void)
{
	struct bench b;

	bench_init(&b, 2);
	bench_settle(&b);
	b.guests[0].cost.footprint = 700 * MIB;
	for (int i = 0; i < 10; i++)
		bench_round(&b, SECOND);
	CU_ASSERT_EQUAL(bench_reason(&b, 0), REASON_DISBELIEVED);
	CU_ASSERT_EQUAL(b.plan.verdicts[0].state, STATE_BACKOFF);
	bench_done(&b);
}

/* home-assistant: another program inflated at boot; neither was to fight the other. */
static void a_change_that_is_not_ours_is_left_to_whoever_made_it(void)
{
	struct bench b;

	bench_short(&b);
	bench_balloon(&b, 0, 400 * MIB);
	bench_round(&b, SECOND);
	CU_ASSERT(!bench_did(&b, 0, ACTION_BALLOON));
	bench_expect_left_alone(&b, 0, REASON_FOREIGN);
	CU_ASSERT_EQUAL(policy_target(b.policy, 0), 400 * MIB);
	bench_balloon(&b, 0, 512 * MIB); /* they gave it back */
	for (int i = 0; i < 4; i++)
		bench_round(&b, SECOND);
	CU_ASSERT_NOT_EQUAL(bench_reason(&b, 0), REASON_FOREIGN);
	bench_done(&b);
}

/* firecracker: deflate_on_oom is a safety net and no plan. */
static void a_guest_that_deflates_by_itself_is_followed_and_left_alone(void)
{
	struct bench b;
	bool followed = false;

	bench_init(&b, 2);
	bench_budget(&b, 450);
	b.guests[0].balloon.autodeflate = true;
	b.guests[0].balloon.actual = 250 * MIB;
	bench_stat(&b, 0, STAT_FREE, 2 * MIB);
	bench_stat(&b, 0, STAT_LAZYFREE, 0);
	b.guests[0].cost.footprint = 248 * MIB;
	bench_settle(&b);
	b.guests[0].balloon.actual = 258 * MIB;
	for (int i = 0; i < 5; i++) {
		const struct decision *d;

		bench_round(&b, SECOND);
		d = bench_decision(&b, 0, ACTION_BALLOON);
		CU_ASSERT(d->action == ACTION_NONE || d->new_target == 258 * MIB);
		followed |= d->reason == REASON_AUTODEFLATED;
	}
	CU_ASSERT(followed);
	bench_expect_left_alone(&b, 0, REASON_AUTODEFLATED);
	bench_done(&b);
}

static void a_restart_moves_nothing(void)
{
	struct bench b;
	uint64_t target[2];

	bench_short(&b);
	for (int i = 0; i < 60; i++)
		bench_round(&b, SECOND);
	for (int i = 0; i < 2; i++)
		target[i] = policy_target(b.policy, (uint32_t)i);
	CU_ASSERT(target[0] < 512 * MIB);
	policy_free(b.policy);
	CU_ASSERT_FATAL(policy_new(&b.policy, BENCH_GUESTS) == 0);
	for (int i = 0; i < 2; i++)
		policy_restore(b.policy, (uint32_t)i, target[i]);
	for (int i = 0; i < 60; i++) {
		bench_round(&b, SECOND);
		CU_ASSERT_EQUAL(bench_moves(&b), 0);
		CU_ASSERT_EQUAL(policy_target(b.policy, 0), target[0]);
	}
	bench_done(&b);
}

static void a_restart_takes_nothing_for_the_reserve_alone(void)
{
	struct bench b;

	bench_init(&b, 2);
	bench_budget(&b, 410); /* met, but for the reserve of 50 */
	for (int i = 0; i < 2; i++)
		policy_restore(b.policy, (uint32_t)i, 512 * MIB);
	for (int i = 0; i < 300; i++) {
		bench_round(&b, SECOND);
		CU_ASSERT_EQUAL(bench_moves(&b), 0);
	}
	b.guests[0].cost.footprint += 20 * MIB; /* what is new since then counts */
	for (int i = 0; i < 5; i++)
		bench_round(&b, SECOND);
	CU_ASSERT(b.guests[0].balloon.actual < 512 * MIB);
	bench_done(&b);
}

/* qemus/qemu: assumes that the target is the maximum after a restart. */
static void a_restart_in_the_middle_of_a_move_lets_it_end(void)
{
	struct bench b;

	bench_init(&b, 2);
	bench_budget(&b, 300);
	policy_restore(b.policy, 0, 250 * MIB);
	for (uint64_t actual = 400; actual > 260; actual -= 20) {
		bench_balloon(&b, 0, actual * MIB);
		bench_round(&b, SECOND / 4);
		CU_ASSERT_EQUAL(bench_moves(&b), 0);
		CU_ASSERT_EQUAL(policy_target(b.policy, 0), 250 * MIB);
	}
	bench_balloon(&b, 0, 250 * MIB);
	bench_round(&b, SECOND / 4);
	CU_ASSERT_NOT_EQUAL(bench_reason(&b, 0), REASON_FOREIGN);
	bench_done(&b);
}

static void no_move_before_all_guests_were_seen(void)
{
	struct bench b;

	bench_init(&b, 2);
	bench_budget(&b, 300);
	b.agent_stopped[1] = true;
	for (int i = 0; i < 9; i++) {
		bench_round(&b, SECOND);
		CU_ASSERT_EQUAL(bench_moves(&b), 0);
	}
	CU_ASSERT_EQUAL(bench_reason(&b, 0), REASON_STANDSTILL);
	for (int i = 0; i < 5; i++) /* but not for ever */
		bench_round(&b, SECOND);
	CU_ASSERT(b.guests[0].balloon.actual < 512 * MIB);
	bench_done(&b);
}

static void the_same_arguments_give_the_same_plan(void)
{
	struct bench a, b;

	bench_short(&a);
	bench_short(&b);
	for (int i = 0; i < 30; i++) {
		bench_round(&a, SECOND);
		bench_round(&b, SECOND);
		CU_ASSERT_EQUAL(a.plan.n_decisions, b.plan.n_decisions);
		CU_ASSERT_EQUAL(memcmp(a.plan.decisions, b.plan.decisions,
				       a.plan.n_decisions * sizeof(struct decision)),
				0);
	}
	bench_done(&a);
	bench_done(&b);
}

/* A driver that is unbound and bound again, all the time: all is given back, and taken again. */
static void a_balloon_that_takes_every_move_back_is_left_alone(void)
{
	uint64_t asked = 512 * MIB;
	bool stuck = false;
	struct bench b;
	int moves = 0;

	bench_short(&b);
	b.settings.host.budget_hard = true;
	for (int i = 0; i < 1600; i++) {
		const struct decision *d;

		bench_round(&b, SECOND / 4);
		d = bench_decision(&b, 0, ACTION_BALLOON);
		asked = d->action == ACTION_BALLOON ? d->new_target : asked;
		moves += d->action == ACTION_BALLOON;
		stuck |= bench_reason(&b, 0) == REASON_STUCK;
		if (i % 16 == 8)
			bench_balloon(&b, 0, 512 * MIB);
		else if (i % 16 == 12)
			bench_balloon(&b, 0, asked < 511 * MIB ? 511 * MIB : asked);
		else if (i % 16 == 13)
			bench_balloon(&b, 0, asked);
	}
	CU_ASSERT(stuck);
	CU_ASSERT(moves <= 3);
	bench_done(&b);
}

static const struct unit_test tests[] = {
	TEST(observing_decides_and_carries_out_nothing),
	TEST(the_freeze_file_stops_all_action),
	TEST(a_guest_that_is_only_observed_is_not_counted_on),
	TEST(an_unmanaged_guest_is_left_alone),
	TEST(a_guest_that_does_not_run_is_left_alone),
	TEST(pinned_memory_is_refused_with_its_reason),
	TEST(pools_of_huge_pages_are_not_the_budget),
	TEST(without_the_hypervisor_nothing_moves),
	TEST(a_balloon_that_does_not_follow_is_left_alone_for_longer_each_time),
	TEST(a_stuck_guest_does_not_make_the_others_oscillate),
	TEST(a_footprint_above_the_cap_is_not_believed),
	TEST(a_change_that_is_not_ours_is_left_to_whoever_made_it),
	TEST(a_guest_that_deflates_by_itself_is_followed_and_left_alone),
	TEST(a_restart_moves_nothing),
	TEST(a_restart_takes_nothing_for_the_reserve_alone),
	TEST(a_restart_in_the_middle_of_a_move_lets_it_end),
	TEST(no_move_before_all_guests_were_seen),
	TEST(the_same_arguments_give_the_same_plan),
	TEST(a_balloon_that_takes_every_move_back_is_left_alone),
};

HARNESS_MAIN("policy-rules", tests)
