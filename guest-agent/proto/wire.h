/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frames between ballastd and ballast-agent, as both sides encode and decode them. Pure: no
 * allocation, no I/O, no clock, no global state; any thread may use its own decoder.
 *
 * A frame is a header of 16 bytes and a list of pairs of 12 bytes, all little-endian:
 *
 *   header  magic u32 | version u16 | type u16 | length of the pairs in bytes u32 | sequence u32
 *   pair    tag u16 | flags u16 | value u64
 *
 * at most 4 KiB altogether. The tags of a frame rise strictly, so that a duplicate can't hide and
 * a message has one encoding only; the last, WIRE_TAG_CHECK, holds the FNV-1a hash of all before
 * it, so that two halves of different frames never make a good one. Unknown tags and flags are
 * ignored, a frame of unknown type is skipped (WIRE_UNKNOWN_TYPE): so either side may be the newer
 * one. A frame that breaks a rule is refused as a whole, with a reason.
 *
 * After a bad frame the decoder resyncs: it looks for the next header behind the magic of the bad
 * one, byte by byte, and is silent until a whole frame was good. So a frame that was cut short by
 * the death of its writer doesn't swallow the hello that follows it, and noise of any length is
 * one error.
 *
 * Amounts are bytes, times as their names say. The agent's clock is its CLOCK_MONOTONIC in µs.
 */
#ifndef BALLAST_PROTO_WIRE_H
#define BALLAST_PROTO_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "guest-agent/proto/profile.h"
#include "guest-agent/proto/stats.h"

#define WIRE_PORT_NAME	      "org.ballast.agent.0"

#define WIRE_MAGIC	      UINT32_C(0x54534c42) /* "BLST" */
#define WIRE_VERSION	      1

#define WIRE_HEADER_SIZE      16
#define WIRE_PAIR_SIZE	      12
#define WIRE_FRAME_MAX	      4096
#define WIRE_TAG_CHECK	      0xffff

#define WIRE_INTERVAL_MIN_MS  100 /* between two samples */
#define WIRE_INTERVAL_MAX_MS  60000
#define WIRE_LIFETIME_MAX_MS  60000 /* of a command */
#define WIRE_LEASE_MIN_MS     1000 /* of what was set in the guest */
#define WIRE_LEASE_MAX_MS     600000
#define WIRE_LEASE_DEFAULT_MS 30000

#define WIRE_RELEASE_MAX      64 /* bytes of text, without the NUL */
#define WIRE_AGENT_MAX	      32

enum wire_type {
	/* guest to host */
	WIRE_HELLO = 1, /* first frame of a session, repeated every few seconds */
	WIRE_SAMPLE = 2,
	WIRE_PRESSURE = 3, /* a PSI trigger fired; a SAMPLE follows at once */
	WIRE_RESULT = 4, /* answers every command but WELCOME */
	WIRE_BYE = 5, /* the agent stops; the guest's own values are restored */
	/* host to guest; nothing before HELLO */
	/* after HELLO, and as a sign of life: any good command renews the lease */
	WIRE_WELCOME = 64,
	WIRE_PROFILE = 65, /* the whole profile: what it doesn't name gets the guest's own value */
	WIRE_SHED = 66,
	WIRE_SAMPLE_NOW = 67,
	WIRE_RATE = 68,
};

/* Why a frame was refused. Stable: metrics and tests name them by wire_error_name(). */
enum wire_error {
	WIRE_OK,
	WIRE_MORE, /* no error: the data ends before the frame does */
	WIRE_BAD_MAGIC,
	WIRE_BAD_VERSION,
	WIRE_OVERSIZE, /* longer than WIRE_FRAME_MAX */
	WIRE_ODD_LENGTH, /* not a whole number of pairs */
	WIRE_UNKNOWN_TYPE, /* well formed, of no use to this side; the stream goes on behind it */
	WIRE_DUPLICATE_TAG, /* twice the same tag */
	WIRE_UNORDERED_TAG, /* a tag below the one before */
	WIRE_BAD_CHECK, /* the hash isn't that of the frame */
	WIRE_MISSING_TAG, /* the type needs a tag that isn't there */
	WIRE_BAD_VALUE, /* a known tag's value is out of its range */
	WIRE_BAD_TEXT, /* not printable ASCII, or not contiguous */
	WIRE_TRAILING, /* wire_decode() only: bytes behind the frame */
	WIRE_ERROR_MAX,
};

