// SPDX-License-Identifier: GPL-2.0-or-later
/* Frames with one fault each, and streams in which they come. */
#include "tests/unit/wire-messages.h"

/*
 * Malformed frames: each starts from a good one of a type, without the pair of its hash, which is
 * added behind the mischief so that the reason is the mischief; the raw ones are spoilt with it.
 */

static void put(uint8_t *buf, size_t at, uint64_t value, size_t n)
{
	for (size_t i = 0; i < n; i++, value >>= 8)
		buf[at + i] = value & 0xff;
}

static size_t pair_at(size_t i)
{
	return WIRE_HEADER_SIZE + i * WIRE_PAIR_SIZE;
}

/* Where the pair with a tag is. */
static size_t find(const uint8_t *buf, size_t size, uint16_t tag)
{
	for (size_t at = WIRE_HEADER_SIZE; at < size; at += WIRE_PAIR_SIZE)
		if ((buf[at] | buf[at + 1] << 8) == tag)
			return at;
	CU_FAIL_FATAL("no such tag in the frame");
	return 0;
}

static void set_value(uint8_t *buf, size_t size, uint16_t tag, uint64_t value)
{
	put(buf, find(buf, size, tag) + 4, value, 8);
}

static void no_magic(uint8_t *buf, size_t *size)
{
	(void)size;
	buf[3] = 'X';
}

static void old_version(uint8_t *buf, size_t *size)
{
	(void)size;
	put(buf, 4, 0, 2);
}

static void new_version(uint8_t *buf, size_t *size)
{
	(void)size;
	put(buf, 4, WIRE_VERSION + 1, 2);
}

static void length_above_the_limit(uint8_t *buf, size_t *size)
{
	(void)size;
	put(buf, 8, 341 * WIRE_PAIR_SIZE, 4);
}

static void length_of_4_gib(uint8_t *buf, size_t *size)
{
	(void)size;
	put(buf, 8, UINT32_MAX, 4);
}

static void half_a_pair(uint8_t *buf, size_t *size)
{
	put(buf, 8, *size - WIRE_HEADER_SIZE - 6, 4);
	*size -= 6;
}

static void one_byte_of_a_pair(uint8_t *buf, size_t *size)
{
	put(buf, 8, *size - WIRE_HEADER_SIZE + 1, 4);
	*size += 1;
}

static void cut_in_the_header(uint8_t *buf, size_t *size)
{
	(void)buf;
	*size = WIRE_HEADER_SIZE - 1;
}

static void cut_in_a_pair(uint8_t *buf, size_t *size)
{
	(void)buf;
	*size -= 1;
}

static void nothing_at_all(uint8_t *buf, size_t *size)
{
	(void)buf;
	*size = 0;
}

static void bytes_behind(uint8_t *buf, size_t *size)
{
	(void)buf;
	*size += 1;
}

static void type_zero(uint8_t *buf, size_t *size)
{
	(void)size;
	put(buf, 6, 0, 2);
}

static void type_of_the_future(uint8_t *buf, size_t *size)
{
	(void)size;
	put(buf, 6, 0xffff, 2);
}

static void same_tag_twice(uint8_t *buf, size_t *size)
{
	(void)size;
	memcpy(buf + pair_at(1), buf + pair_at(0), 2);
}

static void unknown_tag_twice(uint8_t *buf, size_t *size)
{
	put(buf, *size, 0xfff0, WIRE_PAIR_SIZE);
	put(buf, *size + WIRE_PAIR_SIZE, 0xfff0, WIRE_PAIR_SIZE);
	*size += 2 * WIRE_PAIR_SIZE;
}

static void tags_swapped(uint8_t *buf, size_t *size)
{
	uint8_t pair[WIRE_PAIR_SIZE];

	(void)size;
	memcpy(pair, buf + pair_at(0), WIRE_PAIR_SIZE);
	memcpy(buf + pair_at(0), buf + pair_at(1), WIRE_PAIR_SIZE);
	memcpy(buf + pair_at(1), pair, WIRE_PAIR_SIZE);
}

