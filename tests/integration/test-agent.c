// SPDX-License-Identifier: GPL-2.0-or-later
/* The agent's session: what it says, and what it does when it is told to. */
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/integration/agent-bench.h"

/* Less than the second after which a sample is due anyway. The agent's clock is ours. */
#define AT_ONCE_US    900000

#define INTERVALS_MAX 9

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * The median of the times between the last sample and the @n that follow, by the agent's clock:
 * one that was late, for the machine had no time for it, doesn't count. @ret: the last of them.
 */
static uint64_t usual_interval_us(struct bench *b, size_t n, struct wire_message *ret)
{
	uint64_t interval_us[INTERVALS_MAX], last_us = b->peer.clock_us;

	CU_ASSERT_FATAL(n <= INTERVALS_MAX);
	for (size_t i = 0; i < n; i++) {
		CU_ASSERT_FATAL(peer_wait(&b->peer, WIRE_SAMPLE, ret, SOON_MS));
		interval_us[i] = ret->sample.clock_us - last_us;
		last_us = ret->sample.clock_us;
	}
	qsort(interval_us, n, sizeof(interval_us[0]), compare);
	return interval_us[n / 2];
}

static void hello_comes_first_then_a_sample_at_once_then_one_a_second(void)
{
	struct wire_message msg;
	uint64_t hello_us, usual_us;
	struct bench b;

	setup(&b);
	hello_us = b.peer.clock_us;
	CU_ASSERT_FATAL(peer_next(&b.peer, &msg, SOON_MS));
	CU_ASSERT_EQUAL_FATAL(msg.type, WIRE_SAMPLE);
	CU_ASSERT_EQUAL(msg.seq, 1);
	CU_ASSERT_EQUAL(msg.sample.stats.value[STAT_FREE], UINT64_C(102400) << 10);
	CU_ASSERT_EQUAL(msg.sample.stats.value[STAT_SWAP_ENTRIES], UINT64_C(9216) << 10);
	CU_ASSERT_FALSE(stat_has(&msg.sample.stats, STAT_STEAL_EXEC));
	CU_ASSERT_EQUAL(msg.sample.approximate,
			UINT64_C(1) << STAT_LAZYFREE | UINT64_C(1) << STAT_EXEC_MAPPED);
	CU_ASSERT(msg.sample.clock_us - hello_us < AT_ONCE_US);
	usual_us = usual_interval_us(&b, 3, &msg);
	CU_ASSERT(usual_us > 900000 && usual_us < 1500000);
	CU_ASSERT_EQUAL(msg.sample.cause, WIRE_CAUSE_TIMER);
	teardown(&b);
}

static void hello_is_repeated_with_the_same_nonce(void)
{
	struct wire_message msg;
	struct bench b;
	uint64_t nonce;

	setup(&b);
	nonce = b.peer.nonce;
	CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_HELLO, &msg, 6000));
	CU_ASSERT_EQUAL(msg.hello.nonce, nonce);
	teardown(&b);
}

static void rate_is_taken_at_once(void)
{
	uint64_t asked_us, usual_us;
	struct wire_message msg;
	struct bench b;

	setup(&b);
	CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_SAMPLE, &msg, SOON_MS));
	asked_us = peer_now_us();
	msg = peer_command(&b.peer, WIRE_RATE);
	msg.rate.interval_ms = 100;
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_SAMPLE, &msg, SOON_MS));
	CU_ASSERT(msg.sample.clock_us - asked_us < AT_ONCE_US);
	CU_ASSERT_EQUAL(msg.sample.interval_ms, 100);
	usual_us = usual_interval_us(&b, 9, &msg);
	CU_ASSERT(usual_us > 80000 && usual_us < 140000);
	CU_ASSERT_EQUAL(msg.sample.interval_ms, 100);
	teardown(&b);
}

static void sample_that_is_asked_for_comes_at_once(void)
{
	struct wire_message msg;
	struct bench b;
	uint64_t asked_us;

	setup(&b);
	CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_SAMPLE, &msg, SOON_MS));
	msg = peer_command(&b.peer, WIRE_SAMPLE_NOW);
	asked_us = peer_now_us();
	CU_ASSERT(peer_send(&b.peer, &msg));
	/* One that was due may come between. */
	do {
		CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_SAMPLE, &msg, SOON_MS));
	} while (msg.sample.cause == WIRE_CAUSE_TIMER && peer_now_us() - asked_us < 5000000);
	CU_ASSERT_EQUAL(msg.sample.cause, WIRE_CAUSE_ASKED);
	CU_ASSERT(msg.sample.clock_us - asked_us < AT_ONCE_US);
	teardown(&b);
}

