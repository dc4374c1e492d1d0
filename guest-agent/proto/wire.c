// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest-agent/proto/wire.h"

#include <errno.h>
#include <string.h>

/* Tags. Those below KNOB_BASE are the statistics' own; a number is never used again. */
#define KNOB_BASE	 0x0400
#define KNOB_NOW_BASE	 0x0440 /* the same settings' values in force */
#define RELEASE_BASE	 0x0800
#define AGENT_BASE	 0x0810
#define FIELD_BASE	 0x1000

#define PAIR_APPROXIMATE 0x0001 /* flag of a statistic */
#define NO_LIMIT	 UINT64_MAX

/*
 * One row a field: the only place that knows where a value lives in a frame and in a struct, and
 * what is permitted. The rows of a type are sorted by tag. A field that isn't required is zero
 * where it is absent, which its comment in wire.h says what it means.
 */
struct field {
	uint16_t tag;
	bool required;
	size_t offset; /* in struct wire_message */
	uint64_t min, max;
};

#define AT(member) offsetof(struct wire_message, member)
#define NEED(tag, member, min, max)                                                                \
	{                                                                                          \
		FIELD_BASE + (tag), true, AT(member), (min), (max)                                 \
	}
#define MAY(tag, member, max)                                                                      \
	{                                                                                          \
		FIELD_BASE + (tag), false, AT(member), 0, (max)                                    \
	}
#define COMMAND                                                                                    \
	NEED(1, command.nonce, 0, NO_LIMIT),                                                       \
		NEED(2, command.lifetime_ms, 1, WIRE_LIFETIME_MAX_MS),                             \
		MAY(3, command.sent_us, NO_LIMIT)

static const struct field hello_fields[] = {
	NEED(16, hello.protocol, 1, UINT16_MAX),
	NEED(17, hello.nonce, 0, NO_LIMIT),
	NEED(18, hello.boot_id_hi, 0, NO_LIMIT),
	NEED(19, hello.boot_id_lo, 0, NO_LIMIT),
	NEED(20, hello.page_size, 1024, 1 << 20),
	NEED(21, hello.kernel_major, 0, UINT32_MAX),
	NEED(22, hello.kernel_minor, 0, UINT32_MAX),
	NEED(23, hello.kernel_patch, 0, UINT32_MAX),
	NEED(24, hello.capabilities, 0, NO_LIMIT),
	NEED(25, hello.knobs_writable, 0, NO_LIMIT),
	NEED(26, hello.interval_ms, WIRE_INTERVAL_MIN_MS, WIRE_INTERVAL_MAX_MS),
	NEED(27, hello.clock_us, 0, NO_LIMIT),
};

static const struct field sample_fields[] = {
	NEED(32, sample.clock_us, 0, NO_LIMIT),
	NEED(33, sample.uptime_us, 0, NO_LIMIT),
	MAY(34, sample.slow_age_us, NO_LIMIT),
	MAY(35, sample.cause, NO_LIMIT),
	NEED(36, sample.interval_ms, WIRE_INTERVAL_MIN_MS, WIRE_INTERVAL_MAX_MS),
	MAY(37, sample.cost_us, NO_LIMIT),
};

static const struct field pressure_fields[] = {
	NEED(48, pressure.clock_us, 0, NO_LIMIT),     MAY(49, pressure.kind, WIRE_PSI_FULL),
	NEED(50, pressure.threshold_us, 0, NO_LIMIT), NEED(51, pressure.window_us, 0, NO_LIMIT),
	NEED(52, pressure.some_us, 0, NO_LIMIT),      NEED(53, pressure.full_us, 0, NO_LIMIT),
};

static const struct field result_fields[] = {
	NEED(64, result.command_seq, 0, UINT32_MAX),
	NEED(65, result.command_type, 0, UINT16_MAX),
	NEED(66, result.status, 0, 4095),
	MAY(67, result.asked, NO_LIMIT),
	MAY(68, result.done, NO_LIMIT),
	MAY(69, result.took_us, NO_LIMIT),
	NEED(70, result.clock_us, 0, NO_LIMIT),
};

static const struct field bye_fields[] = {
	NEED(80, bye.cause, 0, NO_LIMIT),
	NEED(81, bye.clock_us, 0, NO_LIMIT),
};

static const struct field welcome_fields[] = {
	COMMAND,
	NEED(96, welcome.lease_ms, WIRE_LEASE_MIN_MS, WIRE_LEASE_MAX_MS),
};

