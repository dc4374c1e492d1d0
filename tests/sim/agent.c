// SPDX-License-Identifier: GPL-2.0-or-later
/* The agent of a guest: samples, results and pressure frames, each arriving after a while. */
#include "tests/sim/sim.h"

#include <math.h>

#include "daemon/core/profile.h"

static void lie(struct sim *sim, struct sim_guest *g, struct stat_set *s)
{
	for (int id = 0; id < STAT_MAX_ID && g->lie == LIE_RANDOM; id++)
		if (stat_has(s, id))
			s->value[id] = (uint64_t)sim_random(sim, 0, 2 * g->max);
	for (int id = 0; id < STAT_MAX_ID && g->lie == LIE_HUGE; id++)
		if (stat_has(s, id))
			s->value[id] = UINT64_MAX;
	if (g->lie == LIE_LAZYFREE)
		stat_put(s, STAT_LAZYFREE, (uint64_t)(g->max / 2));
	if (g->lie == LIE_NEEDY) {
		stat_put(s, STAT_ACTIVE_ANON, (uint64_t)g->max);
		stat_put(s, STAT_ACTIVE_FILE, 0);
		stat_put(s, STAT_INACTIVE_FILE, 0);
		stat_put(s, STAT_FREE, 0);
		stat_put(s, STAT_ALLOC_STALL, (uint64_t)(sim->now * 1000));
		stat_put(s, STAT_SWAP_IN, (uint64_t)(sim->now * 1000));
	}
}

static void read_sample(struct sim *sim, struct sim_guest *g, struct stat_set *s)
{
	s->present = 0;
	stat_put(s, STAT_TOTAL, (uint64_t)(g->max - g->balloon));
	stat_put(s, STAT_FREE, (uint64_t)fmax(0, guest_free(g) - g->held));
	stat_put(s, STAT_FREE_PCP, (uint64_t)g->held);
	stat_put(s, STAT_ACTIVE_FILE, (uint64_t)(g->text + g->file_hot));
	stat_put(s, STAT_INACTIVE_FILE, (uint64_t)(g->cold + g->lazyfree));
	stat_put(s, STAT_ACTIVE_ANON, (uint64_t)(g->anon + g->saw));
	stat_put(s, STAT_INACTIVE_ANON, 0);
	stat_put(s, STAT_SWAP_TOTAL, (uint64_t)g->swap_size);
	stat_put(s, STAT_SWAP_FREE, (uint64_t)(g->swap_size - g->swapped));
	if (g->lazyfree_first_able) {
		stat_put(s, STAT_LAZYFREE, (uint64_t)g->lazyfree);
		stat_put(s, STAT_EXEC_MAPPED, (uint64_t)g->text);
		stat_put(s, STAT_STEAL_EXEC, (uint64_t)g->steal_exec);
		stat_put(s, STAT_REFAULT_EXEC, (uint64_t)g->refault_exec);
	}
	stat_put(s, STAT_SWAP_IN, (uint64_t)g->swap_in);
	stat_put(s, STAT_SWAP_OUT, (uint64_t)g->swap_out);
	stat_put(s, STAT_REFAULT_FILE, (uint64_t)g->refault_file);
	stat_put(s, STAT_ALLOC_STALL, (uint64_t)g->alloc_stall);
	stat_put(s, STAT_OOM_KILL, (uint64_t)g->oom_kill);
	stat_put(s, STAT_LAZYFREED, (uint64_t)g->lazyfreed);
	stat_put(s, STAT_PSI_SOME, (uint64_t)g->stall_us);
	lie(sim, g, s);
}

static double lag(struct sim *sim, const struct sim_guest *g)
{
	return g->agent_latency * sim_random(sim, 0.5, 1.5);
}

static void begin_sample(struct sim *sim, struct sim_guest *g)
{
	if (g->sample_armed)
		return;
	read_sample(sim, g, &g->sample);
	g->sample_due = sim->now + lag(sim, g);
	g->sample_armed = true;
}

static void deliver_sample(struct sim *sim, struct sim_guest *g)
{
	struct agent_part *a = &g->snapshot.agent;

	a->previous = a->stats;
	a->previous_at_us = a->at_us;
	a->stats = g->sample;
	a->at_us = sim->current.now_us;
	g->sample_armed = false;
	sim->event |= g->sample_asked;
	g->sample_asked = false;
}

void agent_pressure(struct sim *sim, struct sim_guest *g)
{
	if (g->agent && !g->dead && g->pressure_due == 0)
		g->pressure_due = sim->now + lag(sim, g);
}

static void deliver_results(struct sim *sim, struct sim_guest *g)
{
	struct agent_part *a = &g->snapshot.agent;

	if (g->shed_due > 0 && sim->now >= g->shed_due) {
		g->shed_due = 0;
		a->shed_done_at_us = sim->current.now_us;
		a->shed_status = 0;
		a->shed_freed = (uint64_t)g->shed_freed;
		sim->event = true;
	}
	if (g->profile_due > 0 && sim->now >= g->profile_due) {
		g->profile_due = 0;
		a->profile_set = true;
		a->profile_level = g->profile_level;
		profile_for(&sim->settings, &sim->current.host, &g->snapshot, g->profile_level,
			    &a->asked);
		g->lazyfree_first = g->lazyfree_first_able && g->profile_level > LEVEL_RELAXED;
		sim->event = true;
	}
	if (g->pressure_due > 0 && sim->now >= g->pressure_due) {
		g->pressure_due = 0;
		a->pressure_at_us = sim->current.now_us;
		g->sample_asked = true;
		begin_sample(sim, g);
		sim->event = true;
	}
}

void agent_tick(struct sim *sim, struct sim_guest *g)
{
	struct agent_part *a = &g->snapshot.agent;

	if (!g->agent || g->dead || g->phase != PHASE_RUNNING)
		return;
	a->link = AGENT_UP;
	a->capabilities = AGENT_MAY_SAMPLE | AGENT_MAY_PROFILE |
			  (g->sheds ? AGENT_MAY_SHED | AGENT_HAS_RECLAIM : 0) |
			  (g->reporting ? AGENT_HAS_REPORTING : 0) |
			  (g->lazyfree_first_able ? AGENT_HAS_LAZYFREE_FIRST : 0);
	deliver_results(sim, g);
	if (g->sample_armed && sim->now >= g->sample_due)
		deliver_sample(sim, g);
	if (sim->now >= g->next_sample) {
		g->next_sample = sim->now + 1;
		begin_sample(sim, g);
	}
}