static void command_with_a_stale_nonce_is_refused(void)
{
	struct wire_message msg;
	struct bench b;

	setup(&b);
	msg = profile(&b, 10);
	msg.command.nonce ^= 1;
	CU_ASSERT_EQUAL(status_of(&b, &msg), ESTALE);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "60\n");
	teardown(&b);
}

static void command_whose_lifetime_is_over_is_not_done(void)
{
	struct wire_message msg;
	struct bench b;

	setup(&b);
	msg = profile(&b, 10);
	msg.command.lifetime_ms = 50;
	msg.command.sent_us = b.peer.clock_us - 60000;
	CU_ASSERT_EQUAL(status_of(&b, &msg), ETIME);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "60\n");
	/* a host that guesses our clock ahead gives no longer life than from the arrival on */
	msg = profile(&b, 11);
	msg.command.sent_us = UINT64_MAX;
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "11\n");
	teardown(&b);
}

/* The agent is stopped, the host sends, gives up and comes again: nothing of it is done. */
static void command_that_waited_for_a_sleeping_agent_is_not_done(void)
{
	struct wire_message msg;
	struct bench b;

	setup(&b);
	CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_SAMPLE, &msg, SOON_MS));
	msg = profile(&b, 10);
	msg.command.lifetime_ms = 200;
	msg.command.sent_us = b.peer.clock_us;
	CU_ASSERT_EQUAL(kill(b.pid, SIGSTOP), 0);
	CU_ASSERT(peer_send(&b.peer, &msg));
	(void)usleep(400000);
	CU_ASSERT_EQUAL(kill(b.pid, SIGCONT), 0);
	CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_RESULT, &msg, SOON_MS));
	CU_ASSERT_EQUAL(msg.result.status, ETIME);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "60\n");
	teardown(&b);
}

static void command_that_comes_byte_by_byte_is_done(void)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_message msg;
	struct bench b;
	ssize_t n;

	setup(&b);
	msg = profile(&b, 12);
	n = wire_encode(&msg, frame, sizeof(frame));
	for (ssize_t i = 0; i < n; i++) {
		CU_ASSERT_EQUAL(write(b.peer.fd, frame + i, 1), 1);
		(void)usleep(2000);
	}
	CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_RESULT, &msg, SOON_MS));
	CU_ASSERT_EQUAL(msg.result.status, 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "12\n");
	teardown(&b);
}

static void malformed_frames_are_passed_over(void)
{
	uint8_t junk[3 * WIRE_FRAME_MAX];
	struct wire_message msg;
	struct bench b;
	ssize_t n;

	setup(&b);
	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = (uint8_t)(i * 2654435761U >> 13);
	msg = profile(&b, 77);
	n = wire_encode(&msg, junk, sizeof(junk));
	junk[n - 1] ^= 1; /* its hash */
	CU_ASSERT_EQUAL(write(b.peer.fd, junk, sizeof(junk)), (ssize_t)sizeof(junk));
	msg = profile(&b, 13);
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "13\n");
	teardown(&b);
}

static void echo_of_its_own_frames_is_no_command(void)
{
	struct wire_message msg;
	struct bench b;

	setup(&b);
	CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_SAMPLE, &msg, SOON_MS));
	CU_ASSERT(peer_send(&b.peer, &msg));
	CU_ASSERT_FALSE(peer_wait(&b.peer, WIRE_RESULT, &msg, 300));
	teardown(&b);
}

static void empty_profile_gives_the_guest_its_own_values(void)
{
	struct wire_message msg;
	struct bench b;

	setup(&b);
	msg = profile(&b, 10);
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "10\n");
	msg = peer_command(&b.peer, WIRE_PROFILE);
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "60\n");
	teardown(&b);
}

static bool becomes(struct bench *b, const char *path, const char *want, int timeout_ms)
{
	for (int i = 0; i < timeout_ms / 50; i++) {
		if (strcmp(fake_read(&b->root, path), want) == 0)
			return true;
		(void)usleep(50000);
	}
	return false;
}