static const struct field shed_fields[] = {
	COMMAND,
	NEED(112, shed.bytes, 1, NO_LIMIT),
	NEED(113, shed.swappiness, 0, 200),
	NEED(114, shed.flags, 0, NO_LIMIT),
};

static const struct field rate_fields[] = {
	COMMAND,
	NEED(128, rate.interval_ms, WIRE_INTERVAL_MIN_MS, WIRE_INTERVAL_MAX_MS),
};

static const struct field command_fields[] = { COMMAND };

/* What a type consists of, beside its fields. */
enum part { PART_STATS = 1, PART_KNOBS = 2, PART_TEXT = 4 };

struct shape {
	enum wire_type type;
	const char *name;
	const struct field *fields;
	size_t n_fields;
	unsigned int parts;
	size_t knobs_offset; /* of the struct profile, for PART_KNOBS */
	size_t now_offset; /* of that of the values in force; 0: it has none */
};

#define FIELDS(f) f, sizeof(f) / sizeof(*(f))

static const struct shape shapes[] = {
	{ WIRE_HELLO, "hello", FIELDS(hello_fields), PART_KNOBS | PART_TEXT, AT(hello.own),
	  AT(hello.now) },
	{ WIRE_SAMPLE, "sample", FIELDS(sample_fields), PART_STATS, 0, 0 },
	{ WIRE_PRESSURE, "pressure", FIELDS(pressure_fields), 0, 0, 0 },
	{ WIRE_RESULT, "result", FIELDS(result_fields), 0, 0, 0 },
	{ WIRE_BYE, "bye", FIELDS(bye_fields), 0, 0, 0 },
	{ WIRE_WELCOME, "welcome", FIELDS(welcome_fields), 0, 0, 0 },
	{ WIRE_PROFILE, "profile", FIELDS(command_fields), PART_KNOBS, AT(profile), 0 },
	{ WIRE_SHED, "shed", FIELDS(shed_fields), 0, 0, 0 },
	{ WIRE_SAMPLE_NOW, "sample-now", FIELDS(command_fields), 0, 0, 0 },
	{ WIRE_RATE, "rate", FIELDS(rate_fields), 0, 0, 0 },
};

/* The texts of a hello, eight bytes a pair, filled up with NUL. */
struct text {
	uint16_t base;
	size_t offset, max;
};

static const struct text texts[] = {
	{ RELEASE_BASE, AT(hello.release), WIRE_RELEASE_MAX },
	{ AGENT_BASE, AT(hello.agent), WIRE_AGENT_MAX },
};

_Static_assert(RELEASE_BASE + WIRE_RELEASE_MAX / 8 <= AGENT_BASE, "the texts' tags are apart");
_Static_assert(WIRE_HEADER_SIZE + WIRE_PAIR_SIZE * (STAT_MAX_ID + 2 * KNOB_MAX_ID + 64) <=
		       WIRE_FRAME_MAX,
	       "every message fits a frame");

static const char *const error_names[WIRE_ERROR_MAX] = {
	[WIRE_OK] = "ok",
	[WIRE_MORE] = "more",
	[WIRE_BAD_MAGIC] = "bad-magic",
	[WIRE_BAD_VERSION] = "bad-version",
	[WIRE_OVERSIZE] = "oversize",
	[WIRE_ODD_LENGTH] = "odd-length",
	[WIRE_UNKNOWN_TYPE] = "unknown-type",
	[WIRE_DUPLICATE_TAG] = "duplicate-tag",
	[WIRE_UNORDERED_TAG] = "unordered-tag",
	[WIRE_BAD_CHECK] = "bad-check",
	[WIRE_MISSING_TAG] = "missing-tag",
	[WIRE_BAD_VALUE] = "bad-value",
	[WIRE_BAD_TEXT] = "bad-text",
	[WIRE_TRAILING] = "trailing",
};

const char *wire_error_name(enum wire_error error)
{
	if ((unsigned int)error >= WIRE_ERROR_MAX)
		return "unknown";
	return error_names[error];
}

static const struct shape *find_shape(unsigned int type)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		if (shapes[i].type == type)
			return &shapes[i];
	return NULL;
}

const char *wire_type_name(unsigned int type)
{
	const struct shape *shape = find_shape(type);

	return shape ? shape->name : "unknown";
}

static uint64_t get_le(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | p[n];
	return v;
}

static void put_le(uint8_t *p, size_t n, uint64_t v)
{
	for (size_t i = 0; i < n; i++, v >>= 8)
		p[i] = v & 0xff;
}

