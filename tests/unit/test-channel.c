// SPDX-License-Identifier: GPL-2.0-or-later
/* A listening socket stands in for QEMU, and the test itself is the guest: mostly a hostile one. */
#include "tests/unit/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/guest/internal.h"
#include "daemon/util/time.h"

#define NONCE 77

static const struct channel_limits limits = {
	.hello_us = 60000,
	.silence_us = 80000,
	.retry_min_us = 10000,
	.retry_max_us = 20000,
	.broken_min_us = 150000,
	.broken_max_us = 300000,
	.forgive_us = 10 * USEC_PER_SEC,
	.welcome_us = USEC_PER_SEC,
	.lease_us = 3 * USEC_PER_SEC,
	.pressure_us = 50000,
	.session_us = 5000,
	.calm_us = 30000,
	.bytes_per_s = 64 * 1024,
	.strikes = 4,
};

/* What the channel has told. */
struct told {
	unsigned int n_links, n_hellos, n_sessions, n_samples, n_pressures, n_results;
	enum agent_link link;
	char reason[128];
	struct wire_hello hello;
	struct wire_sample sample;
	struct wire_result result;
	int status;
};

struct fixture {
	sd_event *event;
	struct channel *channel;
	struct told told;
	char path[64];
	int listener, guest; /* guest: the accepted connection */
	uint32_t seq;
};

static void on_link(struct channel *channel, enum agent_link link, const char *reason,
		    void *userdata)
{
	struct told *told = userdata;

	(void)channel;
	told->n_links++;
	told->link = link;
	(void)snprintf(told->reason, sizeof(told->reason), "%s", reason);
}

static void on_hello(struct channel *channel, const struct wire_hello *hello, bool new_session,
		     void *userdata)
{
	struct told *told = userdata;

	(void)channel;
	told->n_hellos++;
	told->n_sessions += new_session;
	told->hello = *hello;
}

static void on_sample(struct channel *channel, const struct wire_sample *sample, uint64_t at_us,
		      void *userdata)
{
	struct told *told = userdata;

	(void)channel;
	CU_ASSERT(at_us <= now_us());
	told->n_samples++;
	told->sample = *sample;
}

static void on_pressure(struct channel *channel, const struct wire_pressure *pressure,
			uint64_t at_us, void *userdata)
{
	struct told *told = userdata;

	(void)channel;
	(void)pressure;
	(void)at_us;
	told->n_pressures++;
}

static void on_result(struct channel *channel, const struct wire_result *result, int status,
		      uint64_t at_us, void *userdata)
{
	struct told *told = userdata;

	(void)channel;
	(void)at_us;
	told->n_results++;
	told->result = *result;
	told->status = status;
}

static const struct channel_callbacks callbacks = { on_link, on_hello, on_sample, on_pressure,
						    on_result };

/* --- The stand-in for QEMU and guest ---------------------------------------------------------- */

static void run_for(struct fixture *f, uint64_t us)
{
	uint64_t end = now_us() + us, now;

	while ((now = now_us()) < end)
		if (sd_event_run(f->event, end - now) < 0)
			CU_FAIL_FATAL("the loop failed");
}

