// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/core/solver.h"
#include "tests/unit/harness.h"

#include <math.h>

#define KAPPA (1.0 / 3) /* as in solver.c: the objective of the brute force must be the same */
#define MANY  200

static uint64_t state = 1;

static uint64_t number(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 16) % below;
}

static double price(const struct solver_guest *g, double heaviest, const double x[ITEM_MAX_ID])
{
	double sum = 0;

	for (int k = 0; k < ITEM_MAX_ID; k++)
		if (g->amount[k] > 0)
			sum += g->cost[k] * x[k] + KAPPA * g->weight / heaviest * x[k] * x[k] /
							   (2.0 * (double)g->amount[k]);
	return sum;
}

static double price_taken(const struct solver_guest *g, double heaviest)
{
	double x[ITEM_MAX_ID];

	for (int k = 0; k < ITEM_MAX_ID; k++)
		x[k] = (double)g->take[k];
	return price(g, heaviest, x);
}

static uint64_t taken(const struct solver_guest *g, int from)
{
	uint64_t sum = 0;

	for (int k = from; k < ITEM_MAX_ID; k++)
		sum += g->take[k];
	return sum;
}

static void random_guest(struct solver_guest *g, uint64_t amount, uint64_t unit)
{
	*g = (struct solver_guest){ .weight = 0.25 * (double)(1 + number(8)) };
	for (int k = 0; k < ITEM_MAX_ID; k++) {
		g->amount[k] = number(amount) * unit;
		g->cost[k] = solver_prior(k) * (1 + (double)number(4) / 4);
	}
	g->cap = number(3 * amount) * unit;
}

/* All ways to take whole units from two guests with three items each. */
struct brute {
	const struct solver_guest *g;
	uint64_t unit, need;
	double heaviest, x[2][ITEM_MAX_ID], best;
};

static const int brute_items[3] = { ITEM_LAZYFREE, ITEM_FILE, ITEM_ANON };

static void brute_search(struct brute *b, int at, uint64_t left)
{
	const struct solver_guest *g = &b->g[at / 3];
	int k = brute_items[at % 3];

	if (at == 6) {
		double cost = price(&b->g[0], b->heaviest, b->x[0]) +
			      price(&b->g[1], b->heaviest, b->x[1]);

		for (int i = 0; i < 2; i++)
			if (b->x[i][ITEM_FILE] + b->x[i][ITEM_ANON] > (double)b->g[i].cap)
				return;
		if (left == 0 && cost < b->best)
			b->best = cost;
		return;
	}
	for (uint64_t x = 0; x <= g->amount[k] && x <= left; x += b->unit) {
		b->x[at / 3][k] = (double)x;
		brute_search(b, at + 1, left - x);
	}
	b->x[at / 3][k] = 0;
}

static void it_is_never_dearer_than_the_best_of_all_ways(void)
{
	const uint64_t unit = 1 << 20;
	struct solver_event events[SOLVER_EVENTS(2)];
	int compared = 0;

	for (int run = 0; run < 300; run++) {
		struct solver_guest g[2];
		struct brute b = { .g = g, .unit = unit, .best = 1e300 };
		double mine;

		for (int i = 0; i < 2; i++) {
			random_guest(&g[i], 6, unit);
			g[i].amount[ITEM_FREE] = g[i].amount[ITEM_EXCESS] = 0;
			g[i].amount[ITEM_FILE_ENTITLED] = g[i].amount[ITEM_TEXT] = 0;
		}
		b.heaviest = fmax(g[0].weight, g[1].weight);
		b.need = (1 + number(20)) * unit;
		brute_search(&b, 0, b.need);
		if (solver_run(g, 2, b.need, events) > 0) {
			CU_ASSERT(b.best > 1e299); /* nobody can */
			continue;
		}
		mine = price_taken(&g[0], b.heaviest) + price_taken(&g[1], b.heaviest);
		CU_ASSERT(mine <= b.best * (1 + 1e-9) + 16);
		compared++;
	}
	CU_ASSERT(compared > 50);
}

/* No byte can be had for less elsewhere: the conditions of an optimum, tried by hand. */
static void moving_bytes_from_one_to_another_never_pays(void)
{
	static struct solver_guest g[MANY];
	static struct solver_event events[SOLVER_EVENTS(MANY)];

	for (int run = 0; run < 50; run++) {
		double heaviest = 0, step = 1 << 16;
		uint64_t total = 0, need;

		for (int i = 0; i < MANY; i++) {
			random_guest(&g[i], 300, 1 << 20);
			heaviest = fmax(heaviest, g[i].weight);
			for (int k = 0; k < ITEM_MAX_ID; k++)
				total += g[i].amount[k];
		}
		need = number(total);
		(void)solver_run(g, MANY, need, events);
		for (int tries = 0; tries < 2000; tries++) {
			struct solver_guest *a = &g[number(MANY)], *b = &g[number(MANY)];
			int j = (int)number(ITEM_MAX_ID), k = (int)number(ITEM_MAX_ID);
			double before, after, xa[ITEM_MAX_ID], xb[ITEM_MAX_ID];

			if (a == b || (double)a->take[j] < step ||
			    (double)(b->amount[k] - b->take[k]) < step ||
			    (k >= ITEM_FILE && (double)taken(b, ITEM_FILE) + step > (double)b->cap))
				continue;
			for (int m = 0; m < ITEM_MAX_ID; m++) {
				xa[m] = (double)a->take[m];
				xb[m] = (double)b->take[m];
			}
			before = price(a, heaviest, xa) + price(b, heaviest, xb);
			xa[j] -= step;
			xb[k] += step;
			after = price(a, heaviest, xa) + price(b, heaviest, xb);
			CU_ASSERT(after >= before - 1);
		}
	}
}

