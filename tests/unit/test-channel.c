// SPDX-License-Identifier: GPL-2.0-or-later
/* The life of a link, what comes in and what goes out. */
#include <errno.h>

#include "tests/unit/channel-fixture.h"

/* --- Life of a link --------------------------------------------------------------------------- */

static void nothing_is_sent_before_the_hello(void)
{
	struct wire_message message;
	struct wire_shed shed = { .bytes = 1 };
	struct fixture f;

	setup_connected(&f);
	run_for(&f, 20000);
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_CONNECTING);
	CU_ASSERT_EQUAL(channel_send_shed(f.channel, &shed, USEC_PER_SEC, NULL), -ENOTCONN);
	CU_ASSERT_FALSE(hear(&f, &message));
	teardown(&f);
}

static void a_hello_brings_the_link_up_and_a_welcome_back(void)
{
	struct wire_message message;
	struct fixture f;

	setup_connected(&f);
	say_hello(&f, NONCE);
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_UP);
	CU_ASSERT_EQUAL(f.told.n_sessions, 1);
	CU_ASSERT_EQUAL(f.told.hello.boot_id_hi, 1);
	CU_ASSERT_FATAL(hear(&f, &message));
	CU_ASSERT_EQUAL(message.type, WIRE_WELCOME);
	CU_ASSERT_EQUAL(message.command.nonce, NONCE);
	CU_ASSERT_EQUAL(message.welcome.lease_ms, 3000);
	teardown(&f);
}

static void a_guest_that_is_not_acted_on_gets_no_lease(void)
{
	struct wire_message message;
	struct fixture f;

	setup_connected(&f);
	channel_lease(f.channel, false);
	say_hello(&f, NONCE);
	run_for(&f, 20000);
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_UP);
	CU_ASSERT_FALSE(hear(&f, &message));
	/* It is up all the same, and takes what is sent. */
	say_sample(&f, 1);
	CU_ASSERT_EQUAL(f.told.n_samples, 1);
	CU_ASSERT_EQUAL(channel_send_sample_now(f.channel, USEC_PER_SEC, NULL), 0);
	CU_ASSERT_TRUE(hear_type(&f, WIRE_SAMPLE_NOW, &message));
	/* From the moment on that it is acted on it has one, and no more after it. */
	channel_lease(f.channel, true);
	run_for(&f, 2000);
	CU_ASSERT_TRUE(hear_type(&f, WIRE_WELCOME, &message));
	channel_lease(f.channel, false);
	say_hello(&f, NONCE);
	CU_ASSERT_FALSE(hear(&f, &message));
	teardown(&f);
}

static void a_lease_is_renewed_as_long_as_it_is_granted(void)
{
	static struct channel_limits often;
	struct wire_message message;
	struct fixture f;

	often = limits;
	often.welcome_us = 20000;
	setup_connected(&f);
	f.channel->limits = &often;
	say_hello(&f, NONCE);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_TRUE(hear_type(&f, WIRE_WELCOME, &message));
		run_for(&f, 40000);
	}
	channel_lease(f.channel, false);
	while (hear(&f, &message))
		;
	run_for(&f, 60000);
	CU_ASSERT_FALSE(hear(&f, &message));
	teardown(&f);
}

static void no_hello_is_shown_as_silent_and_the_connection_stays(void)
{
	struct fixture f;

	setup_connected(&f);
	run_for(&f, 90000);
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_SILENT);
	say_hello(&f, NONCE);
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_UP);
	teardown(&f);
}

static void a_channel_that_another_holds_is_busy(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct fixture f;
	int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setup(&f);
	start_listening(&f);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", f.path);
	CU_ASSERT_FATAL(connect(other, (struct sockaddr *)&address, sizeof(address)) == 0);
	f.guest = accept4(f.listener, NULL, NULL, SOCK_CLOEXEC);
	run_for(&f, 100000);
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_BUSY);
	/* When it is gone, it is our turn, without another attempt. */
	(void)close(other);
	(void)close(f.guest);
	accept_host(&f);
	say_hello(&f, NONCE);
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_UP);
	teardown(&f);
}

static void a_missing_socket_is_tried_until_it_is_there(void)
{
	struct fixture f;

	setup(&f);
	run_for(&f, 30000);
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_CONNECTING);
	CU_ASSERT_STRING_EQUAL(f.told.reason, strerror(ENOENT));
	start_listening(&f);
	accept_host(&f);
	teardown(&f);
}

