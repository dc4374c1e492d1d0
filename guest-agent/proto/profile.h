/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest settings that the host may ask for: an enumeration, never a path, so that a host can
 * name nothing in the guest that isn't listed here. A profile gives a value for some of them and
 * leaves the others to the guest. Plain data without ownership.
 */
#ifndef BALLAST_PROTO_PROFILE_H
#define BALLAST_PROTO_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

enum knob_id {
	KNOB_EXEC_PROTECT, /* vm.exec_protect */
	KNOB_LAZYFREE_FIRST, /* vm.lazyfree_first */
	KNOB_ANON_PREFAULT_MAX_ORDER, /* vm.anon_prefault_max_order */
	KNOB_SWAPPINESS, /* vm.swappiness */
	KNOB_REPORTING_DELAY_MS, /* page_reporting's page_reporting_delay_ms */
	KNOB_REPORTING_ORDER, /* page_reporting's page_reporting_order */
	KNOB_REPORTING_BUDGET, /* page_reporting's page_reporting_budget */
	KNOB_PCP_HIGH_FRACTION, /* vm.percpu_pagelist_high_fraction */
	KNOB_MAX_ID,
};

struct knob_info {
	uint16_t tag; /* number on the wire */
	const char *name; /* as in the configuration: "exec_protect" */
	const char *path; /* file in the guest, used by the agent alone */
	uint64_t min, max; /* that the host may ask for */
	/*
	 * Its values are levels, each with more of the same: a kernel that refuses one (vm.exec_protect
	 * has two in a kernel without CONFIG_EXEC_MAPCOUNT) is given the next lower.
	 */
	bool levels;
};

extern const struct knob_info knob_infos[KNOB_MAX_ID];

struct profile {
	uint64_t value[KNOB_MAX_ID];
	uint32_t present; /* bit a knob: absent leaves the guest's own value */
};

static inline bool knob_has(const struct profile *profile, enum knob_id id)
{
	return profile->present >> id & 1;
}

static inline void knob_put(struct profile *profile, enum knob_id id, uint64_t value)
{
	profile->value[id] = value;
	profile->present |= UINT32_C(1) << id;
}

static inline void knob_drop(struct profile *profile, enum knob_id id)
{
	profile->value[id] = 0;
	profile->present &= ~(UINT32_C(1) << id);
}

/**
 * profile_equal() - whether two profiles name the same settings with the same values.
 */
bool profile_equal(const struct profile *a, const struct profile *b);

/**
 * knob_by_name() - find a knob by the name that the configuration uses.
 *
 * Return: its knob_id, or -1.
 */
int knob_by_name(const char *name);

/**
 * knob_by_tag() - find a knob by its number on the wire.
 *
 * Return: its knob_id, or -1.
 */
int knob_by_tag(uint16_t tag);

#endif
