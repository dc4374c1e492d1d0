/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is known at one moment: of the host, and of each guest. Each source writes its own part
 * and sets the part's at_us to the monotonic time at which the source saw it (0: never seen), so
 * that every number is fresh, stale or absent by its own age; absent is never zero. All amounts in
 * bytes, all times in microseconds of CLOCK_MONOTONIC. Plain data, owned by the application,
 * written and read in one thread.
 */
#ifndef BALLAST_CORE_SNAPSHOT_H
#define BALLAST_CORE_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/settings.h"
#include "guest-agent/proto/stats.h"

#define GUEST_NAME_MAX 256 /* a domain of QEMU has a file of that name */
#define GUEST_MAX      10240 /* guests of one host */

enum freshness { NUMBER_ABSENT, NUMBER_STALE, NUMBER_FRESH };

struct host_snapshot {
	uint64_t at_us; /* of the numbers from meminfo */
	uint64_t total, free, available, swap_total, swap_free;
	uint64_t psi_at_us; /* 0: this kernel has no PSI */
	uint32_t psi_some_avg10, psi_full_avg10; /* 1/100 % */
	uint64_t cgroup_at_us; /* of the cgroup that the budget names, 0: none */
	uint64_t cgroup_usage, cgroup_limit;
	bool thp_always; /* transparent huge pages back guests, where their process permits it */
};

enum guest_phase {
	PHASE_RUNNING,
	PHASE_BOOTING,
	PHASE_PAUSED,
	PHASE_MIGRATING,
	PHASE_SAVING,
	PHASE_BLOCKED, /* the hypervisor doesn't answer for it */
	PHASE_STOPPED,
	PHASE_MAX_ID,
};

/* Why a guest can't be ballooned, found in its live XML: a bit each. */
enum guest_obstacle {
	OBSTACLE_NO_BALLOON = 1 << 0,
	OBSTACLE_PASSTHROUGH = 1 << 1, /* VFIO pins the guest's memory */
	OBSTACLE_LOCKED = 1 << 2, /* memoryBacking/locked */
	OBSTACLE_HUGEPAGES = 1 << 3, /* memoryBacking/hugepages: not this budget's memory */
	OBSTACLE_SHARED = 1 << 4, /* shared memory file: footprint can't be told */
};

/* What the hypervisor says of the balloon. */
struct balloon_part {
	uint64_t at_us;
	uint64_t actual; /* what the guest is allowed (commitment C) */
	uint64_t maximum; /* the domain's maximum memory */
	bool autodeflate, reporting;
};

/* Balloon driver statistics through the hypervisor: there without an agent, too. */
struct driver_part {
	uint64_t at_us; /* when last-update was last seen to change */
	bool has_usable, has_unused;
	uint64_t usable, unused;
};

/* What the guest's QEMU costs the host. */
struct cost_part {
	uint64_t at_us;
	uint64_t resident; /* RssAnon + RssShmem */
	uint64_t swapped; /* VmSwap */
	uint64_t overhead; /* QEMU's own, as measured or estimated */
	uint64_t footprint; /* H = resident + swapped - overhead, at most maximum */
	bool thp; /* huge pages are permitted in this process */
};

/* Capabilities from the agent's hello: a bit each. */
enum agent_capability {
	AGENT_MAY_SAMPLE = 1 << 0,
	AGENT_MAY_PROFILE = 1 << 1,
	AGENT_MAY_SHED = 1 << 2,
	AGENT_HAS_RECLAIM = 1 << 3, /* memory.reclaim can be written */
	AGENT_HAS_REPORTING = 1 << 4, /* free page reporting is in the guest's kernel */
	AGENT_HAS_LAZYFREE_FIRST = 1 << 5,
	AGENT_HAS_EXEC_PROTECT = 1 << 6,
};