static void a_lost_link_comes_back(void)
{
	struct fixture f;

	setup_connected(&f);
	say_hello(&f, NONCE);
	(void)close(f.guest);
	run_for(&f, 5000);
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_CONNECTING);
	accept_host(&f);
	say_hello(&f, NONCE + 1);
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_UP);
	CU_ASSERT_EQUAL(f.told.n_sessions, 2);
	teardown(&f);
}

static void an_agent_that_falls_silent_is_shown_and_may_speak_again(void)
{
	struct wire_shed shed = { .bytes = 1 };
	struct fixture f;

	setup_connected(&f);
	say_hello(&f, NONCE);
	run_for(&f, 600000); /* five sample intervals of 100 ms */
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_SILENT);
	CU_ASSERT_EQUAL(channel_send_shed(f.channel, &shed, USEC_PER_SEC, NULL), -ENOTCONN);
	say_sample(&f, 1);
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_UP);
	CU_ASSERT_EQUAL(f.told.n_sessions, 1);
	teardown(&f);
}

static void a_goodbye_ends_the_session(void)
{
	struct wire_message bye = { .type = WIRE_BYE };
	struct fixture f;

	setup_connected(&f);
	say_hello(&f, NONCE);
	say(&f, &bye);
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_SILENT);
	say_sample(&f, 1);
	CU_ASSERT_EQUAL(f.told.n_samples, 0);
	teardown(&f);
}

/* --- What comes in ---------------------------------------------------------------------------- */

static void a_sample_arrives_as_it_was_said(void)
{
	struct fixture f;

	setup_connected(&f);
	say_hello(&f, NONCE);
	say_sample(&f, UINT64_MAX);
	CU_ASSERT_EQUAL(f.told.n_samples, 1);
	CU_ASSERT_EQUAL(f.told.sample.stats.value[STAT_FREE], UINT64_MAX);
	CU_ASSERT_FALSE(stat_has(&f.told.sample.stats, STAT_TOTAL));
	teardown(&f);
}

static void a_sample_before_the_hello_is_dropped(void)
{
	struct fixture f;

	setup_connected(&f);
	say_sample(&f, 1);
	CU_ASSERT_EQUAL(f.told.n_samples, 0);
	CU_ASSERT_EQUAL(channel_counters(f.channel)->dropped, 1);
	teardown(&f);
}

static void frames_in_pieces_are_put_together(void)
{
	struct wire_message message = hello_message(NONCE);
	uint8_t frame[WIRE_FRAME_MAX];
	struct fixture f;
	size_t size;

	setup_connected(&f);
	size = encode(&f, &message, frame);
	for (size_t i = 0; i < size; i++)
		CU_ASSERT_EQUAL(send(f.guest, frame + i, 1, 0), 1);
	run_for(&f, 20000);
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_UP);
	teardown(&f);
}

static void half_a_frame_of_a_dead_agent_does_not_hide_the_next_hello(void)
{
	struct wire_message message = sample_message(1);
	uint8_t frame[WIRE_FRAME_MAX];
	struct fixture f;
	size_t size;

	setup_connected(&f);
	say_hello(&f, NONCE);
	size = encode(&f, &message, frame);
	say_bytes(&f, frame, size / 2);
	run_for(&f, 10000);
	say_hello(&f, NONCE + 1);
	say_sample(&f, 1);
	CU_ASSERT_EQUAL(channel_link(f.channel), AGENT_UP);
	CU_ASSERT_EQUAL(f.told.n_sessions, 2);
	CU_ASSERT_EQUAL(f.told.n_samples, 1);
	teardown(&f);
}

static void a_repeated_hello_is_no_new_session(void)
{
	struct fixture f;

	setup_connected(&f);
	say_hello(&f, NONCE);
	say_hello(&f, NONCE);
	CU_ASSERT_EQUAL(f.told.n_hellos, 2);
	CU_ASSERT_EQUAL(f.told.n_sessions, 1);
	teardown(&f);
}

static void a_reboot_is_a_new_session_with_its_own_nonce(void)
{
	struct wire_message message;
	struct fixture f;

	setup_connected(&f);
	say_hello(&f, NONCE);
	run_for(&f, 10000);
	say_hello(&f, NONCE + 1);
	CU_ASSERT_EQUAL(f.told.n_sessions, 2);
	CU_ASSERT_EQUAL(channel_send_sample_now(f.channel, USEC_PER_SEC, NULL), 0);
	CU_ASSERT_FATAL(hear_type(&f, WIRE_SAMPLE_NOW, &message));
	CU_ASSERT_EQUAL(message.command.nonce, NONCE + 1);
	teardown(&f);
}

