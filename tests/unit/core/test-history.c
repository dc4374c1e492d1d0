// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/core/history.h"

#include <errno.h>

#include "tests/unit/harness.h"

#define MIB (UINT64_C(1) << 20)
#define SEC UINT64_C(1000000)
#define NOW (100 * SEC)

static struct history *history;
static struct guest_snapshot guest;

static void start(void)
{
	history = history_free(history);
	CU_ASSERT_EQUAL_FATAL(history_new(&history, 4), 0);
	guest = (struct guest_snapshot){
		.slot = 2,
		.balloon = { .at_us = NOW - 1, .actual = 1000 * MIB, .maximum = 1000 * MIB },
		.cost = { .at_us = NOW - 1, .footprint = 900 * MIB },
	};
}

static void decide(enum action action, uint64_t at_us)
{
	struct decision decision = { .at_us = at_us,
				     .slot = guest.slot,
				     .action = action,
				     .old_target = 1000 * MIB,
				     .new_target = 800 * MIB,
				     .bytes = 100 * MIB,
				     .lifetime_us = SEC,
				     .level = LEVEL_TIGHT };

	CU_ASSERT_EQUAL(history_add(history, &guest, &decision, true, NULL), 0);
}

static const struct history_entry *newest(void)
{
	const struct history_entry *entry = history_get(history, guest.slot, 0);

	CU_ASSERT_PTR_NOT_NULL_FATAL(entry);
	return entry;
}

static void see_actual(uint64_t actual, uint64_t at_us)
{
	guest.balloon.actual = actual;
	guest.balloon.at_us = at_us;
	history_observe(history, &guest, at_us, SEC);
}

static void the_newest_comes_first_and_the_oldest_go(void)
{
	start();
	for (uint64_t i = 0; i < HISTORY_DEPTH + 10; i++) {
		decide(ACTION_BALLOON, NOW + i);
		CU_ASSERT_EQUAL(newest()->decision.at_us, NOW + i);
	}
	CU_ASSERT_EQUAL(history_count(history, 2), HISTORY_DEPTH);
	for (uint64_t i = 0; i < HISTORY_DEPTH; i++)
		CU_ASSERT_EQUAL(history_get(history, 2, i)->decision.at_us,
				NOW + HISTORY_DEPTH + 9 - i);
	CU_ASSERT_PTR_NULL(history_get(history, 2, HISTORY_DEPTH));
}

static void slots_do_not_mix_and_are_forgotten_alone(void)
{
	start();
	decide(ACTION_BALLOON, NOW);
	guest.slot = 3;
	decide(ACTION_SHED, NOW);
	CU_ASSERT_EQUAL(history_count(history, 0), 0);
	history_forget(history, 2);
	CU_ASSERT_EQUAL(history_count(history, 2), 0);
	CU_ASSERT_EQUAL(history_count(history, 3), 1);
	decide(ACTION_SHED, NOW);
	CU_ASSERT_EQUAL(history_count(history, 3), 2);
}

static void a_slot_out_of_range_is_an_error(void)
{
	struct decision decision = { .action = ACTION_SHED };

	start();
	guest.slot = 4;
	CU_ASSERT_EQUAL(history_add(history, &guest, &decision, true, NULL), -ERANGE);
	history_observe(history, &guest, NOW, SEC);
	history_forget(history, 4);
	CU_ASSERT_EQUAL(history_count(history, 4), 0);
	CU_ASSERT_PTR_NULL(history_get(history, 4, 0));
}

static void what_changes_nothing_is_not_kept(void)
{
	const struct history_entry *entry = (const void *)1;
	struct decision decision = { .action = ACTION_SAMPLE };

	start();
	CU_ASSERT_EQUAL(history_add(history, &guest, &decision, true, &entry), 0);
	CU_ASSERT_PTR_NULL(entry);
	CU_ASSERT_EQUAL(history_count(history, 2), 0);
}

