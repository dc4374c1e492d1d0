// SPDX-License-Identifier: GPL-2.0-or-later
/* One guest: its memory, its kernel's reclaim, its work, its balloon and free page reporting. */
#include "tests/sim/sim.h"

#include <math.h>
#include <string.h>

#define LOW_WATERMARK(g) (2.5 * SIM_MIB + (g)->max / 512)
#define REFAULT_RATE	 (100 * SIM_MIB)
#define STALL_PER_PAGE	 100e-6 /* of a refault, seconds */

void guest_init(struct sim_guest *g, const char *name, double max)
{
	memset(g, 0, sizeof(*g));
	g->exists = g->agent = g->sheds = g->reporting = g->lazyfree_first_able = true;
	g->max = max;
	g->kernel = 24 * SIM_MIB;
	g->swap_size = 128 * SIM_MIB;
	g->report_delay = 2;
	g->report_part = 1.0 / 16;
	g->report_floor = 64 * SIM_MIB; /* of order 9 */
	g->balloon_rate = 200 * SIM_MIB;
	g->balloon_refuse_at = max;
	g->agent_latency = 0.05;
	g->phase = PHASE_RUNNING;
	snprintf(g->snapshot.name, sizeof(g->snapshot.name), "%s", name);
}

void guest_fill(struct sim_guest *g)
{
	g->text = g->work.text;
	g->file_hot = g->work.file_hot;
	g->cold = g->work.cold;
	g->anon = g->work.anon;
	g->lazyfree = g->work.lazyfree;
}

double guest_used(const struct sim_guest *g)
{
	return g->kernel + g->text + g->file_hot + g->cold + g->anon + g->lazyfree + g->saw;
}

double guest_free(const struct sim_guest *g)
{
	return fmax(0, g->max - g->balloon - guest_used(g));
}

double guest_footprint(const struct sim_guest *g)
{
	return guest_used(g) + g->backed;
}

static double take(double *from, double want)
{
	double got = fmin(*from, fmax(want, 0));

	*from -= got;
	return got;
}

static double reclaim_hot(struct sim_guest *g, double bytes)
{
	double all = g->file_hot + g->text, part = all > 0 ? fmin(1, bytes / all) : 0;
	double file = take(&g->file_hot, g->file_hot * part);
	double text = take(&g->text, g->text * part);

	g->steal_file += (file + text) / 4096;
	g->steal_exec += text / 4096;
	return file + text;
}

static double reclaim_anon(struct sim_guest *g, double bytes)
{
	double got = take(&g->anon, fmin(bytes, g->swap_size - g->swapped));

	g->swapped += got;
	g->swap_out += got / 4096;
	return got;
}

/* In the order of Linux with swappiness low; returns what came free. */
double guest_reclaim(struct sim_guest *g, double bytes, uint32_t flags, bool shed)
{
	double got = 0, lazy = bytes, n;

	if (!g->lazyfree_first && g->lazyfree + g->cold > 0)
		lazy = bytes * g->lazyfree / (g->lazyfree + g->cold);
	n = take(&g->lazyfree, lazy);
	g->lazyfreed += n / 4096;
	got += n;
	/* Without lazyfree_first the kernel can't be told to leave page cache. */
	if (!shed || (flags & SHED_FILE) || !g->lazyfree_first) {
		n = take(&g->cold, bytes - got);
		g->steal_file += n / 4096;
		got += n;
	}
	if (bytes - got > 0 && (!shed || (flags & SHED_FILE)))
		got += reclaim_hot(g, (bytes - got) * (shed && (flags & SHED_ANON) ? 0.3 : 0.9));
	if (bytes - got > 0 && (!shed || (flags & SHED_ANON)))
		got += reclaim_anon(g, bytes - got);
	g->backed += got;
	g->held = fmin(g->held + got, g->max / 8);
	return got;
}

static void stall(struct sim_guest *g, double seconds)
{
	g->stall_us += seconds * 1e6;
	g->window_stall += seconds;
}

static void out_of_memory(struct sim_guest *g, double want)
{
	double n;

	if (g->autodeflate && g->balloon > 0) {
		n = take(&g->balloon, fmax(want, SIM_MIB));
		g->balloon_target = g->balloon; /* it stays out until the host asks again */
		return;
	}
	g->oom_kill++;
	n = take(&g->anon, g->anon / 4);
	g->work.anon = fmin(g->work.anon, g->anon);
	g->work.growth_limit = g->work.growth = 0;
	g->backed += n;
}

/* Memory for the guest's own use. Returns what it got. */
static double allocate(struct sim_guest *g, double want)
{
	double low = LOW_WATERMARK(g), room, n;

	want = fmax(want, 0);
	if (guest_free(g) - want < low)
		guest_reclaim(g, want + 1.2 * low - guest_free(g), 0, false);
	room = guest_free(g) - low / 2;
	if (room < want) {
		g->alloc_stall++;
		stall(g, 0.5 * SIM_TICK);
		guest_reclaim(g, want - room, 0, false);
		room = guest_free(g) - low / 4;
	}
	if (room <= 0) {
		out_of_memory(g, want);
		room = guest_free(g) - low / 4;
	}
	n = fmax(0, fmin(want, room));
	(void)take(&g->held, n);
	(void)take(&g->backed, n);
	return n;
}