static void start_listening(struct fixture *f)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", f->path);
	f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CU_ASSERT_FATAL(bind(f->listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	CU_ASSERT_FATAL(listen(f->listener, 1) == 0);
}

static void accept_host(struct fixture *f)
{
	for (int i = 0; i < 200; i++) {
		run_for(f, 2000);
		f->guest = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (f->guest >= 0)
			return;
	}
	CU_FAIL_FATAL("the channel doesn't connect");
}

static void setup(struct fixture *f)
{
	*f = (struct fixture){ .listener = -1, .guest = -1 };
	(void)snprintf(f->path, sizeof(f->path), "/tmp/ballast-channel-%d.sock", (int)getpid());
	(void)unlink(f->path);
	CU_ASSERT_FATAL(sd_event_new(&f->event) >= 0);
	CU_ASSERT_FATAL(channel_new_limited(&f->channel, f->event, f->path, &callbacks, &f->told,
					    &limits) == 0);
}

static void setup_connected(struct fixture *f)
{
	setup(f);
	start_listening(f);
	accept_host(f);
}

static void teardown(struct fixture *f)
{
	f->channel = channel_free(f->channel);
	(void)sd_event_unref(f->event);
	if (f->guest >= 0)
		(void)close(f->guest);
	if (f->listener >= 0)
		(void)close(f->listener);
	(void)unlink(f->path);
}

static void say_bytes(struct fixture *f, const void *data, size_t size)
{
	CU_ASSERT_EQUAL(send(f->guest, data, size, MSG_NOSIGNAL), (ssize_t)size);
	run_for(f, 2000);
}

static size_t encode(struct fixture *f, struct wire_message *message, uint8_t *frame)
{
	ssize_t n;

	message->seq = f->seq++;
	n = wire_encode(message, frame, WIRE_FRAME_MAX);
	CU_ASSERT_FATAL(n > 0);
	return (size_t)n;
}

static void say(struct fixture *f, struct wire_message *message)
{
	uint8_t frame[WIRE_FRAME_MAX];

	say_bytes(f, frame, encode(f, message, frame));
}

static struct wire_message hello_message(uint64_t nonce)
{
	struct wire_message message = { .type = WIRE_HELLO };

	message.hello = (struct wire_hello){
		.protocol = WIRE_VERSION,
		.nonce = nonce,
		.page_size = 4096,
		.boot_id_hi = 1,
		.capabilities = WIRE_CAP_SAMPLE | WIRE_CAP_SHED,
		.interval_ms = 100,
		.clock_us = 5 * USEC_PER_SEC,
		.release = "6.12.0",
		.agent = "0.1",
	};
	return message;
}

static void say_hello(struct fixture *f, uint64_t nonce)
{
	struct wire_message message = hello_message(nonce);

	say(f, &message);
}

static struct wire_message sample_message(uint64_t free_bytes)
{
	struct wire_message message = { .type = WIRE_SAMPLE };

	message.sample.interval_ms = 100;
	message.sample.clock_us = 6 * USEC_PER_SEC;
	stat_put(&message.sample.stats, STAT_FREE, free_bytes);
	return message;
}

static void say_sample(struct fixture *f, uint64_t free_bytes)
{
	struct wire_message message = sample_message(free_bytes);

	say(f, &message);
}

/* The next frame of the host, or false. */
static bool hear(struct fixture *f, struct wire_message *ret)
{
	uint8_t header[WIRE_FRAME_MAX];
	ssize_t n = recv(f->guest, header, WIRE_HEADER_SIZE, MSG_PEEK);
	uint32_t length;

	if (n < WIRE_HEADER_SIZE)
		return false;
	memcpy(&length, header + 8, sizeof(length));
	n = recv(f->guest, header, WIRE_HEADER_SIZE + length, 0);
	CU_ASSERT_EQUAL_FATAL(wire_decode(header, (size_t)n, ret), WIRE_OK);
	return true;
}

static bool hear_type(struct fixture *f, enum wire_type type, struct wire_message *ret)
{
	while (hear(f, ret))
		if (ret->type == type)
			return true;
	return false;
}

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
	TEST(garbage_cuts_the_guest_off_for_a_while),
	TEST(noise_without_a_hello_is_shown_as_broken),
	TEST(the_hosts_own_frames_are_a_breach),
	TEST(an_answer_to_what_was_never_asked_is_a_breach),
	TEST(a_storm_of_new_sessions_is_a_breach),
	TEST(new_sessions_one_after_the_other_are_a_breach_too),
	TEST(new_sessions_now_and_then_are_none),
	TEST(a_flood_is_read_no_faster_than_its_budget),
	TEST(the_end_of_a_paused_link_is_noticed),
	TEST(a_command_has_nonce_sequence_lifetime_and_the_guests_clock),
	TEST(a_result_carries_the_guests_errno),
	TEST(a_guest_that_does_not_read_never_blocks_the_host),
	TEST(a_command_that_waited_too_long_is_not_sent),
	TEST(a_value_that_the_protocol_does_not_permit_is_not_sent),
	TEST(capabilities_are_those_of_the_hello),
	TEST(clients_of_a_socket_are_told_apart),
};

HARNESS_MAIN("channel", tests)
