// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random hosts with random guests and random trouble, each for some minutes, checked at every round
 * by check.c and as a whole here. A failing seed is printed; `test-invariants random_hosts SEED`
 * runs that one with every action shown. The number of seeds is BALLAST_SEEDS (60).
 */
#include "tests/sim/sim.h"
#include "tests/unit/harness.h"

#include <math.h>

static uint64_t only;

static bool chance(struct sim *sim, double p)
{
	return sim_random(sim, 0, 1) < p;
}

static void random_guest(struct sim *sim, int i)
{
	double max = floor(sim_random(sim, 3, 16)) * 64, unit = max * SIM_MIB;
	char name[16];
	struct sim_guest *g;

	snprintf(name, sizeof(name), "guest%d", i);
	g = sim_add(sim, name, max);
	g->work.text = unit * sim_random(sim, 0.02, 0.12);
	g->work.file_hot = unit * sim_random(sim, 0, 0.1);
	g->work.anon = unit * sim_random(sim, 0.05, 0.25);
	g->work.cold = unit * sim_random(sim, 0, 0.3);
	g->work.lazyfree = chance(sim, 0.4) ? unit * sim_random(sim, 0, 0.15) : 0;
	g->work.lazyfree_rate = chance(sim, 0.2) ? 10 * SIM_MIB : 0;
	g->work.stream = chance(sim, 0.2) ? sim_random(sim, 0, 4) * SIM_MIB : 0;
	g->work.saw = chance(sim, 0.2) ? unit * 0.1 : 0;
	g->work.saw_period = sim_random(sim, 10, 120);
	g->agent = chance(sim, 0.85);
	g->sheds = chance(sim, 0.9);
	g->lazyfree_first_able = chance(sim, 0.8);
	g->reporting = chance(sim, 0.8);
	if (chance(sim, 0.5)) /* order 2 */
		g->report_part = 1, g->report_floor = SIM_MIB / 2;
	g->autodeflate = chance(sim, 0.5);
	g->agent_latency = sim_random(sim, 0.01, 0.5);
	g->balloon_rate = sim_random(sim, 50, 500) * SIM_MIB;
	g->balloon_refuse_at = chance(sim, 0.1) ? g->max * sim_random(sim, 0, 0.3) : g->max;
	g->swap_size = chance(sim, 0.7) ? 128 * SIM_MIB : 0;
	g->snapshot.settings.shares = (uint32_t)sim_random(sim, 100, 4000);
	if (chance(sim, 0.15))
		g->lie = (enum sim_lie)(1 + (int)sim_random(sim, 0, LIE_MAX_ID - 1));
	g->backed = unit * sim_random(sim, 0, 0.1);
}

static void random_trouble(struct sim *sim)
{
	struct sim_guest *g = &sim->guests[(int)sim_random(sim, 0, sim->n)];

	if (chance(sim, 0.3))
		sim_budget(sim, sim_footprint(sim) * sim_random(sim, 0.6, 1.6));
	else if (chance(sim, 0.2))
		g->phase = g->phase == PHASE_RUNNING ? PHASE_PAUSED : PHASE_RUNNING;
	else if (chance(sim, 0.2))
		g->dead = !g->dead;
	else if (chance(sim, 0.2))
		g->work.growth = 4 * SIM_MIB, g->work.growth_limit = g->max * 0.6;
	else if (chance(sim, 0.2))
		sim_restart(sim);
	else if (chance(sim, 0.2))
		g->balloon_target = sim_random(sim, 0, 0.3) * g->max; /* somebody else */
}

/* Whose death would be the balancer's doing: not what grows without end, nor a burst in a guest
 * that has neither swap nor a balloon that yields. */
static bool blameless(const struct sim_guest *g)
{
	return g->lie == LIE_NONE && !g->grew && (g->swap_size > 0 || g->autodeflate);
}