static void pressure_frames_do_not_come_faster_than_the_limit(void)
{
	struct wire_message message = { .type = WIRE_PRESSURE };
	struct fixture f;

	setup_connected(&f);
	say_hello(&f, NONCE);
	for (int i = 0; i < 10; i++)
		say(&f, &message);
	CU_ASSERT_TRUE(f.told.n_pressures >= 1 && f.told.n_pressures <= 2);
	run_for(&f, 60000);
	say(&f, &message);
	CU_ASSERT_TRUE(f.told.n_pressures >= 2 && f.told.n_pressures <= 3);
	teardown(&f);
}

/* --- What goes out ---------------------------------------------------------------------------- */

static void a_command_has_nonce_sequence_lifetime_and_the_guests_clock(void)
{
	struct wire_shed shed = { .bytes = 4096, .flags = WIRE_SHED_FILE };
	struct wire_message message;
	struct fixture f;
	uint32_t seq;

	setup_connected(&f);
	say_hello(&f, NONCE);
	CU_ASSERT_EQUAL(channel_send_shed(f.channel, &shed, 2 * USEC_PER_SEC, &seq), 0);
	CU_ASSERT_FATAL(hear_type(&f, WIRE_SHED, &message));
	CU_ASSERT_EQUAL(message.seq, seq);
	CU_ASSERT_EQUAL(message.command.nonce, NONCE);
	CU_ASSERT_EQUAL(message.command.lifetime_ms, 2000);
	CU_ASSERT_TRUE(message.command.sent_us >= 5 * USEC_PER_SEC);
	CU_ASSERT_TRUE(message.command.sent_us < 6 * USEC_PER_SEC);
	CU_ASSERT_EQUAL(message.shed.bytes, 4096);
	teardown(&f);
}

static void a_result_carries_the_guests_errno(void)
{
	struct wire_message message = { .type = WIRE_RESULT };
	struct fixture f;
	uint32_t seq;

	setup_connected(&f);
	say_hello(&f, NONCE);
	CU_ASSERT_EQUAL(channel_send_rate(f.channel, 1000, USEC_PER_SEC, &seq), 0);
	message.result.command_seq = seq;
	message.result.command_type = WIRE_RATE;
	message.result.status = EPERM;
	say(&f, &message);
	CU_ASSERT_EQUAL(f.told.n_results, 1);
	CU_ASSERT_EQUAL(f.told.result.command_seq, seq);
	CU_ASSERT_EQUAL(f.told.status, -EPERM);
	teardown(&f);
}

static void a_guest_that_does_not_read_never_blocks_the_host(void)
{
	unsigned int sent = 0;
	uint64_t begin;
	struct fixture f;
	int r = 0;

	setup_connected(&f);
	say_hello(&f, NONCE);
	begin = now_us();
	while (sent < 10000 && r == 0) {
		r = channel_send_sample_now(f.channel, USEC_PER_SEC, NULL);
		sent += r == 0;
	}
	CU_ASSERT_EQUAL(r, -EAGAIN);
	CU_ASSERT_TRUE(sent < 100);
	CU_ASSERT_TRUE(now_us() - begin < USEC_PER_SEC);
	teardown(&f);
}

static void a_command_that_waited_too_long_is_not_sent(void)
{
	struct wire_shed shed = { .bytes = 4096 };
	struct wire_message message;
	struct fixture f;

	setup_connected(&f);
	say_hello(&f, NONCE);
	while (channel_send_sample_now(f.channel, 30000, NULL) == 0)
		;
	run_for(&f, 50000);
	while (hear(&f, &message))
		CU_ASSERT_NOT_EQUAL(message.type, WIRE_SHED);
	run_for(&f, 20000);
	CU_ASSERT_TRUE(channel_counters(f.channel)->late > 0);
	CU_ASSERT_EQUAL(channel_send_shed(f.channel, &shed, USEC_PER_SEC, NULL), 0);
	CU_ASSERT_TRUE(hear_type(&f, WIRE_SHED, &message));
	teardown(&f);
}

