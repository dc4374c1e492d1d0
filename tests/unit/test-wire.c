// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/unit/wire-messages.h"

static void what_is_encoded_is_decoded(void)
{
	for (size_t i = 0; i < N_TYPES; i++) {
		struct wire_message msg = make(all_types[i]), back;
		uint8_t buf[WIRE_FRAME_MAX];
		size_t n = encode(&msg, buf);

		CU_ASSERT_EQUAL(wire_decode(buf, n, &back), WIRE_OK);
		CU_ASSERT(same(&msg, &back));
	}
}

/* A seeded generator, so that a failure can be repeated. */
static uint64_t random_number(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state ^ *state >> 29;
}

static void random_samples_and_hellos_come_back_the_same(void)
{
	uint64_t state = 42;

	for (int round = 0; round < 5000; round++) {
		struct wire_message msg = round & 1 ? make_sample() : make_hello(), back;
		uint8_t buf[WIRE_FRAME_MAX];

		msg.seq = (uint32_t)random_number(&state);
		if (round & 1) {
			msg.sample.stats = (struct stat_set){ 0 };
			for (int i = 0; i < STAT_MAX_ID; i++)
				if (random_number(&state) & 1)
					stat_put(&msg.sample.stats, i, random_number(&state));
			msg.sample.approximate = random_number(&state) & msg.sample.stats.present;
		} else {
			size_t len = random_number(&state) % (WIRE_RELEASE_MAX + 1);

			memset(msg.hello.release, 0, sizeof(msg.hello.release));
			for (size_t i = 0; i < len; i++)
				msg.hello.release[i] = (char)(' ' + random_number(&state) % 95);
			msg.hello.nonce = random_number(&state);
		}
		CU_ASSERT_EQUAL(wire_decode(buf, encode(&msg, buf), &back), WIRE_OK);
		CU_ASSERT(same(&msg, &back));
	}
}

static void every_message_fits_when_full(void)
{
	struct wire_message msg = make_hello(), back;
	uint8_t buf[WIRE_FRAME_MAX];

	memset(msg.hello.release, 'r', WIRE_RELEASE_MAX);
	memset(msg.hello.agent, '~', WIRE_AGENT_MAX);
	for (int i = 0; i < KNOB_MAX_ID; i++) {
		knob_put(&msg.hello.own, i, UINT64_MAX);
		knob_put(&msg.hello.now, i, UINT64_MAX - 1);
	}
	CU_ASSERT_EQUAL(wire_decode(buf, encode(&msg, buf), &back), WIRE_OK);
	CU_ASSERT(same(&msg, &back));
	msg = make_sample();
	for (int i = 0; i < STAT_MAX_ID; i++)
		stat_put(&msg.sample.stats, i, UINT64_MAX);
	CU_ASSERT_EQUAL(wire_decode(buf, encode(&msg, buf), &back), WIRE_OK);
	CU_ASSERT(same(&msg, &back));
}

static void absent_statistic_stays_absent(void)
{
	struct wire_message msg = make_sample(), back;
	uint8_t buf[WIRE_FRAME_MAX];

	CU_ASSERT_EQUAL(wire_decode(buf, encode(&msg, buf), &back), WIRE_OK);
	CU_ASSERT_FALSE(stat_has(&back.sample.stats, STAT_FREE));
	CU_ASSERT_TRUE(stat_has(&back.sample.stats, STAT_LAZYFREE));
	CU_ASSERT_EQUAL(back.sample.approximate, UINT64_C(1) << STAT_LAZYFREE);
}

/* The layout is fixed: these bytes never change, or old agents and new hosts part. */
static void layout_is_little_endian_and_stable(void)
{
	static const uint8_t
		want
			[] = {
				'B',  'L',  'S',  'T',	1,    0,    68,	  0,
				60,   0,    0,	  0,	0xfe, 0xff, 0xff, 0xff, /* header */
				0x01, 0x10, 0,	  0,	9,    0,    0,	  0,
				0,    0,    0,	  0, /* nonce */
				0x02, 0x10, 0,	  0,	0xf4, 1,    0,	  0,
				0,    0,    0,	  0, /* lifetime_ms */
				0x03, 0x10, 0,	  0,	3,    0,    0,	  0,
				0,    0,    0,	  0, /* sent_us */
				0x80, 0x10, 0,	  0,	100,  0,    0,	  0,
				0,    0,    0,	  0, /* interval_ms */
				0xff, 0xff, 0,	  0,	0x55, 0x1b, 0x5d, 0x12,
				0xda, 0xe3, 0x26, 0x8e, /* hash */
			};
	struct wire_message msg = make(WIRE_RATE);
	uint8_t buf[WIRE_FRAME_MAX];

	CU_ASSERT_EQUAL(encode(&msg, buf), sizeof(want));
	CU_ASSERT_EQUAL(memcmp(buf, want, sizeof(want)), 0);
	CU_ASSERT_EQUAL(wire_hash((const uint8_t *)"a", 1), UINT64_C(0xaf63dc4c8601ec8c));
}

/* Change a pair's tag, which has to stay between its neighbours', and mend the hash. */
static void retag(uint8_t *buf, size_t size, uint16_t from, uint16_t to)
{
	uint64_t hash;

	for (size_t at = WIRE_HEADER_SIZE; at < size; at += WIRE_PAIR_SIZE)
		if (buf[at] == (from & 0xff) && buf[at + 1] == from >> 8) {
			buf[at] = to & 0xff;
			buf[at + 1] = (uint8_t)(to >> 8);
		}
	hash = wire_hash(buf, size - WIRE_PAIR_SIZE);
	for (size_t i = 0; i < 8; i++)
		buf[size - 8 + i] = (uint8_t)(hash >> 8 * i);
}