static void no_pairs(uint8_t *buf, size_t *size)
{
	(void)buf;
	*size = WIRE_HEADER_SIZE;
}

static void last_tag_missing(uint8_t *buf, size_t *size)
{
	(void)buf;
	*size -= WIRE_PAIR_SIZE;
}

static void hash_missing(uint8_t *buf, size_t *size)
{
	last_tag_missing(buf, size);
	put(buf, 8, *size - WIRE_HEADER_SIZE, 4);
}

static void nothing_but_a_header(uint8_t *buf, size_t *size)
{
	*size = WIRE_HEADER_SIZE;
	put(buf, 8, 0, 4);
}

static void value_changed(uint8_t *buf, size_t *size)
{
	(void)size;
	buf[pair_at(0) + 4] ^= 1;
}

static void sequence_changed(uint8_t *buf, size_t *size)
{
	(void)size;
	buf[12] ^= 1;
}

static void nonce_missing(uint8_t *buf, size_t *size)
{
	memmove(buf + pair_at(0), buf + pair_at(1), *size - pair_at(1));
	last_tag_missing(buf, size);
}

static void interval_zero(uint8_t *buf, size_t *size)
{
	set_value(buf, *size, 0x1080, 0);
}

static void interval_of_ages(uint8_t *buf, size_t *size)
{
	set_value(buf, *size, 0x1080, UINT64_MAX);
}

static void lifetime_zero(uint8_t *buf, size_t *size)
{
	set_value(buf, *size, 0x1002, 0);
}

static void lifetime_of_ages(uint8_t *buf, size_t *size)
{
	set_value(buf, *size, 0x1002, WIRE_LIFETIME_MAX_MS + 1);
}

static void knob_out_of_range(uint8_t *buf, size_t *size)
{
	set_value(buf, *size, 0x0402, 3);
}

static void swappiness_201(uint8_t *buf, size_t *size)
{
	set_value(buf, *size, 0x1071, 201);
}

static void shed_of_nothing(uint8_t *buf, size_t *size)
{
	set_value(buf, *size, 0x1070, 0);
}

static void page_size_zero(uint8_t *buf, size_t *size)
{
	set_value(buf, *size, 0x1014, 0);
}

static void text_with_escape(uint8_t *buf, size_t *size)
{
	buf[find(buf, *size, 0x0800) + 4 + 2] = 0x1b;
}

static void text_with_high_bit(uint8_t *buf, size_t *size)
{
	buf[find(buf, *size, 0x0800) + 4] = 0xe4;
}

static void text_goes_on_behind_its_end(uint8_t *buf, size_t *size)
{
	buf[find(buf, *size, 0x0810) + 4 + 5] = 'x';
}

static void text_with_empty_piece(uint8_t *buf, size_t *size)
{
	set_value(buf, *size, 0x0810, 0);
}

static void text_with_a_hole(uint8_t *buf, size_t *size)
{
	put(buf, find(buf, *size, 0x0801), 0x0802, 2);
}

