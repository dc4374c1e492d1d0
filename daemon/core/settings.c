// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/core/settings.h"

#include <fnmatch.h>
#include <string.h>
#include <strings.h>

#define MIB	 (UINT64_C(1) << 20)
#define SECOND	 UINT64_C(1000000)
#define KEEP_OWN UINT64_MAX /* of a setting in a profile: as the guest has it */

uint64_t amount_resolve(const struct amount *amount, uint64_t whole, uint64_t fallback)
{
	switch (amount->kind) {
	case AMOUNT_BYTES:
		return amount->value;
	case AMOUNT_PERCENT:
		/* In this order a whole of any size and a percentage of up to 10,000 % fit. */
		return whole / 10000 * amount->value + whole % 10000 * amount->value / 10000;
	case AMOUNT_NONE:
		break;
	}
	return fallback;
}

uint64_t settings_fresh_limit(const struct settings *settings)
{
	uint64_t interval = settings->host.interval_us > settings->host.stats_interval_us
				    ? settings->host.interval_us
				    : settings->host.stats_interval_us;

	return 3 * (interval > SECOND ? interval : SECOND);
}

const char *mode_name(enum mode mode)
{
	return mode == MODE_ACT ? "act" : "observe";
}

const char *manage_name(enum manage manage)
{
	static const char *const names[] = {
		[MANAGE_ACT] = "act",
		[MANAGE_OBSERVE] = "observe",
		[MANAGE_NO] = "no",
	};

	return names[manage];
}

static void default_profiles(struct profile profiles[LEVEL_MAX_ID])
{
	static const struct {
		enum knob_id knob;
		uint64_t value[LEVEL_MAX_ID];
	} rows[] = {
		{ KNOB_REPORTING_DELAY_MS, { 2000, 500, 100 } },
		{ KNOB_EXEC_PROTECT, { 2, 2, 3 } },
		{ KNOB_LAZYFREE_FIRST, { 0, 2, 2 } },
		{ KNOB_ANON_PREFAULT_MAX_ORDER, { 3, 1, 0 } },
		{ KNOB_REPORTING_BUDGET, { 1, 4, 16 } },
		/*
		 * What a shed frees stays in per-CPU lists otherwise, up to an eighth of the guest, and
		 * is neither counted as free nor reported for ten seconds and more. It costs 3 % of the
		 * instructions of a page fault, so only where time matters more.
		 */
		{ KNOB_PCP_HIGH_FRACTION, { KEEP_OWN, KEEP_OWN, 1000 } },
	};

	for (int level = 0; level < LEVEL_MAX_ID; level++)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			if (rows[i].value[level] != KEEP_OWN)
				knob_put(&profiles[level], rows[i].knob, rows[i].value[level]);
}

void settings_init_defaults(struct settings *settings)
{
	*settings = (struct settings){
		.host = {
			.mode = MODE_OBSERVE,
			.budget_kind = BUDGET_HOST,
			.headroom = { AMOUNT_PERCENT, 200 },
			.grant_pool = { AMOUNT_PERCENT, 300 },
			.tight_below = 1000,
			.critical_below = 300,
			.level_min_stay_us = 10 * SECOND,
			.psi_low = 100,
			.psi_high = 1000,
			.interval_us = SECOND,
			.stats_interval_us = SECOND,
			.lock_after_us = 10 * SECOND,
			.uri = "qemu:///system",
		},
		.defaults = {
			.manage = MANAGE_ACT,
			.min = { AMOUNT_PERCENT, 2500 },
			.max = { AMOUNT_PERCENT, 10000 },
			.burst = { AMOUNT_BYTES, 16 * MIB },
			.shares = 1000,
			.swap = SWAP_CRITICAL,
			.stale = STALE_LOWER,
			.stale_grace_us = 60 * SECOND,
			.boot_grace_us = 60 * SECOND,
			.on_stop = LEAVE_HOLD,
			.on_migrate = LEAVE_HOLD,
		},
	};
	default_profiles(settings->host.profiles);
}

static bool rule_matches(const struct guest_rule *rule, const char *name, const char *uuid_text,
			 const char *metadata)
{
	switch (rule->kind) {
	case MATCH_NAME:
		return fnmatch(rule->pattern, name, 0) == 0;
	case MATCH_UUID:
		return strcasecmp(rule->pattern, uuid_text) == 0;
	case MATCH_METADATA:
		return metadata && fnmatch(rule->pattern, metadata, 0) == 0;
	}
	return false;
}

const struct guest_settings *settings_for_guest(const struct settings *settings, const char *name,
						const char *uuid_text, const char *metadata,
						int *ret_rule)
{
	for (size_t i = 0; i < settings->n_rules; i++) {
		if (!rule_matches(&settings->rules[i], name, uuid_text, metadata))
			continue;
		if (ret_rule)
			*ret_rule = (int)i;
		return &settings->rules[i].guest;
	}
	if (ret_rule)
		*ret_rule = -1;
	return &settings->defaults;
}
