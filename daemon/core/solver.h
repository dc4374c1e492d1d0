/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whose memory goes, and which: the optimisation behind a round. Pure arithmetic on arrays of the
 * caller; no allocation; any thread.
 */
#ifndef BALLAST_CORE_SOLVER_H
#define BALLAST_CORE_SOLVER_H

#include <stddef.h>
#include <stdint.h>

/*
 * What can be taken from a guest, in the order of its price. File and what is beyond a guest's
 * entitlement come in two parts: what a guest is entitled to is dearer than anything that others
 * hold beyond their entitlement.
 */
enum item {
	ITEM_FREE, /* free in the guest, backed by the host */
	ITEM_LAZYFREE,
	ITEM_FILE, /* page cache that the guest isn't entitled to */
	ITEM_EXCESS, /* anonymous memory and text beyond the entitlement */
	ITEM_FILE_ENTITLED, /* page cache within the entitlement */
	ITEM_ANON,
	ITEM_TEXT,
	ITEM_MAX_ID,
};

struct solver_guest {
	uint64_t amount[ITEM_MAX_ID]; /* a: what there is, bytes */
	double cost[ITEM_MAX_ID]; /* c: price of the first byte */
	double weight; /* above 0: a heavier guest gives a smaller part of a tier */
	uint64_t cap; /* at most this much of ITEM_FILE and dearer together, bytes */
	uint64_t take[ITEM_MAX_ID]; /* x: the result, bytes */
	double limit; /* of lambda for the capped items; scratch */
};

struct solver_event {
	double lambda, slope; /* from this lambda on, the total grows by so much more */
};

/* Events that solver_run() needs room for. */
#define SOLVER_EVENTS(n) ((n)*ITEM_MAX_ID * 2)

/**
 * solver_run() - take @need bytes from @n guests at the least price.
 * @events: scratch of SOLVER_EVENTS(@n).
 *
 * Return: the shortfall in bytes, what could not be had.
 */
uint64_t solver_run(struct solver_guest *guests, size_t n, uint64_t need,
		    struct solver_event *events);

/** solver_prior() - the price of an item before anything was learned. */
double solver_prior(enum item item);

#endif