static const struct {
	const char *name;
	enum wire_type type;
	void (*spoil)(uint8_t *buf, size_t *size);
	enum wire_error want;
	bool raw;
} malformed[] = {
	{ "no magic", WIRE_SHED, no_magic, WIRE_BAD_MAGIC, false },
	{ "version 0", WIRE_SHED, old_version, WIRE_BAD_VERSION, false },
	{ "next version", WIRE_SHED, new_version, WIRE_BAD_VERSION, false },
	{ "length above the limit", WIRE_SHED, length_above_the_limit, WIRE_OVERSIZE, true },
	{ "length of 4 GiB", WIRE_SHED, length_of_4_gib, WIRE_OVERSIZE, true },
	{ "half a pair", WIRE_SHED, half_a_pair, WIRE_ODD_LENGTH, true },
	{ "one byte of a pair", WIRE_SHED, one_byte_of_a_pair, WIRE_ODD_LENGTH, true },
	{ "cut in the header", WIRE_SHED, cut_in_the_header, WIRE_MORE, true },
	{ "cut in a pair", WIRE_SHED, cut_in_a_pair, WIRE_MORE, true },
	{ "nothing at all", WIRE_SHED, nothing_at_all, WIRE_MORE, true },
	{ "bytes behind the frame", WIRE_SHED, bytes_behind, WIRE_TRAILING, true },
	{ "type 0", WIRE_SHED, type_zero, WIRE_UNKNOWN_TYPE, false },
	{ "type of the future", WIRE_SHED, type_of_the_future, WIRE_UNKNOWN_TYPE, false },
	{ "same tag twice", WIRE_SHED, same_tag_twice, WIRE_DUPLICATE_TAG, false },
	{ "same statistic twice", WIRE_SAMPLE, same_tag_twice, WIRE_DUPLICATE_TAG, false },
	{ "unknown tag twice", WIRE_SHED, unknown_tag_twice, WIRE_DUPLICATE_TAG, false },
	{ "tags swapped", WIRE_SHED, tags_swapped, WIRE_UNORDERED_TAG, false },
	{ "no hash", WIRE_SHED, hash_missing, WIRE_MISSING_TAG, true },
	{ "nothing but a header", WIRE_SHED, nothing_but_a_header, WIRE_MISSING_TAG, true },
	{ "value changed", WIRE_SHED, value_changed, WIRE_BAD_CHECK, true },
	{ "sequence changed", WIRE_SHED, sequence_changed, WIRE_BAD_CHECK, true },
	{ "no pairs in a hello", WIRE_HELLO, no_pairs, WIRE_MISSING_TAG, false },
	{ "no pairs in a shed", WIRE_SHED, no_pairs, WIRE_MISSING_TAG, false },
	{ "shed without flags", WIRE_SHED, last_tag_missing, WIRE_MISSING_TAG, false },
	{ "command without nonce", WIRE_SAMPLE_NOW, nonce_missing, WIRE_MISSING_TAG, false },
	{ "interval 0", WIRE_RATE, interval_zero, WIRE_BAD_VALUE, false },
	{ "interval of ages", WIRE_RATE, interval_of_ages, WIRE_BAD_VALUE, false },
	{ "lifetime 0", WIRE_SHED, lifetime_zero, WIRE_BAD_VALUE, false },
	{ "lifetime of ages", WIRE_SHED, lifetime_of_ages, WIRE_BAD_VALUE, false },
	{ "knob out of range", WIRE_PROFILE, knob_out_of_range, WIRE_BAD_VALUE, false },
	{ "swappiness 201", WIRE_SHED, swappiness_201, WIRE_BAD_VALUE, false },
	{ "shed of nothing", WIRE_SHED, shed_of_nothing, WIRE_BAD_VALUE, false },
	{ "page size 0", WIRE_HELLO, page_size_zero, WIRE_BAD_VALUE, false },
	{ "text with an escape", WIRE_HELLO, text_with_escape, WIRE_BAD_TEXT, false },
	{ "text with a high bit", WIRE_HELLO, text_with_high_bit, WIRE_BAD_TEXT, false },
	{ "text behind its end", WIRE_HELLO, text_goes_on_behind_its_end, WIRE_BAD_TEXT, false },
	{ "text with an empty piece", WIRE_HELLO, text_with_empty_piece, WIRE_BAD_TEXT, false },
	{ "text with a hole", WIRE_HELLO, text_with_a_hole, WIRE_BAD_TEXT, false },
};

#define N_MALFORMED (sizeof(malformed) / sizeof(*malformed))