/* Tags 0x0404 and 0x0444: an agent that knows fewer settings, or more, is understood. */
static void settings_are_known_by_their_tags(void)
{
	struct wire_message msg = make_hello(), back;
	uint8_t buf[WIRE_FRAME_MAX];
	size_t size = encode(&msg, buf);

	CU_ASSERT_EQUAL(wire_decode(buf, size, &back), WIRE_OK);
	CU_ASSERT_EQUAL(back.hello.own.value[KNOB_SWAPPINESS], 60);
	CU_ASSERT_EQUAL(back.hello.now.value[KNOB_SWAPPINESS], 10);
	retag(buf, size, 0x0444, 0x047f);
	CU_ASSERT_EQUAL(wire_decode(buf, size, &back), WIRE_OK);
	CU_ASSERT_EQUAL(back.hello.now.present, 0);
	CU_ASSERT_EQUAL(back.hello.own.present, 1U << KNOB_SWAPPINESS);
	retag(buf, size, 0x0404, 0x043f);
	CU_ASSERT_EQUAL(wire_decode(buf, size, &back), WIRE_OK);
	CU_ASSERT_EQUAL(back.hello.own.present, 0);
	CU_ASSERT_STRING_EQUAL(back.hello.release, msg.hello.release);
}

/* Values in force are the guest's to tell: in a command they mean nothing, and set nothing. */
static void values_in_force_are_no_order(void)
{
	struct wire_message msg = make(WIRE_PROFILE), back;
	uint8_t buf[WIRE_FRAME_MAX];
	size_t size = encode(&msg, buf);

	retag(buf, size, 0x0402, 0x0442);
	CU_ASSERT_EQUAL(wire_decode(buf, size, &back), WIRE_OK);
	CU_ASSERT_EQUAL(back.profile.present, 0);
}

/* Both tables are written out in the order of their tags; the encoder relies on it. */
static void tables_rise_by_tag(void)
{
	for (int i = 1; i < STAT_MAX_ID; i++)
		CU_ASSERT(stat_infos[i].tag > stat_infos[i - 1].tag);
	CU_ASSERT(stat_infos[STAT_MAX_ID - 1].tag < 1024);
	for (int i = 1; i < KNOB_MAX_ID; i++)
		CU_ASSERT(knob_infos[i].tag > knob_infos[i - 1].tag);
	CU_ASSERT(knob_infos[KNOB_MAX_ID - 1].tag < 64);
}

/* What one side would refuse, the other doesn't send. */
static void encoder_refuses_what_the_decoder_would(void)
{
	struct wire_message msg = make(WIRE_RATE);
	uint8_t buf[WIRE_FRAME_MAX];

	msg.rate.interval_ms = 1;
	CU_ASSERT_EQUAL(wire_encode(&msg, buf, sizeof(buf)), -EINVAL);
	msg = make(WIRE_PROFILE);
	knob_put(&msg.profile, KNOB_SWAPPINESS, 201);
	CU_ASSERT_EQUAL(wire_encode(&msg, buf, sizeof(buf)), -EINVAL);
	msg = make_hello();
	msg.hello.release[3] = '\n';
	CU_ASSERT_EQUAL(wire_encode(&msg, buf, sizeof(buf)), -EINVAL);
	msg.type = 63;
	CU_ASSERT_EQUAL(wire_encode(&msg, buf, sizeof(buf)), -EINVAL);
}

static void encoder_never_writes_behind_its_buffer(void)
{
	struct wire_message msg = make_hello();
	uint8_t buf[WIRE_FRAME_MAX];
	size_t whole = encode(&msg, buf);

	for (size_t size = 0; size < whole; size++) {
		memset(buf, 0x5a, sizeof(buf));
		CU_ASSERT_EQUAL(wire_encode(&msg, buf, size), -ENOBUFS);
		CU_ASSERT_EQUAL(buf[size], 0x5a);
	}
	CU_ASSERT_EQUAL(wire_encode(&msg, buf, whole), (ssize_t)whole);
}

static void every_reason_and_type_has_its_own_name(void)
{
	for (unsigned int i = 0; i < WIRE_ERROR_MAX; i++)
		for (unsigned int k = 0; k < i; k++)
			CU_ASSERT_STRING_NOT_EQUAL(wire_error_name(i), wire_error_name(k));
	CU_ASSERT_STRING_EQUAL(wire_error_name(WIRE_ERROR_MAX), "unknown");
	CU_ASSERT_STRING_EQUAL(wire_error_name((enum wire_error) - 1), "unknown");
	for (size_t i = 0; i < N_TYPES; i++)
		CU_ASSERT_STRING_NOT_EQUAL(wire_type_name(all_types[i]), "unknown");
	CU_ASSERT_STRING_EQUAL(wire_type_name(63), "unknown");
}

static const struct unit_test tests[] = {
	TEST(what_is_encoded_is_decoded),
	TEST(random_samples_and_hellos_come_back_the_same),
	TEST(every_message_fits_when_full),
	TEST(absent_statistic_stays_absent),
	TEST(layout_is_little_endian_and_stable),
	TEST(settings_are_known_by_their_tags),
	TEST(values_in_force_are_no_order),
	TEST(tables_rise_by_tag),
	TEST(encoder_refuses_what_the_decoder_would),
	TEST(encoder_never_writes_behind_its_buffer),
	TEST(every_reason_and_type_has_its_own_name),
};

HARNESS_MAIN("wire", tests)