static void restore(struct sim_guest *g, double *set, double want, double dt, double *refaults,
		    bool from_swap)
{
	double missing = fmin(want - *set, REFAULT_RATE * dt), n;

	if (missing < 4096)
		return;
	if (from_swap)
		missing = fmin(missing, g->swapped);
	n = allocate(g, missing);
	*set += n;
	*refaults += n / 4096;
	g->majfault += n / 4096 / 4;
	if (from_swap)
		g->swapped -= n;
	stall(g, fmin(n / 4096 * STALL_PER_PAGE, 0.8 * SIM_TICK));
}

static void work_tick(struct sim *sim, struct sim_guest *g, double dt)
{
	struct sim_work *w = &g->work;
	double want;

	restore(g, &g->text, w->text, dt, &g->refault_exec, false);
	restore(g, &g->file_hot, w->file_hot, dt, &g->refault_file, false);
	restore(g, &g->anon, fmin(w->anon, g->anon + g->swapped), dt, &g->swap_in, true);
	if (w->growth > 0 && w->anon < w->growth_limit) {
		want = allocate(g, fmin(w->growth * dt, w->growth_limit - w->anon));
		g->anon += want;
		w->anon += want;
		g->grew = true;
	}
	if (w->stream > 0)
		g->cold += allocate(g, w->stream * dt);
	if (w->lazyfree_rate > 0 && g->lazyfree < w->lazyfree)
		g->lazyfree += allocate(g, fmin(w->lazyfree_rate * dt, w->lazyfree - g->lazyfree));
	if (w->saw > 0) {
		want = fmod(sim->now, w->saw_period) < w->saw_period / 2 ? w->saw : 0;
		if (want > g->saw)
			g->saw += allocate(g, fmin(want - g->saw, REFAULT_RATE * dt));
		else
			g->backed += take(&g->saw, g->saw - want);
	}
}

/* The balloon takes free pages as they come, backed and not, and makes the guest reclaim. */
static void balloon_tick(struct sim_guest *g, double dt)
{
	double step = g->balloon_rate * dt, low = LOW_WATERMARK(g), n, share, held;

	if (g->balloon > g->balloon_target) {
		(void)take(&g->balloon, fmin(2 * step, g->balloon - g->balloon_target));
		return;
	}
	step = fmin(step, fmin(g->balloon_target, g->balloon_refuse_at) - g->balloon);
	if (step <= 0)
		return;
	if (guest_free(g) < low + step)
		guest_reclaim(g, fmin(step, low + step - guest_free(g)), 0, false);
	n = fmax(0, fmin(step, guest_free(g) - low / 2));
	share = guest_free(g) > 0 ? g->backed / guest_free(g) : 0;
	g->balloon += n;
	held = take(&g->held, n);
	(void)take(&g->backed, held + (n - held) * fmin(1, share * 1.2));
	g->backed = fmin(g->backed, guest_free(g));
}

static void report_tick(struct sim *sim, struct sim_guest *g)
{
	double part = g->report_part, free;

	if (!g->reporting || sim->now < g->next_report)
		return;
	g->next_report = sim->now + g->report_delay;
	if (guest_free(g) < LOW_WATERMARK(g) + g->report_floor)
		return;
	/* At least a batch of 32 blocks, whatever the part. */
	free = fmax(0, g->backed - g->held);
	(void)take(&g->backed, fmin(free, fmax(g->report_floor, free * part)) * 0.95);
}

static void pressure_tick(struct sim *sim, struct sim_guest *g)
{
	if (sim->now - g->window_start >= 2) {
		g->window_start = sim->now;
		g->window_stall = 0;
	}
	if (g->window_stall > 0.15 || (g->lie == LIE_NEEDY && g->window_stall >= 0)) {
		agent_pressure(sim, g);
		g->window_stall = -1e9;
	}
}

void guest_tick(struct sim *sim, struct sim_guest *g, double dt)
{
	if (!g->exists || g->phase != PHASE_RUNNING)
		return;
	work_tick(sim, g, dt);
	balloon_tick(g, dt);
	g->backed = fmin(g->backed, guest_free(g));
	g->held = fmin(g->held * (1 - dt / 8), g->backed);
	report_tick(sim, g);
	pressure_tick(sim, g);
	if (g->lie == LIE_NEEDY) /* and it does take what it can get */
		g->anon += allocate(
			g, fmin(50 * SIM_MIB * dt, fmax(0, guest_free(g) - 2 * LOW_WATERMARK(g))));
}
