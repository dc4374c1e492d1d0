// SPDX-License-Identifier: GPL-2.0-or-later
/* What comes in: frames, breaches of the protocol, and who is told of them. */
#include <stdio.h>
#include <string.h>

#include "daemon/guest/internal.h"
#include "daemon/util/time.h"

/* --- Strikes ---------------------------------------------------------------------------------- */

static void forgive(struct channel *channel, uint64_t now)
{
	while (channel->strikes && now - channel->strike_us >= channel->limits->forgive_us) {
		channel->strikes--;
		channel->strike_us += channel->limits->forgive_us;
	}
	if (!channel->strikes)
		channel->strike_us = now;
}

static void strike(struct channel *channel, uint64_t now, const char *reason)
{
	channel->counters.refused++;
	forgive(channel, now);
	channel->strikes++;
	if (channel->strikes < channel->limits->strikes)
		return;
	channel->cut = true;
	channel_set_link(channel, AGENT_BROKEN, reason);
}

/* --- Receiving -------------------------------------------------------------------------------- */

static void set_silence(struct channel *channel, uint64_t now)
{
	uint64_t intervals = 5 * channel->interval_us;

	channel->silence_us =
		now +
		(intervals > channel->limits->silence_us ? intervals : channel->limits->silence_us);
}

static void note_clock(struct channel *channel, uint64_t clock_us, uint64_t now)
{
	channel->guest_clock_us = clock_us;
	channel->guest_clock_at_us = now;
}

/*
 * Each session costs lines in the log and decisions in the history, so they are few: an agent may
 * start again now and then, but not all the time.
 */
static bool may_begin(struct channel *channel, uint64_t now)
{
	uint64_t since = now - channel->session_us;

	if (!channel->session_us || since >= channel->limits->calm_us)
		return true;
	strike(channel, now, "it begins new sessions without end");
	return !channel->cut && since >= channel->limits->session_us;
}

static void take_hello(struct channel *channel, const struct wire_hello *hello, uint64_t now)
{
	bool new_session = !channel->session || hello->nonce != channel->nonce;

	if (new_session && !may_begin(channel, now))
		return;
	if (new_session) {
		channel_end_session(channel);
		channel->session = true;
		channel->nonce = hello->nonce;
		channel->session_us = now;
	}
	channel->hello_us = NEVER;
	channel->noise = false;
	channel->retry_delay_us = channel->limits->retry_min_us;
	channel->interval_us = hello->interval_ms * USEC_PER_MSEC;
	channel->samples = hello->capabilities & WIRE_CAP_SAMPLE;
	note_clock(channel, hello->clock_us, now);
	channel_set_link(channel, AGENT_UP, "");
	channel_welcome(channel, now);
	if (channel->callbacks.hello)
		channel->callbacks.hello(channel, hello, new_session, channel->userdata);
}

static void take_sample(struct channel *channel, const struct wire_sample *sample, uint64_t now)
{
	note_clock(channel, sample->clock_us, now);
	channel->interval_us = sample->interval_ms * USEC_PER_MSEC;
	if (channel->callbacks.sample)
		channel->callbacks.sample(channel, sample, now, channel->userdata);
}

static void take_pressure(struct channel *channel, const struct wire_pressure *pressure,
			  uint64_t now)
{
	note_clock(channel, pressure->clock_us, now);
	if (channel->pressure_us && now - channel->pressure_us < channel->limits->pressure_us) {
		channel->counters.dropped++;
		return;
	}
	channel->pressure_us = now;
	if (channel->callbacks.pressure)
		channel->callbacks.pressure(channel, pressure, now, channel->userdata);
}

static void take_result(struct channel *channel, const struct wire_result *result, uint64_t now)
{
	note_clock(channel, result->clock_us, now);
	/* Sequences are never used again within a channel: what is ahead was never sent. */
	if ((int32_t)(channel->next_seq - (uint32_t)result->command_seq) <= 0) {
		strike(channel, now, "it answers what was never asked");
		return;
	}
	if (channel->callbacks.result)
		channel->callbacks.result(channel, result, -(int)result->status, now,
					  channel->userdata);
}

static void take_bye(struct channel *channel, const struct wire_bye *bye)
{
	channel_end_session(channel);
	channel_set_link(channel, AGENT_SILENT,
			 bye->cause == WIRE_BYE_REFUSED ? "the guest's owner refuses the host"
							: "the agent has stopped");
}

static void take_message(struct channel *channel, const struct wire_message *message, uint64_t now)
{
	channel->counters.frames_in++;
	if (wire_from_host(message->type)) {
		strike(channel, now, "it sends the host's own frames");
		return;
	}
	if (message->type != WIRE_HELLO && !channel->session) {
		channel->counters.dropped++;
		return;
	}
	if (message->type == WIRE_HELLO)
		take_hello(channel, &message->hello, now);
	else if (message->type == WIRE_BYE)
		take_bye(channel, &message->bye);
	else
		channel_set_link(channel, AGENT_UP, "");
	if (message->type == WIRE_SAMPLE)
		take_sample(channel, &message->sample, now);
	else if (message->type == WIRE_PRESSURE)
		take_pressure(channel, &message->pressure, now);
	else if (message->type == WIRE_RESULT)
		take_result(channel, &message->result, now);
	if (channel->session && channel->samples)
		set_silence(channel, now);
}

static void take_error(struct channel *channel, enum wire_error error, uint64_t now)
{
	char reason[REASON_MAX];

	/* A newer agent may say more than we understand. */
	if (error == WIRE_UNKNOWN_TYPE) {
		channel->counters.dropped++;
		return;
	}
	(void)snprintf(reason, sizeof(reason), "it sends what isn't the protocol: %s",
		       wire_error_name(error));
	channel->noise = !channel->session;
	strike(channel, now, reason);
}

void channel_take_bytes(struct channel *channel, const uint8_t *data, size_t size, uint64_t now)
{
	struct wire_message message;
	enum wire_error error;

	while (!channel->cut) {
		error = wire_decoder_push(&channel->decoder, &data, &size, &message);
		if (error == WIRE_MORE)
			break;
		if (error == WIRE_OK)
			take_message(channel, &message, now);
		else
			take_error(channel, error, now);
	}
}