enum agent_link {
	AGENT_NONE, /* the domain has no such channel */
	AGENT_CONNECTING, /* channel there, not connected yet */
	AGENT_SILENT, /* connected, no hello within 5 s: no agent in the guest */
	AGENT_BUSY, /* someone else holds the channel */
	AGENT_UP,
	AGENT_BROKEN, /* it sent what isn't the protocol */
	AGENT_LINK_MAX_ID,
};

struct agent_part {
	enum agent_link link;
	uint32_t capabilities;
	uint64_t at_us; /* arrival of the last sample */
	struct stat_set stats;
	/* Bit a stat_id: the guest's kernel doesn't count it, it is estimated. */
	uint64_t approximate;
	uint64_t swap_entries_age_us; /* it may be sampled more slowly than the rest */
	uint64_t previous_at_us; /* the sample before, 0: none since the agent's hello */
	struct stat_set previous;
	uint64_t pressure_at_us; /* arrival of the last pressure frame, 0: none */
	uint64_t shed_done_at_us; /* arrival of the last shed's result, 0: none */
	int shed_status; /* 0, or negative errno from the guest */
	uint64_t shed_freed; /* bytes, as the guest says */
	enum level profile_level; /* last level whose profile was acknowledged */
	bool profile_set;
	struct profile asked; /* ... and what was in it */
	bool profile_void; /* ... but nothing of it could be set */
	/* The guest's settings, of those that its kernel has; older agents don't say what is in force. */
	struct profile own, in_force;
	/* Bit a knob_id: a profile can set it, and the guest's owner permits it. */
	uint32_t settable;
};

/* The last answer to a balloon request of ours. */
struct request_part {
	uint64_t at_us; /* when it was sent, 0: none */
	uint64_t done_us; /* when the hypervisor answered, 0: not yet */
	uint64_t target;
	int status; /* negative errno of the call */
};

struct guest_snapshot {
	uint32_t slot; /* index of the guest's policy state, stable while the guest is known */
	char name[GUEST_NAME_MAX];
	uint8_t uuid[16];
	int pid; /* of its QEMU, 0: not known */
	enum guest_phase phase;
	uint64_t phase_since_us;
	uint32_t obstacles;
	struct guest_settings settings;
	int rule; /* that gave the settings, -1: defaults */
	struct balloon_part balloon;
	struct driver_part driver;
	struct cost_part cost;
	struct agent_part agent;
	struct request_part request;
};

struct snapshot {
	uint64_t now_us;
	bool hypervisor_ready; /* connected and synchronised */
	bool frozen; /* the freeze file is there */
	struct host_snapshot host;
	struct guest_snapshot *guests;
	size_t n_guests;
};

/**
 * freshness() - how old a part of the snapshot is.
 * @at_us: the part's time, which may be a little after @now_us: sources don't wait for rounds.
 * @limit_us: the age up to which it counts as fresh.
 */
static inline enum freshness freshness(uint64_t at_us, uint64_t now_us, uint64_t limit_us)
{
	if (at_us == 0)
		return NUMBER_ABSENT;
	return at_us >= now_us || now_us - at_us <= limit_us ? NUMBER_FRESH : NUMBER_STALE;
}

/**
 * guest_min(), guest_max() - a guest's floor and ceiling in bytes, from its settings and the
 * domain's maximum memory. The floor is never above the ceiling.
 */
uint64_t guest_min(const struct guest_snapshot *guest);
uint64_t guest_max(const struct guest_snapshot *guest);

/**
 * agent_psi_some() - the share of time in which some task of the guest waited for memory, between
 * its last two samples.
 * @ret_share: hundredths of a percent, at most 10000; untouched where it is not known.
 *
 * Return: whether it is known.
 */
bool agent_psi_some(const struct agent_part *agent, uint64_t *ret_share);

/* The names that status, journal and JSON use. */
const char *guest_phase_name(enum guest_phase phase);
const char *agent_link_name(enum agent_link link);
const char *level_name(enum level level);

#endif
