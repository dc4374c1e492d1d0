// SPDX-License-Identifier: GPL-2.0-or-later
/* The host and its clock, and the part of the daemon between the policy and the guests. */
#include "tests/sim/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double sim_random(struct sim *sim, double from, double to)
{
	sim->random ^= sim->random << 13;
	sim->random ^= sim->random >> 7;
	sim->random ^= sim->random << 17;
	return from + (to - from) * (double)(sim->random >> 11) / 9007199254740992.0;
}

void sim_init(struct sim *sim, uint64_t seed)
{
	memset(sim, 0, sizeof(*sim));
	sim->random = seed * 0x9e3779b97f4a7c15 + 1;
	for (int i = 0; i < 8; i++)
		(void)sim_random(sim, 0, 1);
	sim->total = 8192 * SIM_MIB;
	sim->others = 512 * SIM_MIB;
	sim->now = 100;
	settings_init_defaults(&sim->settings);
	sim->settings.host.mode = MODE_ACT;
	sim->settings.host.budget_kind = BUDGET_AMOUNT;
	sim->settings.host.budget = (struct amount){ AMOUNT_BYTES, (uint64_t)sim->total };
	sim->current.guests = sim->list;
	sim->current.hypervisor_ready = true;
	if (policy_new(&sim->policy, SIM_GUESTS) < 0 || plan_init(&sim->plan, SIM_GUESTS) < 0)
		abort();
}

void sim_done(struct sim *sim)
{
	policy_free(sim->policy);
	plan_done(&sim->plan);
}

struct sim_guest *sim_add(struct sim *sim, const char *name, double max_mib)
{
	struct sim_guest *g = &sim->guests[sim->n];

	guest_init(g, name, max_mib * SIM_MIB);
	g->snapshot.slot = (uint32_t)sim->n++;
	g->snapshot.settings = sim->settings.defaults;
	g->snapshot.rule = -1;
	return g;
}

void sim_start(struct sim *sim)
{
	for (int i = 0; i < sim->n; i++) {
		guest_fill(&sim->guests[i]);
		sim->guests[i].next_sample = sim->now + sim_random(sim, 0, 1);
		sim->guests[i].next_report = sim->now + sim_random(sim, 0, 2);
	}
}

double sim_footprint(const struct sim *sim)
{
	double sum = 0;

	for (int i = 0; i < sim->n; i++)
		if (sim->guests[i].exists)
			sum += guest_footprint(&sim->guests[i]);
	return sum;
}

void sim_budget(struct sim *sim, double bytes)
{
	if (bytes > (double)sim->settings.host.budget.value)
		for (int i = 0; i < sim->n; i++) /* a budget that rises is news, and answered */
			sim->guests[i].reversals = 0;
	sim->settings.host.budget = (struct amount){ AMOUNT_BYTES, (uint64_t)bytes };
	sim->lazyfree_at_cut = 0;
	for (int i = 0; i < sim->n; i++)
		sim->lazyfree_at_cut += sim->guests[i].lazyfree;
}

void sim_stop(struct sim *sim, bool stopped)
{
	sim->stopped = stopped;
}

void sim_restart(struct sim *sim)
{
	uint64_t target[SIM_GUESTS];

	for (int i = 0; i < sim->n; i++)
		target[i] = policy_target(sim->policy, (uint32_t)i);
	policy_free(sim->policy);
	if (policy_new(&sim->policy, SIM_GUESTS) < 0)
		abort();
	for (int i = 0; i < sim->n; i++) {
		if (target[i] > 0)
			policy_restore(sim->policy, (uint32_t)i, target[i]);
		/* The agents' sessions begin anew. */
		memset(&sim->guests[i].snapshot.agent, 0, sizeof(struct agent_part));
		sim->guests[i].shed_due = sim->guests[i].profile_due = 0;
		/* How often it turned in the last hour is one of the things that it forgets. */
		sim->guests[i].reversals = sim->guests[i].last_direction = 0;
	}
}

static void host_tick(struct sim *sim)
{
	double resident = sim->others, over;

	for (int i = 0; i < sim->n; i++)
		resident += guest_footprint(&sim->guests[i]);
	over = fmax(0, resident - sim->total);
	sim->host_swap = fmax(over, sim->host_swap * 0.999);
	for (int i = 0; i < sim->n; i++)
		sim->guests[i].host_swapped = sim->host_swap / sim->n;
}

static void see_balloon(struct sim *sim, struct sim_guest *g)
{
	struct guest_snapshot *s = &g->snapshot;
	uint64_t actual = (uint64_t)(g->max - g->balloon) & ~UINT64_C(4095);

	/* The event of its coming to rest, or the next statistics. */
	if (s->balloon.actual != actual && fabs(g->balloon - g->balloon_target) < 4096 &&
	    g->balloon_seen_due == 0)
		g->balloon_seen_due = sim->now + 0.05;
	if (sim->now >= sim->next_stats ||
	    (g->balloon_seen_due > 0 && sim->now >= g->balloon_seen_due)) {
		sim->event |= g->balloon_seen_due > 0;
		g->balloon_seen_due = 0;
		s->balloon.actual = actual;
		s->balloon.at_us = sim->current.now_us;
		if (!g->agent || g->dead) {
			s->driver.at_us = sim->current.now_us;
			s->driver.has_unused = s->driver.has_usable = true;
			s->driver.unused = (uint64_t)guest_free(g);
			s->driver.usable =
				(uint64_t)(guest_free(g) + 0.8 * (g->cold + g->file_hot));
		}
	}
}