static void lease_three_seconds(struct bench *b)
{
	struct wire_message msg = peer_command(&b->peer, WIRE_WELCOME);

	msg.welcome.lease_ms = 3000;
	CU_ASSERT(peer_send(&b->peer, &msg));
}

static void setup_leased(struct bench *b)
{
	struct wire_message msg;

	setup(b);
	lease_three_seconds(b);
	msg = profile(b, 10);
	CU_ASSERT_EQUAL(status_of(b, &msg), 0);
}

static void silent_hosts_lease_ends(void)
{
	struct wire_message msg;
	struct bench b;
	uint64_t nonce;

	setup_leased(&b);
	for (int i = 0; i < 5; i++) {
		(void)usleep(1000000);
		lease_three_seconds(&b);
		CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "10\n");
	}
	CU_ASSERT(becomes(&b, SWAPPINESS, "60\n", 8000));
	/* A host that is back by then must not believe that its profile still is in force. */
	nonce = b.peer.nonce;
	/* Hellos that nobody has read meanwhile stand before it. */
	for (uint64_t end = peer_now_us() + 6000000; b.peer.nonce == nonce && peer_now_us() < end;)
		(void)peer_wait(&b.peer, WIRE_HELLO, &msg, 1000);
	CU_ASSERT_NOT_EQUAL(b.peer.nonce, nonce);
	CU_ASSERT_EQUAL(msg.hello.now.value[KNOB_SWAPPINESS], 60);
	msg = profile(&b, 10);
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "10\n");
	teardown(&b);
}

/* ... but where nothing could be restored nothing has changed, and it is tried again. */
static void lease_that_cannot_be_ended_begins_no_session(void)
{
	struct wire_message msg;
	struct bench b;
	uint64_t nonce;

	setup_leased(&b);
	nonce = b.peer.nonce;
	fake_break(&b.root, SWAPPINESS);
	for (uint64_t end = peer_now_us() + 5000000; peer_now_us() < end;)
		(void)peer_wait(&b.peer, WIRE_HELLO, &msg, 200);
	CU_ASSERT_EQUAL(b.peer.nonce, nonce);
	fake_mend(&b.root, SWAPPINESS);
	CU_ASSERT(becomes(&b, SWAPPINESS, "60\n", 8000));
	teardown(&b);
}

static void host_that_has_gone_loses_its_lease_too(void)
{
	struct bench b;

	setup_leased(&b);
	peer_close(&b.peer);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "10\n");
	CU_ASSERT(becomes(&b, SWAPPINESS, "60\n", 8000));
	teardown(&b);
}

static void agent_that_is_stopped_restores_and_says_bye(void)
{
	struct wire_message msg;
	struct bench b;
	int status;

	setup(&b);
	msg = profile(&b, 10);
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	status = stop(&b, SIGTERM);
	CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "60\n");
	CU_ASSERT(peer_wait(&b.peer, WIRE_BYE, &msg, SOON_MS));
	CU_ASSERT_NOT_EQUAL(access(fake_path(&b.root, STATE), F_OK), 0);
	teardown(&b);
}

static void agent_that_was_killed_restores_when_it_is_back(void)
{
	struct wire_message msg;
	struct bench b;

	setup(&b);
	msg = profile(&b, 10);
	CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
	(void)stop(&b, SIGKILL);
	peer_hang_up(&b.peer);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "10\n");
	start(&b);
	meet(&b);
	(void)stop(&b, SIGTERM);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "60\n");
	teardown(&b);
}

static void owner_forbids(void)
{
	struct wire_message msg;
	struct bench b;

	prepare(&b);
	fake_write(&b.root, "/agent.conf", "allow = sample\n");
	start(&b);
	CU_ASSERT_FATAL(peer_accept(&b.peer, SOON_MS));
	CU_ASSERT_FATAL(peer_wait(&b.peer, WIRE_HELLO, &msg, SOON_MS));
	CU_ASSERT_EQUAL(msg.hello.capabilities &
				(WIRE_CAP_SAMPLE | WIRE_CAP_PROFILE | WIRE_CAP_SHED),
			WIRE_CAP_SAMPLE);
	CU_ASSERT_EQUAL(msg.hello.knobs_writable, 0);
	msg = profile(&b, 10);
	CU_ASSERT_EQUAL(status_of(&b, &msg), EPERM);
	msg = peer_command(&b.peer, WIRE_SHED);
	msg.shed = (struct wire_shed){ 1 << 20, 0, WIRE_SHED_FILE };
	CU_ASSERT_EQUAL(status_of(&b, &msg), EPERM);
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "60\n");
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, RECLAIM), "");
	teardown(&b);
}

