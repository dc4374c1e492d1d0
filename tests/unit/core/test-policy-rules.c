// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Who is left alone and why, what a restart changes, and the failures of other balancers (their
 * names are in the comments): each is a kind of fault that this one has to survive.
 */
#include "tests/unit/core/bench.h"

#include <errno.h>

/* Short of memory, with much free and lazyfree memory in both guests. */
static void bench_short(struct bench *b)
{
	bench_init(b, 2);
	bench_settle(b);
	bench_budget(b, 300);
}

static void expect_left_alone(struct bench *b, int i, enum reason reason)
{
	for (int k = 0; k < 10; k++) {
		bench_round(b, SECOND);
		CU_ASSERT(!bench_did(b, i, ACTION_BALLOON) && !bench_did(b, i, ACTION_SHED));
	}
	CU_ASSERT_EQUAL(bench_reason(b, i), reason);
}

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
	expect_left_alone(&b, 0, REASON_OBSERVE);
	bench_done(&b);
}

static void an_unmanaged_guest_is_left_alone(void)
{
	struct bench b;

	bench_short(&b);
	b.guests[0].settings.manage = MANAGE_NO;
	expect_left_alone(&b, 0, REASON_UNMANAGED);
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
		expect_left_alone(&b, 0, REASON_PHASE);
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
		expect_left_alone(&b, 0, REASON_PINNED);
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
	expect_left_alone(&b, 0, REASON_NO_HYPERVISOR);
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
	expect_left_alone(&b, 0, REASON_FOREIGN);
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
	expect_left_alone(&b, 0, REASON_AUTODEFLATED);
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

/* virtio-win: last_update frozen; vdsm: half-collected data made the target 0. */
static void statistics_that_stopped_stop_the_taking(void)
{
	struct bench b;

	bench_init(&b, 2);
	b.guests[0].agent = (struct agent_part){ .link = AGENT_NONE };
	b.guests[0].driver = (struct driver_part){ 0, true, true, 400 * MIB, 352 * MIB };
	bench_settle(&b);
	b.driver_stopped[0] = true;
	for (int i = 0; i < 5; i++)
		bench_round(&b, SECOND);
	bench_budget(&b, 300);
	expect_left_alone(&b, 0, REASON_NO_NUMBERS);
	bench_done(&b);
}

static void a_guest_without_driver_says_so(void)
{
	struct bench b;

	bench_short(&b);
	b.guests[1].agent = (struct agent_part){ .link = AGENT_NONE };
	policy_forget(b.policy, 1);
	expect_left_alone(&b, 1, REASON_NO_DRIVER);
	bench_done(&b);
}

/* arcbox: used was near 0, and 15.8 of 15.96 GiB were asked for in one step. */
static void without_an_agent_a_step_is_at_most_half_of_what_is_usable(void)
{
	struct bench b;

	bench_init(&b, 1);
	b.guests[0].agent = (struct agent_part){ .link = AGENT_NONE };
	b.guests[0].driver = (struct driver_part){ 0, true, false, 500 * MIB, 0 };
	b.guests[0].cost.footprint = 500 * MIB;
	bench_settle(&b);
	bench_budget(&b, 200);
	for (int i = 0; i < 30; i++) {
		uint64_t before = b.guests[0].balloon.actual;

		bench_round(&b, SECOND);
		CU_ASSERT(before - b.guests[0].balloon.actual <= 250 * MIB);
		b.guests[0].driver.usable -= before - b.guests[0].balloon.actual;
	}
	CU_ASSERT(b.guests[0].balloon.actual < 400 * MIB);
	bench_done(&b);
}

/* virtio-spec 247: polls hang in thrashing guests. */
static void silence_during_an_inflation_ends_it(void)
{
	struct bench b;
	bool ended = false;

	bench_short(&b);
	b.balloon_stopped[0] = true;
	bench_round(&b, SECOND);
	CU_ASSERT(bench_did(&b, 0, ACTION_BALLOON));
	b.agent_stopped[0] = true;
	for (int i = 0; i < 20 && !ended; i++) {
		bench_balloon(&b, 0, b.guests[0].balloon.actual - MIB); /* slowly */
		bench_round(&b, SECOND / 2);
		ended = bench_decision(&b, 0, ACTION_BALLOON)->new_target ==
			b.guests[0].balloon.actual;
	}
	CU_ASSERT(ended);
	bench_done(&b);
}

static void a_silent_guest_keeps_its_memory_for_its_grace_and_then_goes_down_slowly(void)
{
	struct bench b;
	uint64_t before;

	bench_init(&b, 2);
	bench_settle(&b);
	for (int i = 0; i < 2; i++) {
		b.guests[i].cost.footprint = 400 * MIB;
		b.guests[i].balloon.actual = 512 * MIB;
	}
	b.agent_stopped[0] = b.agent_stopped[1] = true;
	for (int i = 0; i < 5; i++)
		bench_round(&b, SECOND);
	bench_budget(&b, 500);
	for (int i = 0; i < 50; i++) {
		bench_round(&b, SECOND);
		CU_ASSERT(!bench_did(&b, 0, ACTION_BALLOON) ||
			  bench_decision(&b, 0, ACTION_BALLOON)->reason == REASON_LOCK);
	}
	before = b.guests[0].balloon.actual;
	for (int i = 0; i < 600; i++)
		bench_round(&b, SECOND);
	CU_ASSERT(b.guests[0].balloon.actual >= b.plan.verdicts[0].entitlement);
	CU_ASSERT(b.guests[0].balloon.actual < before);
	bench_done(&b);
}

/* Two guests that hold 400 MiB each and say nothing, on a host with 500. */
static void bench_mute(struct bench *b)
{
	bench_init(b, 2);
	for (int i = 0; i < 2; i++) {
		b->agent_stopped[i] = true;
		b->guests[i].cost.footprint = 400 * MIB;
	}
	bench_settle(b);
	bench_budget(b, 500);
}

/* Ducking behind a channel that is open must not pay. */
static void a_hello_without_a_sample_ever_is_silence(void)
{
	struct bench b;

	bench_mute(&b);
	for (int i = 0; i < 600; i++)
		bench_round(&b, SECOND);
	CU_ASSERT(b.guests[0].balloon.actual < 400 * MIB);
	CU_ASSERT(b.guests[0].balloon.actual >= b.plan.verdicts[0].entitlement);
	bench_done(&b);
}

/* A new session has no sample yet, which says nothing of how long there was none. */
static void an_agent_that_starts_again_has_its_grace(void)
{
	struct bench b;

	bench_init(&b, 2);
	bench_settle(&b);
	bench_budget(&b, 150);
	for (int i = 0; i < 5; i++)
		bench_round(&b, SECOND);
	b.agent_stopped[0] = true;
	b.guests[0].agent.at_us = b.guests[0].agent.previous_at_us = 0;
	for (int i = 0; i < 30; i++) {
		bench_round(&b, SECOND);
		CU_ASSERT_NOT_EQUAL(bench_decision(&b, 0, ACTION_BALLOON)->reason, REASON_SILENT);
	}
	bench_done(&b);
}

/* A frame that was queued for an agent that died is answered by the next one. */
static void an_answer_out_of_time_is_no_refusal(void)
{
	static const int answers[] = { -ESTALE, -ETIME, -EBUSY };

	for (size_t k = 0; k < 3; k++) {
		struct bench b;

		bench_short(&b);
		b.sheds_unanswered = true;
		for (int i = 0; i < 10 && !bench_did(&b, 0, ACTION_SHED); i++)
			bench_round(&b, SECOND);
		CU_ASSERT(bench_did(&b, 0, ACTION_SHED));
		b.guests[0].agent.shed_done_at_us = b.now.now_us + SECOND / 2;
		b.guests[0].agent.shed_status = answers[k];
		bench_round(&b, SECOND);
		for (int i = 0; i < 5 && !bench_did(&b, 0, ACTION_SHED); i++)
			bench_round(&b, SECOND);
		CU_ASSERT(bench_did(&b, 0, ACTION_SHED));
		bench_done(&b);
	}
}

static void an_agent_that_has_just_gone_is_waited_for(void)
{
	struct bench b;

	bench_init(&b, 1);
	bench_stat(&b, 0, STAT_LAZYFREE, 0);
	bench_settle(&b);
	bench_budget(&b, 230); /* what is free goes, and nothing else */
	for (int i = 0; i < 10; i++)
		bench_round(&b, SECOND);
	bench_budget(&b, 100);
	b.guests[0].agent.link = AGENT_CONNECTING;
	for (int i = 0; i < 30; i++) {
		bench_round(&b, SECOND / 4);
		CU_ASSERT(!bench_did(&b, 0, ACTION_BALLOON) ||
			  bench_decision(&b, 0, ACTION_BALLOON)->reason == REASON_SHED_FREE);
	}
	bench_done(&b);
}

/* Under the name of text, in silence, or as numbers without sense. */
static void what_is_beyond_an_entitlement_goes_under_any_name(void)
{
	for (int lie = 0; lie < 3; lie++) {
		struct bench b;

		bench_init(&b, 2);
		bench_settle(&b);
		b.guests[0].cost.footprint = 400 * MIB;
		bench_stat(&b, 0, STAT_FREE, lie == 2 ? UINT64_MAX : 0);
		bench_stat(&b, 0, STAT_LAZYFREE, 0);
		bench_stat(&b, 0, STAT_EXEC_MAPPED, lie == 2 ? UINT64_MAX : 512 * MIB);
		if (lie == 1)
			b.agent_stopped[0] = true;
		bench_budget(&b, 500);
		for (int i = 0; i < 400; i++)
			bench_round(&b, SECOND);
		CU_ASSERT(b.guests[1].cost.footprint >= 110 * MIB);
		CU_ASSERT(b.guests[1].balloon.actual >= 118 * MIB);
		CU_ASSERT(b.plan.footprint <= 500 * MIB); /* the liar pays for it */
		CU_ASSERT(b.guests[0].balloon.actual >= b.plan.verdicts[0].entitlement);
		bench_done(&b);
	}
}

static void stale_hold_opts_out_of_being_lowered(void)
{
	struct bench b;

	bench_init(&b, 2);
	bench_settle(&b);
	b.guests[0].settings.stale = STALE_HOLD;
	b.guests[0].cost.footprint = 400 * MIB;
	b.agent_stopped[0] = true;
	b.settings.host.lock_after_us = 3600 * SECOND;
	for (int i = 0; i < 5; i++)
		bench_round(&b, SECOND);
	bench_budget(&b, 300);
	for (int i = 0; i < 200; i++)
		bench_round(&b, SECOND);
	CU_ASSERT_EQUAL(b.guests[0].balloon.actual, 512 * MIB);
	bench_done(&b);
}

static void a_profile_is_set_once_and_a_refused_one_is_not_hammered(void)
{
	struct bench b;
	int sent = 0;

	bench_init(&b, 1);
	for (int i = 0; i < 300; i++) {
		bench_round(&b, SECOND);
		b.guests[0].agent.profile_set = false;
		sent += bench_did(&b, 0, ACTION_PROFILE);
	}
	CU_ASSERT(sent > 2 && sent < 12);
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

static void a_guest_without_lazyfree_first_gives_both_as_one(void)
{
	struct bench b;
	bool mixed = false;

	bench_short(&b);
	for (int i = 0; i < 2; i++)
		b.guests[i].agent.capabilities &= ~(uint32_t)AGENT_HAS_LAZYFREE_FIRST;
	for (int i = 0; i < 20; i++) {
		const struct decision *d;

		bench_round(&b, SECOND);
		d = bench_decision(&b, 0, ACTION_SHED);
		CU_ASSERT(d->action == ACTION_NONE || d->shed_flags == SHED_FILE);
		mixed |= d->reason == REASON_TAKE_MIXED;
	}
	CU_ASSERT(mixed);
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
	TEST(statistics_that_stopped_stop_the_taking),
	TEST(a_guest_without_driver_says_so),
	TEST(without_an_agent_a_step_is_at_most_half_of_what_is_usable),
	TEST(silence_during_an_inflation_ends_it),
	TEST(a_silent_guest_keeps_its_memory_for_its_grace_and_then_goes_down_slowly),
	TEST(a_hello_without_a_sample_ever_is_silence),
	TEST(an_agent_that_starts_again_has_its_grace),
	TEST(an_answer_out_of_time_is_no_refusal),
	TEST(an_agent_that_has_just_gone_is_waited_for),
	TEST(what_is_beyond_an_entitlement_goes_under_any_name),
	TEST(stale_hold_opts_out_of_being_lowered),
	TEST(a_profile_is_set_once_and_a_refused_one_is_not_hammered),
	TEST(the_same_arguments_give_the_same_plan),
	TEST(a_guest_without_lazyfree_first_gives_both_as_one),
};

HARNESS_MAIN("policy-rules", tests)
