/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The schema: one row for each key, with its type, range, where its value goes and a sentence of
 * help. Reading, checking and dumping walk this table, and a test holds the example and the manual
 * page against it. Internal to daemon/config. Constant data.
 */
#ifndef BALLAST_CONFIG_SCHEMA_H
#define BALLAST_CONFIG_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/settings.h"

enum key_type {
	KEY_WORD, /* an enum of 4 bytes: index in words */
	KEY_BOOL, /* bool */
	KEY_PERCENT, /* uint32_t, 1/100 % */
	KEY_AMOUNT, /* struct amount */
	KEY_DURATION, /* uint64_t, us */
	KEY_COUNT, /* uint32_t */
	KEY_FILE, /* char[SETTINGS_PATH_MAX], absolute or empty */
	KEY_URI, /* char[SETTINGS_PATH_MAX] */
	KEY_PROFILE, /* struct profile: a map with the names of knob_infos; words[0] unsets */
	KEY_BUDGET, /* its keys, or a scalar as a short form of size */
	KEY_BUDGET_SIZE, /* an amount or a word, sets the kind of budget, too */
	KEY_CGROUP, /* char[SETTINGS_PATH_MAX], sets the kind of budget, too */
	KEY_PATTERN, /* how a rule matches; min is its enum match_kind */
	KEY_MAP, /* more keys, with the same base */
	KEY_GUEST, /* more keys, with a struct guest_settings at offset as their base */
	KEY_RULES, /* a list of rules */
	KEY_RULE, /* one of them: a struct guest_rule */
};

struct key {
	const char *name;
	enum key_type type;
	size_t offset; /* from the base: settings, guest_settings or guest_rule */
	uint64_t min, max; /* of the value; of an amount given in bytes */
	uint64_t percent_min, percent_max; /* of an amount given as a percentage, 1/100 % */
	const char *const *words; /* ends with NULL */
	const struct key *keys; /* ends with a row without a name */
	const char *help;
};

extern const struct key schema_root[]; /* base: struct settings */
extern const struct key schema_guest[]; /* base: struct guest_settings */
extern const struct key schema_match[]; /* base: struct guest_rule */

/**
 * schema_find() - the row of a name in a table, or NULL.
 */
const struct key *schema_find(const struct key *keys, const char *name);

/**
 * schema_expects() - what a value of that type looks like, for a message.
 */
const char *schema_expects(const struct key *key);

#endif
