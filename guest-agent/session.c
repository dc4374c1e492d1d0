// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <sys/random.h>
#include <unistd.h>

#include "guest-agent/agent.h"
#include "guest-agent/util.h"

static bool send_message(struct agent *agent, struct wire_message *msg)
{
	uint8_t frame[WIRE_FRAME_MAX];
	ssize_t n;

	msg->seq = agent->session.seq;
	n = wire_encode(msg, frame, sizeof(frame));
	if (n < 0)
		return false;
	if (!port_send(&agent->port, frame, (size_t)n, msg->type == WIRE_SAMPLE))
		return false;
	agent->session.seq++;
	return true;
}

/* It has to be new, not secret: without entropy early in boot the clock does. */
static uint64_t new_nonce(uint64_t now_us)
{
	uint64_t nonce;

	if (getrandom(&nonce, sizeof(nonce), GRND_NONBLOCK) != sizeof(nonce))
		nonce = (now_us ^ (uint64_t)getpid() << 48) * UINT64_C(0x9e3779b97f4a7c15);
	return nonce ? nonce : 1;
}

void session_begin(struct agent *agent, uint64_t now_us)
{
	struct session *session = &agent->session;
	struct numbers numbers;

	sampler_read(&agent->sampler, &numbers);
	facts_collect(agent->root, agent->config.allow, &numbers, &agent->knobs, &agent->trigger,
		      &session->hello);
	session->nonce = new_nonce(now_us);
	session->seq = 0;
	session->next_hello_us = now_us;
	session->next_sample_us = now_us;
	wire_decoder_reset(&session->decoder);
}

void session_end(struct agent *agent)
{
	agent->shed.active = false;
}

void session_hello(struct agent *agent, uint64_t now_us)
{
	struct wire_message msg = { .type = WIRE_HELLO, .hello = agent->session.hello };

	knobs_values(&agent->knobs, &msg.hello.own, &msg.hello.now);
	msg.hello.nonce = agent->session.nonce;
	msg.hello.interval_ms = agent->interval_ms;
	msg.hello.clock_us = now_us;
	(void)send_message(agent, &msg);
	agent->session.next_hello_us = now_us + AGENT_HELLO_US;
}

void session_sample(struct agent *agent, enum wire_sample_cause cause)
{
	struct wire_message msg = { .type = WIRE_SAMPLE };

	if (!(agent->config.allow & WIRE_CAP_SAMPLE))
		return;
	sampler_sample(&agent->sampler, &msg.sample);
	msg.sample.cause = cause;
	msg.sample.interval_ms = agent->interval_ms;
	(void)send_message(agent, &msg);
}

void session_bye(struct agent *agent, enum wire_bye_cause cause)
{
	struct wire_message msg = { .type = WIRE_BYE, .bye = { cause, clock_us() } };

	(void)send_message(agent, &msg);
}

void session_pressure(struct agent *agent, uint64_t now_us)
{
	struct wire_message msg = { .type = WIRE_PRESSURE };
	struct wire_pressure *pressure = &msg.pressure;

	*pressure = (struct wire_pressure){ .clock_us = now_us,
					    .kind = WIRE_PSI_SOME,
					    .threshold_us = agent->trigger.threshold_us,
					    .window_us = agent->trigger.window_us };
	if (!sampler_psi(&agent->sampler, &pressure->some_us, &pressure->full_us))
		return;
	agent->shed.stop = true;
	if (!(agent->config.allow & WIRE_CAP_SAMPLE))
		return;
	(void)send_message(agent, &msg);
	session_sample(agent, WIRE_CAUSE_PRESSURE);
}

/* Commands */

struct outcome {
	int r; /* 0 or a negative errno */
	uint64_t asked, done, began_us;
};

static void send_result(struct agent *agent, uint32_t seq, enum wire_type type,
			const struct outcome *outcome)
{
	uint64_t now = clock_us();
	struct wire_message msg = { .type = WIRE_RESULT };

	msg.result = (struct wire_result){
		.command_seq = seq,
		.command_type = type,
		.status = (uint64_t)-outcome->r,
		.asked = outcome->asked,
		.done = outcome->done,
		.took_us = now - outcome->began_us,
		.clock_us = now,
	};
	(void)send_message(agent, &msg);
}

static uint64_t knob_bits(const struct profile *profile)
{
	uint64_t bits = 0;

	for (int i = 0; i < KNOB_MAX_ID; i++)
		if (knob_has(profile, i))
			bits |= wire_knob_bit(i);
	return bits;
}

/* When a command's life ends, by our clock. What the host says of our clock only shortens it. */
static uint64_t deadline(const struct wire_command *command, uint64_t arrived_us)
{
	uint64_t sent =
		command->sent_us && command->sent_us < arrived_us ? command->sent_us : arrived_us;

	return sent + command->lifetime_ms * 1000;
}