/* Add the pair of the hash, and correct the length. */
static size_t seal(uint8_t *buf, size_t size)
{
	put(buf, 8, size + WIRE_PAIR_SIZE - WIRE_HEADER_SIZE, 4);
	put(buf, size, WIRE_TAG_CHECK, 4);
	put(buf, size + 4, wire_hash(buf, size), 8);
	return size + WIRE_PAIR_SIZE;
}

static size_t spoil(size_t i, uint8_t *buf)
{
	struct wire_message msg = make(malformed[i].type);
	size_t size = encode(&msg, buf);

	if (!malformed[i].raw)
		size -= WIRE_PAIR_SIZE;
	malformed[i].spoil(buf, &size);
	return malformed[i].raw ? size : seal(buf, size);
}

static void every_malformed_frame_is_refused_with_its_reason(void)
{
	for (size_t i = 0; i < N_MALFORMED; i++) {
		uint8_t buf[WIRE_FRAME_MAX] = { 0 };
		size_t size = spoil(i, buf);
		struct wire_message ret;
		struct wire_message untouched;
		enum wire_error got;

		memset(&ret, 0xa5, sizeof(ret));
		untouched = ret;
		got = wire_decode(buf, size, &ret);
		if (got != malformed[i].want)
			printf("%s: %s, not %s\n", malformed[i].name, wire_error_name(got),
			       wire_error_name(malformed[i].want));
		CU_ASSERT_EQUAL(got, malformed[i].want);
		CU_ASSERT(same(&ret, &untouched));
	}
}

/* Push in pieces of a size; count messages equal to @want, and errors. */
static void push_all(struct wire_decoder *dec, const uint8_t *data, size_t size, size_t piece,
		     const struct wire_message *want, int *good, int *bad)
{
	struct wire_message msg;

	while (size) {
		size_t n = piece < size ? piece : size;
		const uint8_t *p = data;
		enum wire_error error;

		data += n;
		size -= n;
		while ((error = wire_decoder_push(dec, &p, &n, &msg)) != WIRE_MORE) {
			if (error == WIRE_OK && same(&msg, want))
				++*good;
			else
				++*bad;
		}
	}
}

static void stream_in_pieces_of_any_size_is_the_same(void)
{
	for (size_t piece = 1; piece < 600; piece++) {
		struct wire_message msg = make_hello();
		struct wire_decoder dec = { 0 };
		uint8_t buf[4 * WIRE_FRAME_MAX];
		size_t size = 0;
		int good = 0, bad = 0;

		for (int i = 0; i < 3; i++)
			size += encode(&msg, buf + size);
		push_all(&dec, buf, size, piece, &msg, &good, &bad);
		CU_ASSERT_EQUAL(good, 3);
		CU_ASSERT_EQUAL(bad, 0);
		CU_ASSERT_EQUAL(dec.skipped, 0);
	}
}

/* Whatever is wrong with a frame, the good one behind it comes through. */
static void decoder_resyncs_behind_every_malformed_frame(void)
{
	struct wire_message msg = make(WIRE_RATE);

	for (size_t i = 0; i < N_MALFORMED; i++) {
		uint8_t buf[5 * WIRE_FRAME_MAX] = { 0 };
		size_t size = spoil(i, buf);
		struct wire_decoder dec = { 0 };
		int good = 0, bad = 0;

		/* A cut frame waits for its length, so give it more than one frame to find. */
		for (int k = 0; k < 12; k++)
			size += encode(&msg, buf + size);
		push_all(&dec, buf, size, 7, &msg, &good, &bad);
		if (good != 12)
			printf("%s: %d of 12\n", malformed[i].name, good);
		CU_ASSERT_EQUAL(good, 12);
		CU_ASSERT(bad <= 2);
	}
}

