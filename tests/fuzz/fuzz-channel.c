// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A hostile guest on a channel without a socket: pieces of bytes, and frames that are well formed
 * but say anything, whole or cut. The state stays sound, nothing is passed on before a hello, and
 * the number of breaches is bounded.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/guest/internal.h"
#include "daemon/util/time.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	bool hello;
};

static void must(bool condition)
{
	if (!condition)
		abort();
}

static void on_hello(struct channel *channel, const struct wire_hello *hello, bool new_session,
		     void *userdata)
{
	struct seen *seen = userdata;

	must(new_session || seen->hello);
	must(hello->nonce == channel->nonce);
	seen->hello = true;
}

static void on_sample(struct channel *channel, const struct wire_sample *sample, uint64_t at_us,
		      void *userdata)
{
	const struct seen *seen = userdata;

	(void)at_us;
	must(seen->hello && channel->session);
	must(sample->stats.present < UINT64_C(1) << STAT_MAX_ID);
}

static void on_result(struct channel *channel, const struct wire_result *result, int status,
		      uint64_t at_us, void *userdata)
{
	(void)userdata;
	(void)at_us;
	must(result->command_seq < channel->next_seq);
	must(status <= 0 && status >= -4095);
}

static const struct channel_callbacks callbacks = { .hello = on_hello,
						    .sample = on_sample,
						    .result = on_result };

/* A frame made from bytes, as far as it can be encoded; else the bytes themselves. */
static size_t make_piece(const uint8_t *data, size_t size, uint8_t *piece)
{
	static const enum wire_type types[] = {
		WIRE_HELLO, WIRE_SAMPLE, WIRE_PRESSURE, WIRE_RESULT,
		WIRE_BYE,   WIRE_SHED,	 WIRE_HELLO,	WIRE_SAMPLE
	};
	struct wire_message message = { 0 };
	ssize_t n;

	message.type = types[data[0] % 8];
	message.seq = data[0];
	memcpy(&message.hello, data, size < sizeof(message.hello) ? size : sizeof(message.hello));
	if (message.type == WIRE_HELLO || message.type == WIRE_SAMPLE) {
		message.hello.protocol = message.hello.protocol ?: 1;
		message.hello.page_size = 4096;
		message.hello.interval_ms = message.sample.interval_ms = 1000;
	}
	if (message.type == WIRE_HELLO)
		message.hello.release[0] = message.hello.agent[0] = '\0';
	n = data[0] & 0x80 ? wire_encode(&message, piece, WIRE_FRAME_MAX) : -1;
	if (n > 0)
		return data[0] & 0x40 ? (size_t)n : (size_t)n / 2;
	memcpy(piece, data, size);
	return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen seen = { 0 };
	struct channel channel = { .limits = &channel_default_limits,
				   .callbacks = callbacks,
				   .userdata = &seen,
				   .fd = -1,
				   .next_seq = 1 };
	uint64_t now = USEC_PER_SEC;
	uint8_t piece[WIRE_FRAME_MAX];

	while (size > 1 && !channel.cut) {
		size_t take = data[0] + 1U < size ? data[0] + 1U : size - 1;

		channel_take_bytes(&channel, piece, make_piece(data + 1, take, piece), now);
		must(channel.n_queue <= QUEUE_MAX);
		must(channel.strikes <= channel.limits->strikes);
		now += 10000 * (uint64_t)take;
		data += 1 + take;
		size -= 1 + take;
	}
	return 0;
}