/* What the guest's owner must permit for a command; 0 for those that need no permission. */
static uint64_t permission(enum wire_type type)
{
	switch (type) {
	case WIRE_PROFILE:
		return WIRE_CAP_PROFILE;
	case WIRE_SHED:
		return WIRE_CAP_SHED;
	case WIRE_SAMPLE_NOW:
	case WIRE_RATE:
		return WIRE_CAP_SAMPLE;
	default:
		return 0;
	}
}

static int check(struct agent *agent, const struct wire_message *msg, uint64_t arrived_us)
{
	if (msg->command.nonce != agent->session.nonce)
		return -ESTALE;
	if (clock_us() >= deadline(&msg->command, arrived_us))
		return -ETIME;
	agent->session.heard_us = arrived_us;
	if (permission(msg->type) & ~agent->config.allow)
		return -EPERM;
	return 0;
}

static void set_interval(struct agent *agent, uint64_t interval_ms, uint64_t now_us)
{
	uint64_t next = now_us + interval_ms * 1000;

	agent->interval_ms = interval_ms;
	if (agent->session.next_sample_us > next)
		agent->session.next_sample_us = next;
}

/* Return: -EINPROGRESS where the answer comes later. */
static int carry_out(struct agent *agent, const struct wire_message *msg, uint64_t arrived_us,
		     struct outcome *outcome)
{
	int r;

	switch (msg->type) {
	case WIRE_WELCOME:
		agent->session.lease_us = msg->welcome.lease_ms * 1000;
		return 0;
	case WIRE_RATE:
		set_interval(agent, msg->rate.interval_ms, arrived_us);
		return 0;
	case WIRE_SAMPLE_NOW:
		session_sample(agent, WIRE_CAUSE_ASKED);
		return 0;
	case WIRE_PROFILE:
		outcome->asked = knob_bits(&msg->profile);
		/* What is in force now stands in a hello. */
		agent->session.next_hello_us = arrived_us;
		return knobs_apply(&agent->knobs, &msg->profile, &outcome->done);
	case WIRE_SHED:
		outcome->asked = msg->shed.bytes;
		r = shed_start(&agent->shed, &msg->shed, msg->seq,
			       deadline(&msg->command, arrived_us), &agent->sampler);
		return r < 0 ? r : -EINPROGRESS;
	default:
		return -EOPNOTSUPP;
	}
}

static void handle(struct agent *agent, const struct wire_message *msg, uint64_t arrived_us)
{
	struct outcome outcome = { .began_us = arrived_us };

	/* An echo of our own frames, by a terminal or a loop, is no command. */
	if (!wire_from_host(msg->type))
		return;
	outcome.r = check(agent, msg, arrived_us);
	if (outcome.r == 0)
		outcome.r = carry_out(agent, msg, arrived_us, &outcome);
	if (outcome.r == -EINPROGRESS || (msg->type == WIRE_WELCOME && outcome.r == 0))
		return;
	send_result(agent, msg->seq, msg->type, &outcome);
}

void session_bytes(struct agent *agent, const uint8_t *data, size_t size, uint64_t arrived_us)
{
	struct wire_message msg;
	enum wire_error error;

	/* What is malformed isn't answered: there is nobody sure to answer to. */
	while ((error = wire_decoder_push(&agent->session.decoder, &data, &size, &msg)) !=
	       WIRE_MORE)
		if (error == WIRE_OK)
			handle(agent, &msg, arrived_us);
}

void session_shed(struct agent *agent)
{
	struct shed *shed = &agent->shed;
	struct outcome outcome = { .r = shed_step(shed, &agent->sampler) };

	if (outcome.r == -EINPROGRESS)
		return;
	outcome.asked = shed->order.bytes;
	outcome.done = shed->freed;
	outcome.began_us = shed->began_us;
	send_result(agent, shed->seq, WIRE_SHED, &outcome);
}

uint64_t session_lease(struct agent *agent, uint64_t now_us)
{
	uint64_t end = agent->session.heard_us + agent->session.lease_us;
	uint32_t leased;

	if (!knobs_changed(&agent->knobs) && agent->interval_ms == AGENT_INTERVAL_MS)
		return UINT64_MAX;
	if (now_us < end)
		return end;
	agent->interval_ms = AGENT_INTERVAL_MS;
	leased = agent->knobs.set.present;
	agent_restore(agent);
	/* What can't be restored now is tried again, not in each turn. */
	agent->session.heard_us = now_us;
	if (agent->port.state == PORT_UP && agent->knobs.set.present != leased) {
		/* The host believes that its profile is in force: only a new session tells it. */
		session_end(agent);
		session_begin(agent, now_us);
		return now_us;
	}
	return knobs_changed(&agent->knobs) ? now_us + agent->session.lease_us : UINT64_MAX;
}
