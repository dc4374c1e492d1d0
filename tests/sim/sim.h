/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A host with guests, for testing the policy without either: small and honest. Guests have working
 * sets and cold memory, kernels that reclaim in the order of Linux, balloons that take time and may
 * refuse, agents that lag, lie and die, and free page reporting that comes late; the host has a
 * budget and swaps when it is full. Deterministic: a seed gives a run. Amounts are bytes in doubles,
 * times are seconds in doubles inside the model, and bytes and µs in what the policy sees.
 */
#ifndef BALLAST_TESTS_SIM_H
#define BALLAST_TESTS_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/core/policy.h"

#define SIM_GUESTS  16
#define SIM_MIB	    1048576.0
#define SIM_TICK    0.02
#define SIM_HISTORY 4096

enum sim_lie {
	LIE_NONE,
	LIE_RANDOM, /* every number is noise */
	LIE_HUGE, /* every number is the largest there is */
	LIE_LAZYFREE, /* claims lazyfree memory that it doesn't have */
	LIE_NEEDY, /* claims that all is anonymous, and cries for more */
	LIE_MAX_ID,
};

/* What the guest's work needs and does. */
struct sim_work {
	double text, file_hot, anon; /* working sets, in use all the time */
	double cold; /* page cache that nobody reads again, unless .stream does */
	double lazyfree, lazyfree_rate; /* given up at the start; given up again, bytes/s */
	double stream; /* page cache read for the first time, bytes/s */
	double growth, growth_limit; /* of anonymous memory, bytes/s and bytes */
	double saw; /* anonymous memory that comes and goes */
	double saw_period; /* seconds */
};

struct sim_guest {
	/* What it is. */
	double max, kernel, swap_size;
	bool reporting, lazyfree_first_able, autodeflate, agent, sheds, exists;
	double report_delay; /* seconds */
	double report_part; /* of the backed free memory, each pass */
	double report_floor; /* below it, beyond the low watermark, nothing is reported */
	double balloon_rate, balloon_refuse_at; /* bytes/s; no inflation beyond this balloon */
	double agent_latency;
	enum sim_lie lie;
	struct sim_work work;
	/* How it is. */
	enum guest_phase phase;
	double phase_since;
	double text, file_hot, cold, anon, lazyfree, saw, swapped;
	double backed; /* free memory that the host still backs */
	double held; /* of it, in the lists of a CPU: in no count of free memory, never reported */
	double balloon, balloon_target;
	double host_swapped;
	double next_report;
	bool lazyfree_first, dead; /* dead: the agent doesn't answer any more */
	/* Counters, as the guest's kernel has them. */
	double stall_us, swap_in, swap_out, refault_file, refault_exec, steal_exec, steal_file;
	double alloc_stall, oom_kill, lazyfreed, majfault;
	double window_start, window_stall; /* PSI trigger */
	/* The agent, and what is on its way to the host. */
	double next_sample, sample_due, shed_due, pressure_due;
	bool sample_armed, sample_asked;
	struct stat_set sample;
	double shed_freed;
	double profile_due;
	enum level profile_level;
	/* What the hypervisor says. */
	double balloon_seen_due;
	struct guest_snapshot snapshot;
	/* For the checks. */
	double reversal_at[SIM_HISTORY];
	int reversals, last_direction;
	double last_move;
	bool grew;
};

struct sim {
	uint64_t random;
	double now; /* seconds */
	double next_round, next_stats;
	bool event; /* something came that is worth a round */
	double total, others; /* of the host; used by others than guests */
	double host_swap;
	struct settings settings;
	struct sim_guest guests[SIM_GUESTS];
	int n;
	struct policy *policy;
	struct plan plan;
	struct snapshot current;
	struct guest_snapshot list[SIM_GUESTS];
	bool stopped; /* the daemon is down */
	double lazyfree_at_cut;
	/* Filled by the run. */
	int rounds, moves, sheds, failures;
	double over; /* byte seconds over the budget */
	double text_lost;
	FILE *trace; /* one line an action, or NULL */
	FILE *table; /* one line a round, or NULL */
};

/* sim.c: the host, the clock and the daemon's part. */
void sim_init(struct sim *sim, uint64_t seed);
void sim_done(struct sim *sim);
struct sim_guest *sim_add(struct sim *sim, const char *name, double max_mib);
void sim_start(struct sim *sim); /* guests get the memory that they work on; the daemon starts */
void sim_run(struct sim *sim, double seconds);
void sim_budget(struct sim *sim, double bytes);
double sim_footprint(const struct sim *sim);
void sim_restart(struct sim *sim); /* the daemon dies and comes back with its stored targets */
void sim_stop(struct sim *sim, bool stopped);
double sim_random(struct sim *sim, double from, double to);

/* guest.c: one guest. */
void guest_init(struct sim_guest *g, const char *name, double max);
void guest_fill(struct sim_guest *g);
void guest_tick(struct sim *sim, struct sim_guest *g, double dt);
double guest_used(const struct sim_guest *g);
double guest_free(const struct sim_guest *g);
double guest_footprint(const struct sim_guest *g);
double guest_reclaim(struct sim_guest *g, double bytes, uint32_t shed_flags, bool shed);

/* agent.c: what the agent sends. */
void agent_tick(struct sim *sim, struct sim_guest *g);
void agent_pressure(struct sim *sim, struct sim_guest *g);

/* check.c: what must hold at each round, whatever the guests do. */
void check_round(struct sim *sim);

#endif