uint64_t wire_hash(const uint8_t *buf, size_t size)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ buf[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t *value_at(struct wire_message *msg, size_t offset)
{
	return (uint64_t *)(void *)((char *)msg + offset);
}

/* Encoding: pairs are appended until one doesn't fit, which is seen at the end. */

struct writer {
	uint8_t *buf;
	size_t size, len;
	int error;
};

static void put_pair(struct writer *w, uint16_t tag, uint16_t flags, uint64_t value)
{
	uint8_t *p = w->buf + w->len;

	if (w->size - w->len < WIRE_PAIR_SIZE) {
		w->error = -ENOBUFS;
		return;
	}
	put_le(p, 2, tag);
	put_le(p + 2, 2, flags);
	put_le(p + 4, 8, value);
	w->len += WIRE_PAIR_SIZE;
}

static void put_stats(struct writer *w, const struct wire_sample *sample)
{
	for (int i = 0; i < STAT_MAX_ID; i++)
		if (stat_has(&sample->stats, i))
			put_pair(w, stat_infos[i].tag,
				 sample->approximate >> i & 1 ? PAIR_APPROXIMATE : 0,
				 sample->stats.value[i]);
}

static bool knob_in_range(int id, uint64_t value)
{
	return value >= knob_infos[id].min && value <= knob_infos[id].max;
}

/* The guest's own values may be anything; what the host asks for is in range. */
static void put_knobs(struct writer *w, uint16_t base, const struct profile *profile, bool check)
{
	for (int i = 0; i < KNOB_MAX_ID; i++) {
		if (!knob_has(profile, i))
			continue;
		if (check && !knob_in_range(i, profile->value[i]))
			w->error = -EINVAL;
		put_pair(w, base + knob_infos[i].tag, 0, profile->value[i]);
	}
}

static bool is_printable(uint8_t c)
{
	return c >= 0x20 && c < 0x7f;
}

static void put_text(struct writer *w, const struct text *text, const char *s)
{
	size_t len = strnlen(s, text->max);

	for (size_t i = 0; i < len; i++)
		if (!is_printable((uint8_t)s[i]))
			w->error = -EINVAL;
	for (size_t i = 0; i < len; i += 8) {
		uint8_t chunk[8] = { 0 };

		memcpy(chunk, s + i, len - i < 8 ? len - i : 8);
		put_pair(w, (uint16_t)(text->base + i / 8), 0, get_le(chunk, 8));
	}
}

static void put_fields(struct writer *w, const struct shape *shape, const struct wire_message *msg)
{
	for (size_t i = 0; i < shape->n_fields; i++) {
		const struct field *f = &shape->fields[i];
		uint64_t value;

		memcpy(&value, (const char *)msg + f->offset, sizeof(value));
		if (value < f->min || value > f->max)
			w->error = -EINVAL;
		put_pair(w, f->tag, 0, value);
	}
}

static const struct profile *profile_at(const struct wire_message *msg, size_t offset)
{
	return (const void *)((const char *)msg + offset);
}

ssize_t wire_encode(const struct wire_message *msg, uint8_t *buf, size_t size)
{
	const struct shape *shape = find_shape(msg->type);
	struct writer w = { buf, size, WIRE_HEADER_SIZE, 0 };

	if (!shape)
		return -EINVAL;
	if (size < WIRE_HEADER_SIZE)
		return -ENOBUFS;
	if (shape->parts & PART_STATS)
		put_stats(&w, &msg->sample);
	if (shape->parts & PART_KNOBS)
		put_knobs(&w, KNOB_BASE, profile_at(msg, shape->knobs_offset),
			  wire_from_host(msg->type));
	if (shape->now_offset)
		put_knobs(&w, KNOB_NOW_BASE, profile_at(msg, shape->now_offset), false);
	if (shape->parts & PART_TEXT)
		for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
			put_text(&w, &texts[i], (const char *)msg + texts[i].offset);
	put_fields(&w, shape, msg);
	put_le(buf, 4, WIRE_MAGIC);
	put_le(buf + 4, 2, WIRE_VERSION);
	put_le(buf + 6, 2, msg->type);
	put_le(buf + 8, 4, w.len + WIRE_PAIR_SIZE - WIRE_HEADER_SIZE);
	put_le(buf + 12, 4, msg->seq);
	put_pair(&w, WIRE_TAG_CHECK, 0, wire_hash(buf, w.len));
	return w.error < 0 ? w.error : (ssize_t)w.len;
}

/* Decoding */

static enum wire_error check_header(const uint8_t *buf)
{
	uint64_t length = get_le(buf + 8, 4);

	if (get_le(buf, 4) != WIRE_MAGIC)
		return WIRE_BAD_MAGIC;
	if (get_le(buf + 4, 2) != WIRE_VERSION)
		return WIRE_BAD_VERSION;
	if (length > WIRE_FRAME_MAX - WIRE_HEADER_SIZE)
		return WIRE_OVERSIZE;
	if (length % WIRE_PAIR_SIZE)
		return WIRE_ODD_LENGTH;
	return WIRE_OK;
}

static size_t frame_size(const uint8_t *header)
{
	return WIRE_HEADER_SIZE + (size_t)get_le(header + 8, 4);
}

static enum wire_error check_tags(const uint8_t *buf, size_t size)
{
	int64_t last = -1;

	for (size_t at = WIRE_HEADER_SIZE; at < size; at += WIRE_PAIR_SIZE) {
		int64_t tag = (int64_t)get_le(buf + at, 2);

		if (tag == last)
			return WIRE_DUPLICATE_TAG;
		if (tag < last)
			return WIRE_UNORDERED_TAG;
		last = tag;
	}
	return WIRE_OK;
}

/* The last pair's. */
static enum wire_error check_hash(const uint8_t *buf, size_t size)
{
	const uint8_t *pair = buf + size - WIRE_PAIR_SIZE;

	if (size < WIRE_HEADER_SIZE + WIRE_PAIR_SIZE || get_le(pair, 2) != WIRE_TAG_CHECK)
		return WIRE_MISSING_TAG;
	if (get_le(pair + 4, 8) != wire_hash(buf, size - WIRE_PAIR_SIZE))
		return WIRE_BAD_CHECK;
	return WIRE_OK;
}

static void take_stat(struct wire_sample *sample, uint16_t tag, uint16_t flags, uint64_t value)
{
	int id = stat_by_tag(tag);

	if (id < 0)
		return;
	stat_put(&sample->stats, id, value);
	if (flags & PAIR_APPROXIMATE)
		sample->approximate |= UINT64_C(1) << id;
}

static enum wire_error take_knob(const struct shape *shape, struct wire_message *msg, uint16_t tag,
				 uint64_t value)
{
	bool now = tag >= KNOB_NOW_BASE, check = wire_from_host(shape->type);
	size_t offset = now ? shape->now_offset : shape->knobs_offset;
	struct profile *profile = (void *)((char *)msg + offset);
	int id = knob_by_tag(tag - (now ? KNOB_NOW_BASE : KNOB_BASE));

	if (id < 0 || offset == 0)
		return WIRE_OK;
	if (check && !knob_in_range(id, value))
		return WIRE_BAD_VALUE;
	knob_put(profile, id, value);
	return WIRE_OK;
}

/* Eight bytes of a text: contiguous, printable, and nothing but NUL behind the first NUL. */
static enum wire_error take_text(struct wire_message *msg, uint16_t tag, uint64_t value)
{
	for (size_t t = 0; t < sizeof(texts) / sizeof(*texts); t++) {
		size_t at = (size_t)(tag - texts[t].base) * 8;
		char *s = (char *)msg + texts[t].offset;
		uint8_t chunk[8];

		if (tag < texts[t].base || at >= texts[t].max)
			continue;
		if (strlen(s) != at)
			return WIRE_BAD_TEXT;
		put_le(chunk, 8, value);
		for (size_t i = 0; i < 8; i++)
			if (chunk[i] ? !is_printable(chunk[i]) || (i && !chunk[i - 1]) : i == 0)
				return WIRE_BAD_TEXT;
		memcpy(s + at, chunk, 8);
	}
	return WIRE_OK;
}

static enum wire_error take_field(const struct shape *shape, struct wire_message *msg, uint16_t tag,
				  uint64_t value, uint32_t *seen)
{
	for (size_t i = 0; i < shape->n_fields; i++) {
		const struct field *f = &shape->fields[i];

		if (f->tag != tag)
			continue;
		if (value < f->min || value > f->max)
			return WIRE_BAD_VALUE;
		*value_at(msg, f->offset) = value;
		*seen |= UINT32_C(1) << i;
	}
	return WIRE_OK;
}

static enum wire_error take_pair(const struct shape *shape, struct wire_message *msg,
				 const uint8_t *pair, uint32_t *seen)
{
	uint16_t tag = (uint16_t)get_le(pair, 2), flags = (uint16_t)get_le(pair + 2, 2);
	uint64_t value = get_le(pair + 4, 8);

	if (tag >= FIELD_BASE)
		return take_field(shape, msg, tag, value, seen);
	if (tag >= RELEASE_BASE)
		return shape->parts & PART_TEXT ? take_text(msg, tag, value) : WIRE_OK;
	if (tag >= KNOB_BASE)
		return shape->parts & PART_KNOBS ? take_knob(shape, msg, tag, value) : WIRE_OK;
	if (shape->parts & PART_STATS)
		take_stat(&msg->sample, tag, flags, value);
	return WIRE_OK;
}

/* @buf holds one whole frame whose header is good. */
static enum wire_error decode_body(const uint8_t *buf, size_t size, struct wire_message *ret)
{
	const struct shape *shape = find_shape((unsigned int)get_le(buf + 6, 2));
	enum wire_error error = check_tags(buf, size);
	struct wire_message msg = { 0 };
	uint32_t seen = 0;

	if (!error)
		error = check_hash(buf, size);
	if (error)
		return error;
	if (!shape)
		return WIRE_UNKNOWN_TYPE;
	msg.type = shape->type;
	msg.seq = (uint32_t)get_le(buf + 12, 4);
	for (size_t at = WIRE_HEADER_SIZE; at < size; at += WIRE_PAIR_SIZE) {
		error = take_pair(shape, &msg, buf + at, &seen);
		if (error)
			return error;
	}
	for (size_t i = 0; i < shape->n_fields; i++)
		if (shape->fields[i].required && !(seen >> i & 1))
			return WIRE_MISSING_TAG;
	*ret = msg;
	return WIRE_OK;
}

enum wire_error wire_decode(const uint8_t *buf, size_t size, struct wire_message *ret)
{
	enum wire_error error;

	if (size < WIRE_HEADER_SIZE)
		return WIRE_MORE;
	error = check_header(buf);
	if (error)
		return error;
	if (size < frame_size(buf))
		return WIRE_MORE;
	if (size > frame_size(buf))
		return WIRE_TRAILING;
	return decode_body(buf, size, ret);
}

/* Incremental decoding */

static void drop(struct wire_decoder *dec, size_t n)
{
	memmove(dec->buf, dec->buf + n, dec->have - n);
	dec->have -= n;
}

/* The magic may begin at the end of what is there, so its head counts too. */
static bool may_be_magic(const uint8_t *p, size_t n)
{
	uint8_t magic[4];

	put_le(magic, 4, WIRE_MAGIC);
	return memcmp(p, magic, n < 4 ? n : 4) == 0;
}

/* Throw away the first byte and what follows it, up to the next possible magic. */
static void seek_magic(struct wire_decoder *dec)
{
	size_t at = 1;

	while (at < dec->have && !may_be_magic(dec->buf + at, dec->have - at))
		at++;
	dec->skipped += at;
	drop(dec, at);
}

/* What the head of the buffer is: WIRE_MORE where it may become a frame. */
static enum wire_error examine(const struct wire_decoder *dec, struct wire_message *ret)
{
	enum wire_error error;

	if (!may_be_magic(dec->buf, dec->have))
		return WIRE_BAD_MAGIC;
	if (dec->have < WIRE_HEADER_SIZE)
		return WIRE_MORE;
	error = check_header(dec->buf);
	if (error)
		return error;
	if (dec->have < frame_size(dec->buf))
		return WIRE_MORE;
	return decode_body(dec->buf, frame_size(dec->buf), ret);
}

/* Take as many bytes as are needed before examine() can say more. */
static void fill(struct wire_decoder *dec, const uint8_t **data, size_t *size)
{
	size_t want = dec->have < WIRE_HEADER_SIZE ? WIRE_HEADER_SIZE : frame_size(dec->buf);
	size_t n = want - dec->have < *size ? want - dec->have : *size;

	memcpy(dec->buf + dec->have, *data, n);
	dec->have += n;
	*data += n;
	*size -= n;
}

enum wire_error wire_decoder_push(struct wire_decoder *dec, const uint8_t **data, size_t *size,
				  struct wire_message *ret)
{
	for (;;) {
		enum wire_error error = examine(dec, ret);
		bool was_lost = dec->lost;

		if (error == WIRE_MORE) {
			if (!*size)
				return WIRE_MORE;
			fill(dec, data, size);
			continue;
		}
		if (error == WIRE_OK || error == WIRE_UNKNOWN_TYPE) {
			drop(dec, frame_size(dec->buf));
			dec->lost = false;
			return error;
		}
		seek_magic(dec);
		dec->lost = true;
		if (!was_lost)
			return error;
	}
}

void wire_decoder_reset(struct wire_decoder *dec)
{
	*dec = (struct wire_decoder){ .skipped = dec->skipped };
}
