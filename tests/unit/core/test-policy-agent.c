// SPDX-License-Identifier: GPL-2.0-or-later
/* Agents that are missing, silent, late, old or lying, and guests without one. */
#include "tests/unit/core/bench.h"

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
	bench_expect_left_alone(&b, 0, REASON_NO_NUMBERS);
	bench_done(&b);
}

static void a_guest_without_driver_says_so(void)
{
	struct bench b;

	bench_short(&b);
	b.guests[1].agent = (struct agent_part){ .link = AGENT_NONE };
	policy_forget(b.policy, 1);
	bench_expect_left_alone(&b, 1, REASON_NO_DRIVER);
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
	bench_stat(&b, 0, STAT_FREE, MIB);
	b.guests[0].agent.link = AGENT_CONNECTING;
	for (int i = 0; i < 30; i++) {
		bench_round(&b, SECOND / 4);
		CU_ASSERT_NOT_EQUAL(bench_decision(&b, 0, ACTION_BALLOON)->reason,
				    REASON_TAKE_FILE);
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

static void a_profile_that_a_reload_changes_is_asked_for_again(void)
{
	struct bench b;
	int sent = 0;

	bench_init(&b, 1);
	for (int i = 0; i < 10; i++) {
		bench_round(&b, SECOND);
		sent += bench_did(&b, 0, ACTION_PROFILE);
	}
	CU_ASSERT_EQUAL(sent, 1);
	knob_put(&b.settings.host.profiles[LEVEL_RELAXED], KNOB_SWAPPINESS, 77);
	bench_round(&b, SECOND);
	CU_ASSERT(bench_did(&b, 0, ACTION_PROFILE));
	CU_ASSERT_EQUAL(b.guests[0].agent.asked.value[KNOB_SWAPPINESS], 77);
	bench_round(&b, SECOND);
	CU_ASSERT_FALSE(bench_did(&b, 0, ACTION_PROFILE));
	bench_done(&b);
}

static struct profile asked(const struct bench *b, enum level level)
{
	struct profile profile;

	profile_for(&b->settings, &b->now.host, &b->guests[0], level, &profile);
	return profile;
}

static void profiles_follow_the_level(void)
{
	static const struct {
		enum knob_id knob;
		uint64_t want[LEVEL_MAX_ID];
	} rows[] = {
		{ KNOB_EXEC_PROTECT, { 2, 2, 3 } },
		{ KNOB_LAZYFREE_FIRST, { 0, 2, 2 } },
		{ KNOB_ANON_PREFAULT_MAX_ORDER, { 3, 1, 0 } },
		{ KNOB_REPORTING_DELAY_MS, { 2000, 500, 100 } },
		{ KNOB_REPORTING_BUDGET, { 1, 4, 16 } },
	};
	struct bench b;

	bench_init(&b, 1);
	b.guests[0].balloon.maximum = 2048 * MIB;
	for (int level = 0; level < LEVEL_MAX_ID; level++) {
		struct profile got = asked(&b, level);

		for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
			CU_ASSERT(knob_has(&got, rows[i].knob));
			CU_ASSERT_EQUAL(got.value[rows[i].knob], rows[i].want[level]);
		}
		CU_ASSERT_FALSE(knob_has(&got, KNOB_SWAPPINESS));
		CU_ASSERT_EQUAL(knob_has(&got, KNOB_PCP_HIGH_FRACTION), level == LEVEL_CRITICAL);
	}
	bench_done(&b);
}

static void a_small_guest_prefaults_less_unless_its_rule_says_so(void)
{
	struct profile none;
	struct bench b;

	bench_init(&b, 1);
	b.guests[0].balloon.maximum = 1023 * MIB;
	CU_ASSERT_EQUAL(asked(&b, LEVEL_RELAXED).value[KNOB_ANON_PREFAULT_MAX_ORDER], 2);
	CU_ASSERT_EQUAL(asked(&b, LEVEL_TIGHT).value[KNOB_ANON_PREFAULT_MAX_ORDER], 1);
	b.guests[0].balloon.maximum = 0; /* not known yet */
	CU_ASSERT_EQUAL(asked(&b, LEVEL_RELAXED).value[KNOB_ANON_PREFAULT_MAX_ORDER], 2);
	knob_drop(&b.settings.host.profiles[LEVEL_RELAXED], KNOB_ANON_PREFAULT_MAX_ORDER);
	none = asked(&b, LEVEL_RELAXED);
	CU_ASSERT_FALSE(knob_has(&none, KNOB_ANON_PREFAULT_MAX_ORDER));
	knob_put(&b.guests[0].settings.sysctl, KNOB_ANON_PREFAULT_MAX_ORDER, 4);
	CU_ASSERT_EQUAL(asked(&b, LEVEL_CRITICAL).value[KNOB_ANON_PREFAULT_MAX_ORDER], 4);
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
	TEST(a_profile_that_a_reload_changes_is_asked_for_again),
	TEST(profiles_follow_the_level),
	TEST(a_small_guest_prefaults_less_unless_its_rule_says_so),
	TEST(a_guest_without_lazyfree_first_gives_both_as_one),
};

HARNESS_MAIN("policy-agent", tests)
