// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The problem: for guest i and item k with amount a, price c and weight w choose x, to
 *
 *   minimise  sum( c x + kappa w x^2 / (2 a) ) + P s
 *   subject to  sum(x) + s = N,  0 <= x <= a,  s >= 0,  and per guest  sum over k >= FILE of
 *               x <= cap,
 *
 * where P is above every other price, so that s is what nobody can give. w is relative to the
 * heaviest guest, so at most 1, and kappa is at most the smallest step of the ladder of prices:
 * the quadratic term shares a tier out (everybody gives a like part of it, the heavy a smaller
 * one), and cannot make a dearer tier begin before a cheaper one is used up, whatever the weights.
 *
 * The function is convex and the constraints are linear, so the Kuhn-Tucker conditions are enough:
 * there is a lambda, the price of the last byte, with x = clip(a (lambda - c) / (kappa w), 0, a),
 * and a guest whose cap binds answers with a lambda of its own that stays where the cap was met.
 * The cost is strictly convex in each x, so the solution is the only one.
 *
 * Each x, and so the sum, grows with lambda in straight pieces. The algorithm sorts the ends of the
 * pieces and walks up until the sum is N: O(nK log nK). A guest with a cap is walked alone before,
 * to find its own limit, and its pieces end there.
 */
#include "daemon/core/solver.h"

/* The smallest distance between two prices of the ladder below. */
#define KAPPA (1.0 / 3)

double solver_prior(enum item item)
{
	static const double prior[ITEM_MAX_ID] = {
		[ITEM_FREE] = 0,
		[ITEM_LAZYFREE] = 1,
		[ITEM_FILE] = 2,
		[ITEM_EXCESS] = 2 + KAPPA,
		[ITEM_FILE_ENTITLED] = 2 + 2 * KAPPA,
		[ITEM_ANON] = 3,
		[ITEM_TEXT] = 4,
	};

	return prior[item];
}

/* Heap sort: qsort() of the C library may allocate. */
static void sift_down(struct solver_event *e, size_t start, size_t n)
{
	size_t root = start, child;

	while ((child = 2 * root + 1) < n) {
		struct solver_event swap = e[root];

		if (child + 1 < n && e[child].lambda < e[child + 1].lambda)
			child++;
		if (e[root].lambda >= e[child].lambda)
			return;
		e[root] = e[child];
		e[child] = swap;
		root = child;
	}
}

static void sort_events(struct solver_event *e, size_t n)
{
	for (size_t i = n / 2; i-- > 0;)
		sift_down(e, i, n);
	for (size_t i = n; i-- > 1;) {
		struct solver_event swap = e[0];

		e[0] = e[i];
		e[i] = swap;
		sift_down(e, 0, i);
	}
}

/* Walks up to where the sum is @total. Returns that lambda; *@ret_reached: the sum, if less. */
static double walk(const struct solver_event *e, size_t n, double total, double *ret_reached)
{
	double sum = 0, slope = 0, at = n > 0 ? e[0].lambda : 0;

	for (size_t i = 0; i < n; i++) {
		double next = sum + slope * (e[i].lambda - at);

		if (next >= total && slope > 0) {
			*ret_reached = total;
			return at + (total - sum) / slope;
		}
		sum = next;
		at = e[i].lambda;
		slope += e[i].slope;
	}
	*ret_reached = sum;
	return at;
}

static size_t put_item(const struct solver_guest *g, enum item item, double width, double limit,
		       struct solver_event *e)
{
	double start = g->cost[item], end = start + width;

	if (g->amount[item] == 0 || start >= limit)
		return 0;
	e[0] = (struct solver_event){ start, (double)g->amount[item] / width };
	e[1] = (struct solver_event){ end < limit ? end : limit, -e[0].slope };
	return 2;
}

/* Where the cap of a guest binds. */
static double cap_limit(const struct solver_guest *g, double width, struct solver_event *e)
{
	double reached;
	size_t n = 0;

	for (int k = ITEM_FILE; k < ITEM_MAX_ID; k++)
		n += put_item(g, k, width, 1e30, e + n);
	sort_events(e, n);
	if (g->cap == 0)
		return -1;
	return walk(e, n, (double)g->cap, &reached);
}

static uint64_t clip(double x, uint64_t amount)
{
	if (!(x > 0))
		return 0;
	return x >= (double)amount ? amount : (uint64_t)x;
}

static void assign(struct solver_guest *g, double width, double lambda)
{
	for (int k = 0; k < ITEM_MAX_ID; k++) {
		double mine = k >= ITEM_FILE && g->limit < lambda ? g->limit : lambda;

		g->take[k] = clip((double)g->amount[k] * (mine - g->cost[k]) / width, g->amount[k]);
	}
}

uint64_t solver_run(struct solver_guest *guests, size_t n, uint64_t need,
		    struct solver_event *events)
{
	double heaviest = 0, lambda, reached = 0;
	size_t n_events = 0;

	for (size_t i = 0; i < n; i++)
		if (guests[i].weight > heaviest)
			heaviest = guests[i].weight;
	for (size_t i = 0; i < n; i++) {
		struct solver_guest *g = &guests[i];
		double width = KAPPA * g->weight / heaviest;

		g->limit = cap_limit(g, width, events + n_events);
		for (int k = 0; k < ITEM_MAX_ID; k++)
			n_events += put_item(g, k, width, k < ITEM_FILE ? 1e30 : g->limit,
					     events + n_events);
	}
	sort_events(events, n_events);
	lambda = need > 0 ? walk(events, n_events, (double)need, &reached) : -1;
	for (size_t i = 0; i < n; i++)
		assign(&guests[i], KAPPA * guests[i].weight / heaviest, lambda);
	return reached + 0.5 < (double)need ? need - (uint64_t)reached : 0;
}