static void see_guest(struct sim *sim, struct sim_guest *g)
{
	struct guest_snapshot *s = &g->snapshot;

	s->phase = g->phase;
	s->balloon.maximum = (uint64_t)g->max;
	s->balloon.autodeflate = g->autodeflate;
	s->balloon.reporting = g->reporting;
	see_balloon(sim, g);
	s->cost.at_us = sim->current.now_us;
	s->cost.footprint = (uint64_t)guest_footprint(g);
	s->cost.swapped = (uint64_t)fmin(g->host_swapped, guest_footprint(g));
	s->cost.resident = s->cost.footprint - s->cost.swapped;
}

static void see_host(struct sim *sim)
{
	struct host_snapshot *h = &sim->current.host;

	h->at_us = sim->current.now_us;
	h->total = (uint64_t)sim->total;
	h->available = (uint64_t)fmax(0, sim->total - sim->others - sim_footprint(sim));
	h->psi_at_us = sim->current.now_us;
	h->psi_some_avg10 = sim->host_swap > 0 ? 500 : 0;
}

static void carry_out(struct sim *sim, const struct decision *d)
{
	struct sim_guest *g = &sim->guests[d->slot];
	char text[256];

	decision_text(d, text, sizeof(text));
	if (sim->trace && d->action != ACTION_SAMPLE)
		fprintf(sim->trace, "%8.2f %-8s %s\n", sim->now - 100, g->snapshot.name, text);
	switch (d->action) {
	case ACTION_BALLOON:
		sim->moves++;
		g->balloon_target = fmax(0, g->max - (double)d->new_target);
		g->snapshot.request = (struct request_part){ d->at_us, d->at_us, d->new_target, 0 };
		break;
	case ACTION_SHED:
		sim->sheds++;
		g->shed_freed = g->lie == LIE_LAZYFREE
					? (double)d->bytes
					: guest_reclaim(g, (double)d->bytes, d->shed_flags, true);
		g->shed_due = sim->now + g->agent_latency + 0.1 + (double)d->bytes / 4e8;
		g->stall_us += (double)d->bytes / 4e8 * 1e6;
		break;
	case ACTION_PROFILE:
		g->profile_level = d->level;
		g->profile_due = sim->now + 2 * g->agent_latency;
		break;
	case ACTION_SAMPLE:
		g->next_sample = sim->now + g->agent_latency;
		g->sample_asked = true;
		break;
	default:
		break;
	}
}

static void write_row(struct sim *sim)
{
	fprintf(sim->table, "%.2f\t%.1f\t%.1f", sim->now - 100, (double)sim->plan.budget / SIM_MIB,
		sim_footprint(sim) / SIM_MIB);
	for (int i = 0; i < sim->n; i++) {
		const struct sim_guest *g = &sim->guests[i];

		fprintf(sim->table, "\t%.0f/%.0f/%.0f/%.0f/%.0f", guest_footprint(g) / SIM_MIB,
			(g->max - g->balloon) / SIM_MIB, g->lazyfree / SIM_MIB, g->cold / SIM_MIB,
			g->text / SIM_MIB);
	}
	fprintf(sim->table, "\n");
}

static void daemon_round(struct sim *sim)
{
	sim->current.n_guests = 0;
	for (int i = 0; i < sim->n; i++)
		if (sim->guests[i].exists)
			sim->list[sim->current.n_guests++] = sim->guests[i].snapshot;
	see_host(sim);
	policy_decide(sim->policy, &sim->current, &sim->settings, &sim->plan);
	check_round(sim);
	for (size_t i = 0; i < sim->plan.n_decisions; i++)
		carry_out(sim, &sim->plan.decisions[i]);
	sim->rounds++;
	if (sim->table)
		write_row(sim);
}

static void tick(struct sim *sim)
{
	double budget = (double)sim->settings.host.budget.value;

	sim->now += SIM_TICK;
	sim->current.now_us = (uint64_t)(sim->now * 1e6);
	for (int i = 0; i < sim->n; i++) {
		guest_tick(sim, &sim->guests[i], SIM_TICK);
		agent_tick(sim, &sim->guests[i]);
		see_guest(sim, &sim->guests[i]);
	}
	host_tick(sim);
	if (sim->now >= sim->next_stats)
		sim->next_stats = sim->now + 1;
	sim->over += fmax(0, sim_footprint(sim) - budget) * SIM_TICK;
	if (!sim->stopped && (sim->event || sim->now >= sim->next_round)) {
		sim->next_round = sim->now + 1;
		sim->event = false;
		daemon_round(sim);
	}
}

void sim_run(struct sim *sim, double seconds)
{
	double end = sim->now + seconds;

	while (sim->now < end)
		tick(sim);
}
