/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The numbers that a guest reports, as made from stats.def. A stat_set holds one sample: for each
 * statistic a value and whether it is there at all. Absent is never zero. Plain data without
 * ownership; any thread that owns the set may use it.
 */
#ifndef BALLAST_PROTO_STATS_H
#define BALLAST_PROTO_STATS_H

#include <stdbool.h>
#include <stdint.h>

enum stat_id {
#define STAT(tag, id, name, kind, unit, source, key, text) STAT_##id,
#include "guest-agent/proto/stats.def"
#undef STAT
	STAT_MAX_ID,
};

enum stat_unit { STAT_UNIT_BYTES, STAT_UNIT_COUNT, STAT_UNIT_USEC };
enum stat_source {
	STAT_SOURCE_MEMINFO,
	STAT_SOURCE_VMSTAT,
	STAT_SOURCE_VMSTAT_PAGES,
	STAT_SOURCE_PSI,
	STAT_SOURCE_COMPUTED,
};

struct stat_info {
	uint16_t tag;
	const char *name;
	enum stat_unit unit;
	enum stat_source source;
	const char *key;
	const char *text;
};

/* One row a statistic, in the order of enum stat_id. */
extern const struct stat_info stat_infos[STAT_MAX_ID];

struct stat_set {
	uint64_t value[STAT_MAX_ID];
	uint64_t present; /* bit a statistic */
};

_Static_assert(STAT_MAX_ID <= 64, "stat_set.present has one bit a statistic");

static inline bool stat_has(const struct stat_set *set, enum stat_id id)
{
	return set->present >> id & 1;
}

static inline void stat_put(struct stat_set *set, enum stat_id id, uint64_t value)
{
	set->value[id] = value;
	set->present |= UINT64_C(1) << id;
}

/**
 * stat_get() - read a statistic.
 * @ret_value: its value in the unit of stat_infos[]; untouched where it is absent.
 *
 * Return: whether it is present.
 */
static inline bool stat_get(const struct stat_set *set, enum stat_id id, uint64_t *ret_value)
{
	if (!stat_has(set, id))
		return false;
	*ret_value = set->value[id];
	return true;
}

/**
 * stat_by_tag() - find a statistic by its number on the wire.
 *
 * Return: its stat_id, or -1 for a tag that this side doesn't know.
 */
int stat_by_tag(uint16_t tag);

#endif
