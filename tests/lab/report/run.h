/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A run in the lab, read back from the record that `watch` wrote: samples over time, what the
 * guests' workloads said, the decisions that ballastd explains, and the marks of the script. All
 * amounts in bytes, all times in seconds after the cut of the budget; what is not known is NAN. A
 * run is plain data, owned by whoever read it.
 */
#ifndef BALLAST_LAB_REPORT_RUN_H
#define BALLAST_LAB_REPORT_RUN_H

#include <stddef.h>

#define RUN_GUESTS_MAX 16
#define RUN_NAME_MAX   32

/* Two of the guest's kernel settings. */
struct levers {
	double exec_protect, lazyfree_first;
};

/* One guest in one sample. */
struct guest_point {
	double ram; /* what its memory costs the host: its RAM mapping in smaps */
	double cpu; /* seconds of CPU time that its QEMU took so far */
	double actual, maximum; /* as the hypervisor says */
	double actual_at; /* when it had said it; the sample itself is of when all was read */
	double target, minimum; /* as ballastd says, like all below */
	double stats_at; /* when the guest's numbers arrived */
	double pressure_at; /* when its last pressure frame arrived */
	double dead_time;
	double free, file, lazyfree, text, anon; /* file: page cache without lazyfree and text */
	double backed_free, swap_entries;
	double steal_exec, oom_kill; /* counts */
	double reclaimed; /* bytes since boot: page cache and lazyfree freed, anonymous swapped out */
	double waits; /* 1: it is under pressure and the host has nothing to give */
	struct levers shown, own; /* in force as its agent says; the guest's own */
};

struct point {
	double t;
	double level; /* of the host as ballastd says: 0 relaxed, 1 tight, 2 critical */
	double budget; /* as ballastd says */
	double dead_time;
	double daemon_pid, daemon_rss_anon, daemon_cpu; /* bytes, seconds */
	struct guest_point guests[RUN_GUESTS_MAX];
};

/* One round of a workload. */
struct round {
	double t;
	size_t guest;
	double faults, wrong, kept; /* counts */
};

/* What stood in a guest's own /proc/sys. */
struct reading {
	double t;
	size_t guest;
	struct levers levers;
};

enum decision_kind { DECISION_OTHER, DECISION_SHED, DECISION_BALLOON };

struct decision_point {
	double t;
	size_t guest;
	enum decision_kind kind;
	double is_relief, latency; /* of a relief: seconds from the guest's call to the decision */
	double freed; /* by a shed, as the guest says */
	double dead_time; /* that held when it was made */
};

struct run {
	char names[RUN_GUESTS_MAX][RUN_NAME_MAX];
	size_t n_guests;
	struct point *points;
	size_t n_points;
	struct round *rounds;
	size_t n_rounds;
	struct reading *readings;
	size_t n_readings;
	struct decision_point *decisions;
	size_t n_decisions;
	double before, budget; /* footprint before the cut, budget after it */
	double kill, restart, restore, end, stop; /* times of the marks */
};

/**
 * run_read() - read a record.
 * @problem: one line that says what is wrong, on failure.
 *
 * Return: 0 or a negative errno; -ENODATA for a record without samples or without a cut.
 */
int run_read(struct run *run, const char *path, char *problem, size_t size);
void run_done(struct run *run);

/** run_guest() - index of a guest by its name, or -1. */
int run_guest(const struct run *run, const char *name);

/** run_ram() - what the memory of all guests costs the host in a sample. */
double run_ram(const struct run *run, const struct point *point);

/** run_at() - the last sample that is not after @t, or the first of all. */
const struct point *run_at(const struct run *run, double t);

#endif
