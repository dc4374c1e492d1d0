/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The configuration as the daemon uses it: plain values in bytes and microseconds, filled by
 * daemon/config from YAML and never changed afterwards. A reload makes a new struct settings and
 * swaps the pointer between two rounds. Owned by the application; read by one thread.
 */
#ifndef BALLAST_CORE_SETTINGS_H
#define BALLAST_CORE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest-agent/proto/profile.h"

#define SETTINGS_NAME_MAX 128
#define SETTINGS_PATH_MAX 256

/* An amount of memory: a size, or a share of a whole that is known only at run time. */
enum amount_kind { AMOUNT_NONE, AMOUNT_BYTES, AMOUNT_PERCENT };

struct amount {
	enum amount_kind kind;
	uint64_t value; /* bytes, or hundredths of a percent */
};

enum mode { MODE_OBSERVE, MODE_ACT };
enum level { LEVEL_RELAXED, LEVEL_TIGHT, LEVEL_CRITICAL, LEVEL_MAX_ID };
enum budget_kind { BUDGET_HOST, BUDGET_AMOUNT, BUDGET_CGROUP };
enum manage { MANAGE_ACT, MANAGE_OBSERVE, MANAGE_NO };
enum stale_rule { STALE_LOWER, STALE_HOLD };
enum leave_rule { LEAVE_HOLD, LEAVE_RELEASE };
/* May reclaim in the guest write anonymous memory to the guest's swap? */
enum swap_rule { SWAP_NEVER, SWAP_CRITICAL, SWAP_ALLOWED };

struct host_settings {
	enum mode mode;
	enum budget_kind budget_kind;
	struct amount budget; /* of the host's memory, where budget_kind is BUDGET_AMOUNT */
	char budget_cgroup[SETTINGS_PATH_MAX];
	bool budget_hard;
	struct amount headroom; /* floor of R, of the budget */
	struct amount grant_pool; /* of the budget */
	/* Levels, by the room that is left under the budget, as a share of it (1/100 %). */
	uint32_t tight_below, critical_below;
	uint64_t level_min_stay_us;
	/* Host PSI, some, avg10, in 1/100 %, from which R is scaled, and at which it is doubled. */
	uint32_t psi_low, psi_high;
	uint64_t interval_us; /* between rounds */
	uint64_t stats_interval_us; /* between two samples of the hypervisor's statistics */
	uint64_t lock_after_us; /* a shortage that outlasts this locks, though budget is soft */
	struct profile profiles[LEVEL_MAX_ID];
	char uri[SETTINGS_PATH_MAX];
	char shortfall_hook[SETTINGS_PATH_MAX]; /* program run when the need can't be met, or "" */
};

struct guest_settings {
	enum manage manage;
	struct amount min, max; /* of the domain's maximum memory */
	struct amount burst; /* room above the footprint that a lock leaves */
	uint32_t shares; /* 1..10000, weight = shares / 1000 */
	enum swap_rule swap;
	bool proactive;
	enum stale_rule stale;
	uint64_t stale_grace_us;
	uint64_t boot_grace_us;
	enum leave_rule on_stop, on_migrate;
	struct profile sysctl; /* wins over the level's profile */
};

enum match_kind { MATCH_NAME, MATCH_UUID, MATCH_METADATA };

struct guest_rule {
	enum match_kind kind;
	char pattern[SETTINGS_NAME_MAX]; /* fnmatch(3) pattern, UUID in text, or metadata value */
	struct guest_settings guest; /* complete: what the rule leaves out is from defaults */
};

struct settings {
	struct host_settings host;
	struct guest_settings defaults;
	struct guest_rule *rules; /* in order, the first that matches wins */
	size_t n_rules;
};

/**
 * amount_resolve() - the bytes of an amount.
 * @whole: bytes that a percentage is of.
 * @fallback: bytes to use for AMOUNT_NONE.
 */
uint64_t amount_resolve(const struct amount *amount, uint64_t whole, uint64_t fallback);

/**
 * settings_fresh_limit() - the age in microseconds up to which a sampled number counts as fresh:
 * three of the intervals at which it is sampled, and 3 s at least, so that one lost sample is
 * no alarm.
 */
uint64_t settings_fresh_limit(const struct settings *settings);

/* The names that the configuration, status and JSON use. */
const char *mode_name(enum mode mode);
const char *manage_name(enum manage manage);

/**
 * settings_init_defaults() - fill @settings with the built-in defaults, without rules.
 */
void settings_init_defaults(struct settings *settings);

/**
 * settings_for_guest() - the settings of one guest.
 * @name: domain name. @uuid_text: in the canonical 36-character form. @metadata: the value of the
 *        domain's ballast metadata element, or NULL.
 * @ret_rule: index of the rule that matched, -1 for the defaults; may be NULL.
 */
const struct guest_settings *settings_for_guest(const struct settings *settings, const char *name,
						const char *uuid_text, const char *metadata,
						int *ret_rule);

#endif