static int run_seed(uint64_t seed)
{
	struct sim sim;
	int oom = 0, failures;

	sim_init(&sim, seed);
	sim.trace = only ? stdout : NULL;
	sim.settings.host.budget_hard = chance(&sim, 0.5);
	for (int i = 0, n = (int)sim_random(&sim, 1, 9); i < n; i++)
		random_guest(&sim, i);
	sim_start(&sim);
	sim_budget(&sim, 16384 * SIM_MIB);
	sim_run(&sim, 15);
	for (int i = 0; i < 8; i++) {
		random_trouble(&sim);
		sim_run(&sim, sim_random(&sim, 5, 60));
	}
	for (int i = 0; i < sim.n; i++)
		if (blameless(&sim.guests[i]) &&
		    sim.guests[i].balloon_target <= sim.guests[i].max * 0.5)
			oom += sim.guests[i].oom_kill > 0;
	failures = sim.failures;
	if (failures > 0 || oom > 0)
		printf("  seed %llu: %d rules broken, %d guests out of memory\n",
		       (unsigned long long)seed, failures, oom);
	sim_done(&sim);
	return failures + oom;
}

static void random_hosts(void)
{
	const char *seeds = getenv("BALLAST_SEEDS");
	uint64_t n = seeds ? strtoull(seeds, NULL, 10) : 60;
	int failures = 0;

	for (uint64_t seed = only ? only : 1; seed <= (only ? only : n); seed++)
		failures += run_seed(seed);
	CU_ASSERT_EQUAL(failures, 0);
}

/* The same hosts, then left in peace: in the end nothing moves. */
static void random_hosts_come_to_rest(void)
{
	for (uint64_t seed = only ? only : 1; seed <= (only ? only : 40); seed++) {
		struct sim sim;
		int moves;

		sim_init(&sim, seed);
		sim.trace = only ? stdout : NULL;
		sim.settings.host.budget_hard = seed % 2;
		for (int i = 0, n = (int)sim_random(&sim, 1, 9); i < n; i++) {
			random_guest(&sim, i);
			sim.guests[i].work.saw = sim.guests[i].work.stream = 0;
			sim.guests[i].work.lazyfree_rate = 0;
			sim.guests[i].lie = LIE_NONE;
			/* A stuck one is tried again now and then, which is no unrest. */
			sim.guests[i].balloon_refuse_at = sim.guests[i].max;
		}
		sim_start(&sim);
		sim_budget(&sim, 16384 * SIM_MIB);
		sim_run(&sim, 15);
		sim_budget(&sim, sim_footprint(&sim) * sim_random(&sim, 0.7, 1.1));
		sim_run(&sim, 400);
		moves = sim.moves;
		sim_run(&sim, 200);
		if (sim.moves != moves && sim.plan.need == 0)
			printf("  seed %llu: %d moves at rest\n", (unsigned long long)seed,
			       sim.moves - moves);
		/* Where the need isn't met, cache in use is tried again, each time much later. */
		CU_ASSERT(sim.moves == moves || (sim.plan.need > 0 && sim.moves - moves <= 2));
		/* And where there is enough to be had, the budget is met. */
		CU_ASSERT(sim.plan.shortfall > 0 ||
			  sim_footprint(&sim) <= (double)sim.settings.host.budget.value);
		sim_done(&sim);
	}
}

static void a_seed_gives_the_same_run_twice(void)
{
	struct sim a, b;
	struct sim *both[2] = { &a, &b };

	for (int i = 0; i < 2; i++) {
		struct sim *sim = both[i];

		sim_init(sim, 7);
		for (int k = 0; k < 5; k++)
			random_guest(sim, k);
		sim_start(sim);
		sim_run(sim, 15);
		sim_budget(sim, sim_footprint(sim) * 0.7);
		sim_run(sim, 60);
	}
	CU_ASSERT_EQUAL(a.moves, b.moves);
	CU_ASSERT_EQUAL(a.sheds, b.sheds);
	CU_ASSERT_EQUAL(a.rounds, b.rounds);
	CU_ASSERT(a.moves + a.sheds > 0);
	sim_done(&a);
	sim_done(&b);
}

static const struct unit_test tests[] = {
	TEST(random_hosts),
	TEST(random_hosts_come_to_rest),
	TEST(a_seed_gives_the_same_run_twice),
};

int main(int argc, char **argv)
{
	if (argc > 2)
		only = strtoull(argv[2], NULL, 10);
	return harness_run("invariants", tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