/* wire_hello.capabilities */
#define WIRE_CAP_SAMPLE	     (UINT64_C(1) << 0) /* the guest's owner permits samples */
#define WIRE_CAP_PROFILE     (UINT64_C(1) << 1) /* ... profiles */
#define WIRE_CAP_SHED	     (UINT64_C(1) << 2) /* ... shedding */
#define WIRE_CAP_LAZYFREE    (UINT64_C(1) << 8) /* kernel counts nr_lazyfree */
#define WIRE_CAP_EXEC	     (UINT64_C(1) << 9) /* kernel counts nr_exec_mapped */
#define WIRE_CAP_EXEC_EVENTS (UINT64_C(1) << 10) /* kernel counts pgsteal_exec and its sisters */
#define WIRE_CAP_PSI	     (UINT64_C(1) << 11) /* /proc/pressure/memory is there */
#define WIRE_CAP_PSI_TRIGGER (UINT64_C(1) << 12) /* ... and a trigger is armed */
#define WIRE_CAP_RECLAIM     (UINT64_C(1) << 13) /* memory.reclaim can be written */
#define WIRE_CAP_REPORTING   (UINT64_C(1) << 14) /* free page reporting was negotiated */
#define WIRE_CAP_BALLOON     (UINT64_C(1) << 15) /* a balloon driver is bound */
#define WIRE_CAP_AUTODEFLATE (UINT64_C(1) << 16) /* the balloon may deflate by itself on OOM */
#define WIRE_CAP_MGLRU	     (UINT64_C(1) << 17) /* the multi-generational LRU is in use */

/* wire_shed.flags: lazyfree memory is always permitted */
#define WIRE_SHED_FILE (UINT64_C(1) << 0) /* cold page cache too */
#define WIRE_SHED_ANON (UINT64_C(1) << 1) /* anonymous memory too */

/* why a sample was taken */
enum wire_sample_cause { WIRE_CAUSE_TIMER, WIRE_CAUSE_ASKED, WIRE_CAUSE_PRESSURE };

enum wire_psi_kind { WIRE_PSI_SOME, WIRE_PSI_FULL };

enum wire_bye_cause { WIRE_BYE_STOP, WIRE_BYE_REFUSED /* by the owner's configuration */ };

struct wire_hello {
	uint64_t protocol; /* newest version that the agent speaks */
	uint64_t nonce; /* new for each session; the host repeats it in each command */
	uint64_t boot_id_hi, boot_id_lo;
	uint64_t page_size;
	uint64_t kernel_major, kernel_minor, kernel_patch;
	uint64_t capabilities; /* WIRE_CAP_ */
	uint64_t knobs_writable; /* wire_knob_bit() of each knob that a PROFILE can set */
	uint64_t interval_ms; /* between two samples */
	uint64_t clock_us; /* the agent's clock at sending */
	struct profile own; /* the guest's own values, of the knobs that its kernel has */
	struct profile now; /* what is in force of them; older agents don't say */
	char release[WIRE_RELEASE_MAX + 1]; /* kernel release; printable ASCII */
	char agent[WIRE_AGENT_MAX + 1]; /* agent version; printable ASCII */
};

struct wire_sample {
	uint64_t clock_us; /* the agent's clock when the numbers were read */
	uint64_t uptime_us; /* since the guest booted, with suspends */
	uint64_t slow_age_us; /* age of swap_entries; 0 where no swap is in use, and so none are */
	uint64_t cause; /* enum wire_sample_cause */
	uint64_t interval_ms; /* in force */
	uint64_t cost_us; /* CPU time that the agent has used since it started */
	struct stat_set stats;
	uint64_t approximate; /* bit a stat_id: not counted by the kernel but estimated */
};

struct wire_pressure {
	uint64_t clock_us; /* the agent's clock when the trigger fired */
	uint64_t kind; /* enum wire_psi_kind of the trigger */
	uint64_t threshold_us; /* stall in a window that fires the trigger */
	uint64_t window_us;
	uint64_t some_us, full_us; /* PSI totals of memory */
};

struct wire_result {
	uint64_t command_seq; /* sequence of the command that this answers */
	uint64_t command_type; /* enum wire_type */
	/*
	 * 0, or a positive errno of Linux: ESTALE for a foreign nonce, ETIME for an expired
	 * lifetime, EPERM where the guest's owner says no, EOPNOTSUPP where its kernel can't,
	 * EAGAIN where pressure stopped a shed, EBUSY while another shed goes on.
	 */
	uint64_t status;
	uint64_t asked; /* SHED: bytes; PROFILE: wire_knob_bit() of each knob asked */
	uint64_t done; /* SHED: bytes freed; PROFILE: wire_knob_bit() of each knob in force */
	uint64_t took_us;
	uint64_t clock_us; /* the agent's clock at sending */
};