static void a_value_that_the_protocol_does_not_permit_is_not_sent(void)
{
	struct wire_shed shed = { .bytes = 1, .swappiness = 201 };
	struct fixture f;

	setup_connected(&f);
	say_hello(&f, NONCE);
	CU_ASSERT_EQUAL(channel_send_shed(f.channel, &shed, USEC_PER_SEC, NULL), -EINVAL);
	CU_ASSERT_EQUAL(channel_send_rate(f.channel, 1000, 0, NULL), -EINVAL);
	teardown(&f);
}

static void capabilities_are_those_of_the_hello(void)
{
	struct wire_hello hello = { .capabilities = WIRE_CAP_SHED | WIRE_CAP_RECLAIM | 1 << 30,
				    .knobs_writable = wire_knob_bit(KNOB_LAZYFREE_FIRST) };

	CU_ASSERT_EQUAL(channel_capabilities(&hello),
			AGENT_MAY_SHED | AGENT_HAS_RECLAIM | AGENT_HAS_LAZYFREE_FIRST);
}

static void settings_that_can_be_set_are_those_of_the_hello(void)
{
	struct wire_hello hello = { .knobs_writable = wire_knob_bit(KNOB_EXEC_PROTECT) |
						      wire_knob_bit(KNOB_PCP_HIGH_FRACTION) };

	CU_ASSERT_EQUAL(channel_settable(&hello),
			1U << KNOB_EXEC_PROTECT | 1U << KNOB_PCP_HIGH_FRACTION);
	hello.knobs_writable = UINT64_MAX; /* of a newer agent, or a liar */
	CU_ASSERT_EQUAL(channel_settable(&hello), (1U << KNOB_MAX_ID) - 1);
}

/* --- Who holds a socket ----------------------------------------------------------------------- */

static void clients_of_a_socket_are_told_apart(void)
{
	static const char head[] = "Num       RefCount Protocol Flags    Type St Inode Path\n";
	char text[1024];

	(void)snprintf(text, sizeof(text),
		       "%s0: 00000002 00000000 00010000 0001 01 100 /a.sock\n"
		       "0: 00000003 00000000 00000000 0001 03 101 /a.sock\n",
		       head);
	CU_ASSERT_EQUAL(socket_clients_parse(text, "/a.sock"), SOCKET_OURS);
	CU_ASSERT_EQUAL(socket_clients_parse(text, "/a.soc"), SOCKET_UNKNOWN);
	CU_ASSERT_EQUAL(socket_clients_parse(text, "/b.sock"), SOCKET_UNKNOWN);
	CU_ASSERT_EQUAL(socket_clients_parse("", "/a.sock"), SOCKET_UNKNOWN);
	(void)strcat(text, "0: 00000003 00000000 00000000 0001 02     0 /a.sock\n");
	CU_ASSERT_EQUAL(socket_clients_parse(text, "/a.sock"), SOCKET_OTHERS);
}

static const struct unit_test tests[] = {
	TEST(nothing_is_sent_before_the_hello),
	TEST(a_hello_brings_the_link_up_and_a_welcome_back),
	TEST(a_guest_that_is_not_acted_on_gets_no_lease),
	TEST(a_lease_is_renewed_as_long_as_it_is_granted),
	TEST(no_hello_is_shown_as_silent_and_the_connection_stays),
	TEST(a_channel_that_another_holds_is_busy),
	TEST(a_missing_socket_is_tried_until_it_is_there),
	TEST(a_lost_link_comes_back),
	TEST(an_agent_that_falls_silent_is_shown_and_may_speak_again),
	TEST(a_goodbye_ends_the_session),
	TEST(a_sample_arrives_as_it_was_said),
	TEST(a_sample_before_the_hello_is_dropped),
	TEST(frames_in_pieces_are_put_together),
	TEST(half_a_frame_of_a_dead_agent_does_not_hide_the_next_hello),
	TEST(a_repeated_hello_is_no_new_session),
	TEST(a_reboot_is_a_new_session_with_its_own_nonce),
	TEST(pressure_frames_do_not_come_faster_than_the_limit),
	TEST(a_command_has_nonce_sequence_lifetime_and_the_guests_clock),
	TEST(a_result_carries_the_guests_errno),
	TEST(a_guest_that_does_not_read_never_blocks_the_host),
	TEST(a_command_that_waited_too_long_is_not_sent),
	TEST(a_value_that_the_protocol_does_not_permit_is_not_sent),
	TEST(capabilities_are_those_of_the_hello),
	TEST(settings_that_can_be_set_are_those_of_the_hello),
	TEST(clients_of_a_socket_are_told_apart),
};

HARNESS_MAIN("channel", tests)
