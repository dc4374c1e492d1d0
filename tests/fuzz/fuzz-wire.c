// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The wire codec on any bytes: nothing that a peer sends may crash it or make it disagree with
 * itself. Three properties beside the sanitizers': what is decoded can be encoded again and comes
 * back the same; pieces of any size give the same messages; the decoder takes every byte.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest-agent/proto/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
	if (!condition)
		abort();
}

static void check_round_trip(const struct wire_message *msg)
{
	struct wire_message back;
	uint8_t buf[WIRE_FRAME_MAX];
	ssize_t n = wire_encode(msg, buf, sizeof(buf));

	must(n > 0);
	must(wire_decode(buf, (size_t)n, &back) == WIRE_OK);
	must(memcmp(msg, &back, sizeof(back)) == 0);
}

/* A sum over what comes out of the stream, for comparison. */
static uint64_t drain(struct wire_decoder *dec, const uint8_t *data, size_t size, uint64_t sum)
{
	struct wire_message msg;
	enum wire_error error;

	while ((error = wire_decoder_push(dec, &data, &size, &msg)) != WIRE_MORE) {
		sum = sum * 31 + error;
		if (error != WIRE_OK)
			continue;
		check_round_trip(&msg);
		sum = sum * 31 + msg.type + msg.seq;
	}
	must(size == 0);
	return sum;
}

static void put_le(uint8_t *p, size_t n, uint64_t v)
{
	for (size_t i = 0; i < n; i++, v >>= 8)
		p[i] = v & 0xff;
}

/* Make a frame with a good header and hash around the bytes, so that they are looked into. */
static size_t seal(const uint8_t *data, size_t size, uint8_t *frame)
{
	size_t pairs = size / WIRE_PAIR_SIZE * WIRE_PAIR_SIZE;
	size_t room = WIRE_FRAME_MAX - WIRE_HEADER_SIZE - WIRE_PAIR_SIZE;

	if (pairs > room)
		pairs = room;
	put_le(frame, 4, WIRE_MAGIC);
	put_le(frame + 4, 2, WIRE_VERSION);
	put_le(frame + 6, 2, size ? data[size - 1] % 80 : 0);
	put_le(frame + 8, 4, pairs + WIRE_PAIR_SIZE);
	put_le(frame + 12, 4, size);
	memcpy(frame + WIRE_HEADER_SIZE, data, pairs);
	size = WIRE_HEADER_SIZE + pairs;
	put_le(frame + size, 4, WIRE_TAG_CHECK);
	put_le(frame + size + 4, 8, wire_hash(frame, size));
	return size + WIRE_PAIR_SIZE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_decoder whole = { 0 }, pieces = { 0 };
	uint64_t a = drain(&whole, data, size, 0), b = 0;
	struct wire_message msg;
	size_t piece = size ? 1 + data[size - 1] : 1;

	for (size_t at = 0; at < size; at += piece)
		b = drain(&pieces, data + at, piece < size - at ? piece : size - at, b);
	must(a == b);
	must(whole.skipped == pieces.skipped);
	if (wire_decode(frame, seal(data, size, frame), &msg) == WIRE_OK)
		check_round_trip(&msg);
	return 0;
}