static void noise_of_any_length_is_one_error(void)
{
	struct wire_message msg = make(WIRE_SHED);
	struct wire_decoder dec = { 0 };
	uint8_t buf[WIRE_FRAME_MAX];
	uint8_t noise[9999];
	int good = 0, bad = 0;

	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)("BLSTBLX"[i % 7]);
	push_all(&dec, noise, sizeof(noise), 100, &msg, &good, &bad);
	CU_ASSERT_EQUAL(bad, 1);
	push_all(&dec, buf, encode(&msg, buf), 100, &msg, &good, &bad);
	CU_ASSERT_EQUAL(good, 1);
	CU_ASSERT_EQUAL(bad, 1);
	CU_ASSERT_EQUAL(dec.skipped, sizeof(noise));
}

static void hello_behind_a_frame_cut_by_death_is_found(void)
{
	struct wire_message sample = make_sample(), hello = make_hello();
	struct wire_decoder dec = { 0 };
	uint8_t buf[2 * WIRE_FRAME_MAX];
	size_t size = encode(&sample, buf) / 2;
	int good = 0, bad = 0;

	size += encode(&hello, buf + size);
	push_all(&dec, buf, size, sizeof(buf), &hello, &good, &bad);
	push_all(&dec, buf, encode(&sample, buf), sizeof(buf), &hello, &good, &bad);
	CU_ASSERT_EQUAL(good, 1);
}

static void unknown_type_is_skipped_without_losing_the_stream(void)
{
	struct wire_message msg = make(WIRE_RATE);
	struct wire_decoder dec = { 0 };
	uint8_t buf[2 * WIRE_FRAME_MAX];
	size_t first = encode(&msg, buf), size = first + encode(&msg, buf + first);
	const uint8_t *p = buf;
	struct wire_message ret;

	type_of_the_future(buf, &size);
	(void)seal(buf, first - WIRE_PAIR_SIZE);
	CU_ASSERT_EQUAL(wire_decoder_push(&dec, &p, &size, &ret), WIRE_UNKNOWN_TYPE);
	CU_ASSERT_EQUAL(wire_decoder_push(&dec, &p, &size, &ret), WIRE_OK);
	CU_ASSERT(same(&ret, &msg));
	CU_ASSERT_EQUAL(dec.skipped, 0);
}

static void unknown_tags_and_flags_are_ignored(void)
{
	struct wire_message msg = make(WIRE_SHED), ret;
	uint8_t buf[WIRE_FRAME_MAX];
	size_t size = encode(&msg, buf);

	buf[pair_at(0) + 3] = 0x80;
	put(buf, size - WIRE_PAIR_SIZE, 0xfff0, WIRE_PAIR_SIZE);
	size = seal(buf, size);
	CU_ASSERT_EQUAL(wire_decode(buf, size, &ret), WIRE_OK);
	CU_ASSERT(same(&ret, &msg));
}

static void reset_forgets_half_a_frame(void)
{
	struct wire_message msg = make(WIRE_RATE);
	struct wire_decoder dec = { 0 };
	uint8_t buf[WIRE_FRAME_MAX];
	size_t size = encode(&msg, buf);
	int good = 0, bad = 0;

	push_all(&dec, buf, size - 1, size, &msg, &good, &bad);
	wire_decoder_reset(&dec);
	push_all(&dec, buf, size, size, &msg, &good, &bad);
	CU_ASSERT_EQUAL(good, 1);
	CU_ASSERT_EQUAL(bad, 0);
}

static const struct unit_test tests[] = {
	TEST(every_malformed_frame_is_refused_with_its_reason),
	TEST(stream_in_pieces_of_any_size_is_the_same),
	TEST(decoder_resyncs_behind_every_malformed_frame),
	TEST(noise_of_any_length_is_one_error),
	TEST(hello_behind_a_frame_cut_by_death_is_found),
	TEST(unknown_type_is_skipped_without_losing_the_stream),
	TEST(unknown_tags_and_flags_are_ignored),
	TEST(reset_forgets_half_a_frame),
};

HARNESS_MAIN("wire-malformed", tests)