struct wire_bye {
	uint64_t cause; /* enum wire_bye_cause */
	uint64_t clock_us;
};

/* What each frame from the host carries beside its own fields. */
struct wire_command {
	uint64_t nonce; /* of the hello */
	uint64_t lifetime_ms; /* not carried out later than that after it was sent */
	/*
	 * When it was sent, by the agent's clock as the host estimates it: clock_us of the last
	 * frame and the time since. 0 if unknown: then the lifetime starts on arrival.
	 */
	uint64_t sent_us;
};

struct wire_welcome {
	/* silence of the host after which the agent restores the guest's own values */
	uint64_t lease_ms;
};

struct wire_shed {
	uint64_t bytes;
	uint64_t swappiness; /* 0 to 200, for the part that WIRE_SHED_ANON permits; otherwise 0 */
	uint64_t flags; /* WIRE_SHED_ */
};

struct wire_rate {
	uint64_t interval_ms;
};

struct wire_message {
	enum wire_type type;
	uint32_t seq; /* counts the frames of each direction of a session; RESULT refers to it */
	struct wire_command command; /* types from the host only */
	union {
		struct wire_hello hello;
		struct wire_sample sample;
		struct wire_pressure pressure;
		struct wire_result result;
		struct wire_bye bye;
		struct wire_welcome welcome;
		struct profile profile;
		struct wire_shed shed;
		struct wire_rate rate;
	};
};

/* Incremental decoder. Start with all zero. Bounded: it holds at most one frame. */
struct wire_decoder {
	uint8_t buf[WIRE_FRAME_MAX];
	size_t have;
	bool lost; /* looking for a header */
	uint64_t skipped; /* bytes thrown away so far */
};

static inline uint64_t wire_knob_bit(enum knob_id id)
{
	return UINT64_C(1) << knob_infos[id].tag;
}

/* Whether a type is one that the host sends. */
static inline bool wire_from_host(enum wire_type type)
{
	return type >= WIRE_WELCOME;
}

/**
 * wire_error_name() - the stable name of a reason, such as "bad-magic".
 *
 * Return: a static string, "unknown" outside of the enum.
 */
const char *wire_error_name(enum wire_error error);

/**
 * wire_type_name() - the name of a type, such as "hello".
 *
 * Return: a static string, "unknown" for a type that this side doesn't know.
 */
const char *wire_type_name(unsigned int type);

/**
 * wire_hash() - what WIRE_TAG_CHECK holds: the FNV-1a hash of the bytes before its pair.
 */
uint64_t wire_hash(const uint8_t *buf, size_t size);

/**
 * wire_encode() - make a frame from a message.
 * @buf: where to; WIRE_FRAME_MAX bytes are enough for any message.
 * @size: bytes at @buf.
 *
 * Return: the frame's length in bytes, -EINVAL where the type is unknown or a value is one that
 * the other side would refuse, -ENOBUFS where @size is too small.
 */
ssize_t wire_encode(const struct wire_message *msg, uint8_t *buf, size_t size);

/**
 * wire_decode() - make a message from exactly one frame.
 * @ret: the message, for WIRE_OK only; all of it is written.
 *
 * Return: WIRE_OK, WIRE_MORE where @size is less than the frame, or why the frame is refused.
 */
enum wire_error wire_decode(const uint8_t *buf, size_t size, struct wire_message *ret);

/**
 * wire_decoder_push() - take bytes until a message or an error comes out.
 * @data: the bytes; advanced over those taken.
 * @size: how many; lessened by those taken.
 * @ret: the message, for WIRE_OK only.
 *
 * Call it again with the rest until it says WIRE_MORE, which means that all bytes are taken and
 * that more are needed. Any other value is the reason why bytes were refused; the decoder has
 * resynced then and the next call goes on.
 */
enum wire_error wire_decoder_push(struct wire_decoder *dec, const uint8_t **data, size_t *size,
				  struct wire_message *ret);

/**
 * wire_decoder_reset() - forget a half frame, for a new connection.
 */
void wire_decoder_reset(struct wire_decoder *dec);

#endif
