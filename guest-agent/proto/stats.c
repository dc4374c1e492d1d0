// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest-agent/proto/stats.h"

const struct stat_info stat_infos[STAT_MAX_ID] = {
#define STAT(tag_, id_, name_, kind_, unit_, source_, key_, text_)                                 \
	[STAT_##id_] = {                                                                           \
		.tag = (tag_),                                                                     \
		.name = (name_),                                                                   \
		.unit = STAT_UNIT_##unit_,                                                         \
		.source = STAT_SOURCE_##source_,                                                   \
		.key = (key_),                                                                     \
		.text = (text_),                                                                   \
	},
#include "guest-agent/proto/stats.def"
#undef STAT
};

int stat_by_tag(uint16_t tag)
{
	for (int i = 0; i < STAT_MAX_ID; i++)
		if (stat_infos[i].tag == tag)
			return i;
	return -1;
}