static void a_balloon_is_done_when_it_is_seen_at_its_target(void)
{
	start();
	decide(ACTION_BALLOON, NOW);
	CU_ASSERT_EQUAL(newest()->actual, 1000 * MIB);
	see_actual(900 * MIB, NOW + SEC);
	CU_ASSERT_EQUAL(newest()->outcome, OUTCOME_PENDING);
	see_actual(800 * MIB + 4096, NOW + 2 * SEC);
	CU_ASSERT_EQUAL(newest()->outcome, OUTCOME_PENDING); /* the footprint comes later */
	guest.cost.footprint = 700 * MIB;
	see_actual(800 * MIB, NOW + 3 * SEC);
	CU_ASSERT_EQUAL(newest()->outcome, OUTCOME_DONE);
	CU_ASSERT_EQUAL(newest()->done_us, NOW + 2 * SEC);
	CU_ASSERT_EQUAL(newest()->settled_us, NOW + 3 * SEC);
	CU_ASSERT_EQUAL(newest()->footprint_after, 700 * MIB);
}

static void numbers_from_before_the_decision_prove_nothing(void)
{
	start();
	guest.balloon.actual = 800 * MIB;
	guest.agent.shed_done_at_us = NOW - 1;
	guest.agent.shed_freed = 100 * MIB;
	decide(ACTION_BALLOON, NOW);
	decide(ACTION_SHED, NOW);
	history_observe(history, &guest, NOW + 10 * SEC, SEC);
	CU_ASSERT_EQUAL(history_get(history, 2, 0)->outcome, OUTCOME_PENDING);
	CU_ASSERT_EQUAL(history_get(history, 2, 1)->outcome, OUTCOME_PENDING);
}

static void a_balloon_that_stays_has_no_effect_and_one_that_stops_is_partial(void)
{
	start();
	decide(ACTION_BALLOON, NOW);
	see_actual(1000 * MIB, NOW + 40 * SEC);
	CU_ASSERT_EQUAL(newest()->outcome, OUTCOME_NO_EFFECT);
	decide(ACTION_BALLOON, NOW + 41 * SEC);
	see_actual(900 * MIB, NOW + 90 * SEC);
	CU_ASSERT_EQUAL(newest()->outcome, OUTCOME_PARTIAL);
}

static void a_refusal_of_the_hypervisor_is_a_failure_with_its_errno(void)
{
	start();
	decide(ACTION_BALLOON, NOW);
	guest.request = (struct request_part){ NOW + 1, NOW + SEC, 800 * MIB, -ETIMEDOUT };
	history_observe(history, &guest, NOW + SEC, SEC);
	CU_ASSERT_EQUAL(newest()->outcome, OUTCOME_FAILED);
	CU_ASSERT_EQUAL(newest()->status, -ETIMEDOUT);
}

static void a_newer_balloon_supersedes_one_that_was_not_done(void)
{
	start();
	decide(ACTION_BALLOON, NOW);
	decide(ACTION_SHED, NOW + SEC);
	CU_ASSERT_EQUAL(history_get(history, 2, 1)->outcome, OUTCOME_PENDING);
	decide(ACTION_BALLOON, NOW + 2 * SEC);
	CU_ASSERT_EQUAL(history_get(history, 2, 2)->outcome, OUTCOME_SUPERSEDED);
	CU_ASSERT_EQUAL(history_get(history, 2, 1)->outcome, OUTCOME_PENDING);
}

static void shed(uint64_t freed, int status, enum outcome outcome)
{
	start();
	decide(ACTION_SHED, NOW);
	guest.agent.shed_done_at_us = NOW + SEC;
	guest.agent.shed_freed = freed;
	guest.agent.shed_status = status;
	history_observe(history, &guest, NOW + 3 * SEC, SEC);
	CU_ASSERT_EQUAL(newest()->outcome, outcome);
	CU_ASSERT_EQUAL(newest()->status, status);
}

static void a_shed_is_what_the_guest_says_it_freed(void)
{
	shed(95 * MIB, 0, OUTCOME_DONE);
	shed(50 * MIB, 0, OUTCOME_PARTIAL);
	shed(50 * MIB, -EAGAIN, OUTCOME_PARTIAL);
	shed(0, 0, OUTCOME_NO_EFFECT);
	shed(0, -EPERM, OUTCOME_FAILED);
}

static void a_shed_without_answer_has_no_effect(void)
{
	start();
	decide(ACTION_SHED, NOW);
	history_observe(history, &guest, NOW + 20 * SEC, SEC);
	CU_ASSERT_EQUAL(newest()->outcome, OUTCOME_PENDING);
	history_observe(history, &guest, NOW + 40 * SEC, SEC);
	CU_ASSERT_EQUAL(newest()->outcome, OUTCOME_NO_EFFECT);
}