static void owner_who_forbids_after_a_crash_has_the_own_values_back(void)
{
	static const char *const forbids[] = { "allow = sample\n", "keep = swappiness\n" };

	for (size_t i = 0; i < sizeof(forbids) / sizeof(forbids[0]); i++) {
		struct wire_message msg;
		struct bench b;

		setup(&b);
		msg = profile(&b, 10);
		CU_ASSERT_EQUAL(status_of(&b, &msg), 0);
		(void)stop(&b, SIGKILL);
		peer_hang_up(&b.peer);
		fake_write(&b.root, "/agent.conf", forbids[i]);
		start(&b);
		meet(&b);
		CU_ASSERT_STRING_EQUAL(fake_read(&b.root, SWAPPINESS), "60\n");
		CU_ASSERT_NOT_EQUAL(access(fake_path(&b.root, STATE), F_OK), 0);
		teardown(&b);
	}
}

static void owner_who_permits_nothing_is_not_sampled(void)
{
	struct wire_message msg;
	struct bench b;

	prepare(&b);
	fake_write(&b.root, "/agent.conf", "allow =\n");
	start(&b);
	meet(&b);
	msg = peer_command(&b.peer, WIRE_SAMPLE_NOW);
	CU_ASSERT_EQUAL(status_of(&b, &msg), EPERM);
	CU_ASSERT_FALSE(peer_wait(&b.peer, WIRE_SAMPLE, &msg, 1500));
	teardown(&b);
}

static void shed_is_bounded_answered_and_does_not_stop_the_samples(void)
{
	struct wire_message msg;
	struct bench b;

	setup(&b);
	msg = peer_command(&b.peer, WIRE_SHED);
	msg.shed = (struct wire_shed){ UINT64_C(1) << 40, 200, WIRE_SHED_FILE };
	CU_ASSERT(peer_ask(&b.peer, &msg, &msg, SOON_MS));
	CU_ASSERT_EQUAL(msg.result.status, 0);
	CU_ASSERT_EQUAL(msg.result.asked, UINT64_C(1) << 40);
	CU_ASSERT_EQUAL(msg.result.done, 0); /* nothing reclaims in a made-up guest */
	CU_ASSERT_STRING_EQUAL(fake_read(&b.root, RECLAIM), "4194304 swappiness=0");
	CU_ASSERT(peer_wait(&b.peer, WIRE_SAMPLE, &msg, SOON_MS));
	teardown(&b);
}

static const struct unit_test tests[] = {
	TEST(hello_comes_first_then_a_sample_at_once_then_one_a_second),
	TEST(hello_is_repeated_with_the_same_nonce),
	TEST(rate_is_taken_at_once),
	TEST(sample_that_is_asked_for_comes_at_once),
	TEST(command_with_a_stale_nonce_is_refused),
	TEST(command_whose_lifetime_is_over_is_not_done),
	TEST(command_that_waited_for_a_sleeping_agent_is_not_done),
	TEST(command_that_comes_byte_by_byte_is_done),
	TEST(malformed_frames_are_passed_over),
	TEST(echo_of_its_own_frames_is_no_command),
	TEST(empty_profile_gives_the_guest_its_own_values),
	TEST(silent_hosts_lease_ends),
	TEST(lease_that_cannot_be_ended_begins_no_session),
	TEST(host_that_has_gone_loses_its_lease_too),
	TEST(agent_that_is_stopped_restores_and_says_bye),
	TEST(agent_that_was_killed_restores_when_it_is_back),
	TEST(owner_forbids),
	TEST(owner_who_forbids_after_a_crash_has_the_own_values_back),
	TEST(owner_who_permits_nothing_is_not_sampled),
	TEST(shed_is_bounded_answered_and_does_not_stop_the_samples),
};

HARNESS_MAIN("agent", tests)
