// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest-agent/proto/profile.h"

#include <string.h>

#define REPORTING "/sys/module/page_reporting/parameters/"

const struct knob_info knob_infos[KNOB_MAX_ID] = {
	[KNOB_EXEC_PROTECT] = { 1, "exec_protect", "/proc/sys/vm/exec_protect", 0, 3 },
	[KNOB_LAZYFREE_FIRST] = { 2, "lazyfree_first", "/proc/sys/vm/lazyfree_first", 0, 2 },
	[KNOB_ANON_PREFAULT_MAX_ORDER] = { 3, "anon_prefault_max_order",
					   "/proc/sys/vm/anon_prefault_max_order", 0, 4 },
	[KNOB_SWAPPINESS] = { 4, "swappiness", "/proc/sys/vm/swappiness", 0, 200 },
	[KNOB_REPORTING_DELAY_MS] = { 5, "reporting_delay_ms", REPORTING "page_reporting_delay_ms",
				      10, 60000 },
	[KNOB_REPORTING_ORDER] = { 6, "reporting_order", REPORTING "page_reporting_order", 0, 10 },
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
