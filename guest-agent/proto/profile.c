// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest-agent/proto/profile.h"

#include <string.h>

#define VM	  "/proc/sys/vm/"
#define REPORTING "/sys/module/page_reporting/parameters/"

const struct knob_info knob_infos[KNOB_MAX_ID] = {
	[KNOB_EXEC_PROTECT] = { 1, "exec_protect", VM "exec_protect", 0, 3, true },
	[KNOB_LAZYFREE_FIRST] = { 2, "lazyfree_first", VM "lazyfree_first", 0, 2, true },
	[KNOB_ANON_PREFAULT_MAX_ORDER] = { 3, "anon_prefault_max_order",
					   VM "anon_prefault_max_order", 0, 4, true },
	[KNOB_SWAPPINESS] = { 4, "swappiness", VM "swappiness", 0, 200, false },
	[KNOB_REPORTING_DELAY_MS] = { 5, "reporting_delay_ms", REPORTING "page_reporting_delay_ms",
				      10, 60000, false },
	[KNOB_REPORTING_ORDER] = { 6, "reporting_order", REPORTING "page_reporting_order", 0, 10,
				   false },
	/* Not 0, which would stop reporting: the host relies on it. */
	[KNOB_REPORTING_BUDGET] = { 7, "reporting_budget", REPORTING "page_reporting_budget", 1, 16,
				    false },
	/* The kernel takes none below 8, but for 0, which is its own choice. */
	[KNOB_PCP_HIGH_FRACTION] = { 8, "percpu_pagelist_high_fraction",
				     VM "percpu_pagelist_high_fraction", 8, 100000, false },
};

int knob_by_name(const char *name)
{
	for (int i = 0; i < KNOB_MAX_ID; i++)
		if (strcmp(knob_infos[i].name, name) == 0)
			return i;
	return -1;
}

int knob_by_tag(uint16_t tag)
{
	for (int i = 0; i < KNOB_MAX_ID; i++)
		if (knob_infos[i].tag == tag)
			return i;
	return -1;
}

bool profile_equal(const struct profile *a, const struct profile *b)
{
	if (a->present != b->present)
		return false;
	for (int i = 0; i < KNOB_MAX_ID; i++)
		if (knob_has(a, i) && a->value[i] != b->value[i])
			return false;
	return true;
}
