// SPDX-License-Identifier: GPL-2.0-or-later
/* What a hostile guest sends, and guests that don't read. */
#include "tests/unit/channel-fixture.h"

/* --- What a hostile guest sends --------------------------------------------------------------- */

static void garbage_cuts_the_guest_off_for_a_while(void)
{
	uint8_t garbage[64];
	struct fixture f;

	setup_connected(&f);
	memset(garbage, 0xa5, sizeof(garbage));
	/* Noise of any length is one breach, so let good frames be between. */
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_NOT_EQUAL(channel_link(f.channel), AGENT_BROKEN);
		say_bytes(&f, garbage, sizeof(garbage));
		if (i < 3)
			say_hello(&f, NONCE);
	}
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_BROKEN);
	CU_ASSERT_EQUAL(f.told.n_samples, 0);
	(void)close(f.guest);
	run_for(&f, 50000);
	CU_ASSERT_EQUAL(accept(f.listener, NULL, NULL), -1);
	accept_host(&f);
	CU_ASSERT_NOT_EQUAL(channel_link(f.channel), AGENT_BROKEN);
	teardown(&f);
}

static void noise_without_a_hello_is_shown_as_broken(void)
{
	struct fixture f;

	setup_connected(&f);
	say_bytes(&f, "login: ", 7);
	say_bytes(&f, "This is a terminal and no agent.", 32);
	run_for(&f, 90000);
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_BROKEN);
	teardown(&f);
}

static void the_hosts_own_frames_are_a_breach(void)
{
	struct wire_message message = { .type = WIRE_SAMPLE_NOW };
	struct fixture f;

	setup_connected(&f);
	message.command.lifetime_ms = 1000;
	for (int i = 0; i < 4; i++)
		say(&f, &message);
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_BROKEN);
	teardown(&f);
}

static void an_answer_to_what_was_never_asked_is_a_breach(void)
{
	struct wire_message message = { .type = WIRE_RESULT };
	struct fixture f;

	setup_connected(&f);
	say_hello(&f, NONCE);
	message.result.command_seq = 1000;
	message.result.command_type = WIRE_SHED;
	say(&f, &message);
	CU_ASSERT_EQUAL(f.told.n_results, 0);
	CU_ASSERT_EQUAL(channel_counters(f.channel)->refused, 1);
	teardown(&f);
}

static void new_sessions_one_after_the_other_are_a_breach_too(void)
{
	struct fixture f;

	setup_connected(&f);
	for (uint64_t i = 0; i < 20 && channel_link(f.channel) != AGENT_BROKEN; i++) {
		say_hello(&f, NONCE + i);
		run_for(&f, 2 * limits.session_us);
	}
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_BROKEN);
	CU_ASSERT_TRUE(f.told.n_sessions <= limits.strikes);
	teardown(&f);
}

static void new_sessions_now_and_then_are_none(void)
{
	struct fixture f;

	setup_connected(&f);
	for (uint64_t i = 0; i < 2 * limits.strikes; i++) {
		say_hello(&f, NONCE + i);
		run_for(&f, limits.calm_us + 1000);
	}
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_UP);
	CU_ASSERT_EQUAL(f.told.n_sessions, 2 * limits.strikes);
	teardown(&f);
}

static void a_storm_of_new_sessions_is_a_breach(void)
{
	struct fixture f;

	setup_connected(&f);
	for (uint64_t i = 0; i < 20 && channel_link(f.channel) != AGENT_BROKEN; i++) {
		struct wire_message message = hello_message(NONCE + i);
		uint8_t frame[WIRE_FRAME_MAX];

		(void)!write(f.guest, frame, encode(&f, &message, frame));
		run_for(&f, 100);
	}
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_BROKEN);
	CU_ASSERT_TRUE(f.told.n_sessions < 8);
	teardown(&f);
}

/* Flood for half a second: what is taken in stays below the budget, and the loop has time. */
static void a_flood_is_read_no_faster_than_its_budget(void)
{
	struct wire_message message = sample_message(1);
	uint8_t frame[WIRE_FRAME_MAX];
	uint64_t end, turns = 0;
	struct fixture f;
	size_t size;

	setup_connected(&f);
	say_hello(&f, NONCE);
	size = encode(&f, &message, frame);
	end = now_us() + USEC_PER_SEC / 2;
	while (now_us() < end) {
		while (send(f.guest, frame, size, MSG_NOSIGNAL) > 0)
			;
		run_for(&f, 5000);
		turns++;
	}
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_UP);
	CU_ASSERT_TRUE(channel_counters(f.channel)->bytes_in <= 64 * 1024 + 48 * 1024);
	CU_ASSERT_TRUE(channel_counters(f.channel)->bytes_in >= 64 * 1024);
	CU_ASSERT_TRUE(channel_counters(f.channel)->pauses > 0);
	CU_ASSERT_TRUE(turns > 50);
	teardown(&f);
}

static void the_end_of_a_paused_link_is_noticed(void)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_message message = sample_message(1);
	struct fixture f;
	size_t size;

	setup_connected(&f);
	say_hello(&f, NONCE);
	size = encode(&f, &message, frame);
	for (int i = 0; i < 20 && !channel_counters(f.channel)->pauses; i++) {
		while (send(f.guest, frame, size, MSG_NOSIGNAL) > 0)
			;
		run_for(&f, 5000);
	}
	CU_ASSERT_TRUE(channel_counters(f.channel)->pauses > 0);
	(void)close(f.guest);
	run_for(&f, 5000);
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_CONNECTING);
	accept_host(&f);
	teardown(&f);
}

static const struct unit_test tests[] = {
	TEST(garbage_cuts_the_guest_off_for_a_while),
	TEST(noise_without_a_hello_is_shown_as_broken),
	TEST(the_hosts_own_frames_are_a_breach),
	TEST(an_answer_to_what_was_never_asked_is_a_breach),
	TEST(a_storm_of_new_sessions_is_a_breach),
	TEST(new_sessions_one_after_the_other_are_a_breach_too),
	TEST(new_sessions_now_and_then_are_none),
	TEST(a_flood_is_read_no_faster_than_its_budget),
	TEST(the_end_of_a_paused_link_is_noticed),
};

HARNESS_MAIN("channel-hostile", tests)
