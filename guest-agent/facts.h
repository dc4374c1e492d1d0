/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What doesn't change while the guest runs: who it is and what its kernel can do.
 */
#ifndef BALLAST_AGENT_FACTS_H
#define BALLAST_AGENT_FACTS_H

#include <stdint.h>

#include "guest-agent/knobs.h"
#include "guest-agent/procfs.h"
#include "guest-agent/proto/wire.h"
#include "guest-agent/trigger.h"

/**
 * facts_reclaim_path() - where to write for a reclaim of the whole guest.
 * @ret: AGENT_PATH_MAX bytes, without the root.
 *
 * Return: 0, or a negative errno: no cgroup2, or its root has no memory.reclaim.
 */
int facts_reclaim_path(const char *root, char *ret);

/**
 * facts_collect() - fill in a hello, all but nonce, interval and clock.
 * @allow: what the guest's owner permits, WIRE_CAP_.
 * @numbers: of a sample just taken: which numbers the kernel counts.
 */
void facts_collect(const char *root, uint64_t allow, const struct numbers *numbers,
		   const struct knobs *knobs, const struct trigger *trigger,
		   struct wire_hello *ret);

#endif