static void it_takes_what_is_needed_and_says_what_is_short(void)
{
	static struct solver_guest g[MANY];
	static struct solver_event events[SOLVER_EVENTS(MANY)];

	for (int run = 0; run < 200; run++) {
		size_t n = 1 + number(MANY - 1);
		uint64_t need = number(n * 2000) << 20, sum = 0, short_of;

		for (size_t i = 0; i < n; i++)
			random_guest(&g[i], 300, 1 << 20);
		short_of = solver_run(g, n, need, events);
		for (size_t i = 0; i < n; i++) {
			sum += taken(&g[i], 0);
			CU_ASSERT(taken(&g[i], ITEM_FILE) <= g[i].cap + 8);
			for (int k = 0; k < ITEM_MAX_ID; k++)
				CU_ASSERT(g[i].take[k] <= g[i].amount[k]);
		}
		CU_ASSERT(sum + short_of <= need + MANY * ITEM_MAX_ID);
		CU_ASSERT(sum + short_of + MANY * ITEM_MAX_ID >= need);
	}
}

static void no_weight_brings_a_dearer_tier_before_a_cheaper_one(void)
{
	struct solver_event events[SOLVER_EVENTS(3)];
	const uint64_t mib = 1 << 20;

	for (int run = 0; run < 500; run++) {
		struct solver_guest g[3];

		for (int i = 0; i < 3; i++) {
			random_guest(&g[i], 300, mib);
			g[i].cap = UINT64_MAX;
			g[i].weight = i == 0 ? 10 : i == 1 ? 0.01 : 1;
			for (int k = 0; k < ITEM_MAX_ID; k++)
				g[i].cost[k] = solver_prior(k);
		}
		(void)solver_run(g, 3, number(3000) * mib, events);
		for (int i = 0; i < 3; i++)
			for (int k = 1; k < ITEM_MAX_ID; k++)
				for (int j = 0; j < 3 && g[i].take[k] > 16; j++)
					CU_ASSERT(g[j].take[k - 1] + 16 >= g[j].amount[k - 1]);
	}
}

static void equal_guests_give_equally_and_the_heavy_give_less(void)
{
	struct solver_event events[SOLVER_EVENTS(3)];
	const uint64_t mib = 1 << 20;
	struct solver_guest g[3];

	for (int i = 0; i < 3; i++) {
		g[i] = (struct solver_guest){ .weight = i == 2 ? 2 : 1, .cap = UINT64_MAX };
		g[i].amount[ITEM_FILE] = 100 * mib;
		g[i].cost[ITEM_FILE] = 2;
	}
	CU_ASSERT_EQUAL(solver_run(g, 3, 50 * mib, events), 0);
	CU_ASSERT(fabs((double)g[0].take[ITEM_FILE] - (double)g[1].take[ITEM_FILE]) < 8);
	CU_ASSERT(fabs((double)g[0].take[ITEM_FILE] - 2 * (double)g[2].take[ITEM_FILE]) < 8);
}

static void nothing_is_taken_for_no_need_or_from_nobody(void)
{
	struct solver_event events[SOLVER_EVENTS(1)];
	struct solver_guest g = { .weight = 1, .cap = 5 };

	CU_ASSERT_EQUAL(solver_run(NULL, 0, 77, events), 77);
	g.amount[ITEM_FREE] = 100;
	CU_ASSERT_EQUAL(solver_run(&g, 1, 0, events), 0);
	CU_ASSERT_EQUAL(taken(&g, 0), 0);
}

static void the_cap_holds_what_is_dear_and_not_what_is_free(void)
{
	struct solver_event events[SOLVER_EVENTS(1)];
	struct solver_guest g = { .weight = 1, .cap = 5000 };

	for (int k = 0; k < ITEM_MAX_ID; k++) {
		g.amount[k] = 100000;
		g.cost[k] = solver_prior(k);
	}
	CU_ASSERT(solver_run(&g, 1, 300000, events) >= 94990);
	CU_ASSERT_EQUAL(g.take[ITEM_FREE], 100000);
	CU_ASSERT_EQUAL(g.take[ITEM_LAZYFREE], 100000);
	CU_ASSERT(taken(&g, ITEM_FILE) <= 5000 && taken(&g, ITEM_FILE) >= 4990);
}

static const struct unit_test tests[] = {
	TEST(it_is_never_dearer_than_the_best_of_all_ways),
	TEST(moving_bytes_from_one_to_another_never_pays),
	TEST(it_takes_what_is_needed_and_says_what_is_short),
	TEST(no_weight_brings_a_dearer_tier_before_a_cheaper_one),
	TEST(equal_guests_give_equally_and_the_heavy_give_less),
	TEST(nothing_is_taken_for_no_need_or_from_nobody),
	TEST(the_cap_holds_what_is_dear_and_not_what_is_free),
};

HARNESS_MAIN("solver", tests)