static void a_profile_is_done_when_the_agent_has_it(void)
{
	start();
	decide(ACTION_PROFILE, NOW);
	guest.agent.profile_set = true;
	history_observe(history, &guest, NOW + SEC, SEC);
	CU_ASSERT_EQUAL(newest()->outcome, OUTCOME_PENDING);
	guest.agent.profile_level = LEVEL_TIGHT;
	history_observe(history, &guest, NOW + 2 * SEC, SEC);
	CU_ASSERT_EQUAL(newest()->outcome, OUTCOME_DONE);
}

static void a_profile_of_which_nothing_was_set_has_no_effect(void)
{
	start();
	decide(ACTION_PROFILE, NOW);
	guest.agent.profile_set = guest.agent.profile_void = true;
	guest.agent.profile_level = LEVEL_TIGHT;
	history_observe(history, &guest, NOW + SEC, SEC);
	CU_ASSERT_EQUAL(newest()->outcome, OUTCOME_NO_EFFECT);
}

static void what_was_only_observed_stays_so(void)
{
	struct decision decision = { .at_us = NOW, .action = ACTION_SHED, .bytes = MIB };
	const struct history_entry *entry;

	start();
	CU_ASSERT_EQUAL(history_add(history, &guest, &decision, false, &entry), 0);
	history_observe(history, &guest, NOW + 100 * SEC, SEC);
	CU_ASSERT_EQUAL(entry->outcome, OUTCOME_OBSERVED);
	CU_ASSERT_EQUAL(entry->settled_us, 0);
}

static void what_is_not_known_stays_unknown(void)
{
	start();
	guest.balloon.at_us = 0;
	guest.cost.at_us = 0;
	decide(ACTION_SHED, NOW);
	CU_ASSERT_EQUAL(newest()->actual, 0);
	CU_ASSERT_EQUAL(newest()->footprint, 0);
	CU_ASSERT_FALSE(newest()->psi_known);
}

static void the_pressure_of_a_guest_is_a_share_of_the_time(void)
{
	struct agent_part agent = { .at_us = NOW, .previous_at_us = NOW - SEC };
	uint64_t share = 77;

	CU_ASSERT_FALSE(agent_psi_some(&agent, &share));
	stat_put(&agent.previous, STAT_PSI_SOME, 1000);
	stat_put(&agent.stats, STAT_PSI_SOME, 1000 + SEC / 4);
	CU_ASSERT_TRUE(agent_psi_some(&agent, &share));
	CU_ASSERT_EQUAL(share, 2500);
	stat_put(&agent.stats, STAT_PSI_SOME, UINT64_MAX); /* a lie */
	CU_ASSERT_TRUE(agent_psi_some(&agent, &share));
	CU_ASSERT_EQUAL(share, 10000);
	stat_put(&agent.stats, STAT_PSI_SOME, 0); /* it rebooted */
	CU_ASSERT_FALSE(agent_psi_some(&agent, &share));
}

static const struct unit_test tests[] = {
	TEST(the_newest_comes_first_and_the_oldest_go),
	TEST(slots_do_not_mix_and_are_forgotten_alone),
	TEST(a_slot_out_of_range_is_an_error),
	TEST(what_changes_nothing_is_not_kept),
	TEST(a_balloon_is_done_when_it_is_seen_at_its_target),
	TEST(numbers_from_before_the_decision_prove_nothing),
	TEST(a_balloon_that_stays_has_no_effect_and_one_that_stops_is_partial),
	TEST(a_refusal_of_the_hypervisor_is_a_failure_with_its_errno),
	TEST(a_newer_balloon_supersedes_one_that_was_not_done),
	TEST(a_shed_is_what_the_guest_says_it_freed),
	TEST(a_shed_without_answer_has_no_effect),
	TEST(a_profile_is_done_when_the_agent_has_it),
	TEST(a_profile_of_which_nothing_was_set_has_no_effect),
	TEST(what_was_only_observed_stays_so),
	TEST(what_is_not_known_stays_unknown),
	TEST(the_pressure_of_a_guest_is_a_share_of_the_time),
};

int main(int argc, char **argv)
{
	int status = harness_run("history", tests, sizeof(tests) / sizeof(tests[0]), argc, argv);

	history = history_free(history);
	return status;
}
