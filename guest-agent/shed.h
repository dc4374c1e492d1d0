/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Taking memory from the guest's own caches when the host asks: memory.reclaim of the root of
 * cgroup2, in steps short enough for samples and pressure to go on in between. The agent holds
 * the bound itself: never more than what is lazyfree and, as far as the host permits, cold page
 * cache and anonymous memory, by numbers read just before each step.
 */
#ifndef BALLAST_AGENT_SHED_H
#define BALLAST_AGENT_SHED_H

#include <stdbool.h>
#include <stdint.h>

#include "guest-agent/proto/wire.h"
#include "guest-agent/sampler.h"
#include "guest-agent/util.h"

#define SHED_STEP_MIN	   (UINT64_C(1) << 20)
#define SHED_STEP_FIRST	   (UINT64_C(2) << 20)
#define SHED_STEP_MAX	   (UINT64_C(32) << 20)
#define SHED_STEP_QUICK_US 50000 /* a step that is quicker doubles the next */
#define SHED_STEP_SLOW_US  200000 /* ... slower halves it */
#define SHED_IDLE_STEPS	   2 /* without progress: there is nothing more */

struct shed {
	const char *root;
	bool active;
	bool stop; /* pressure: end it before the next step */
	uint32_t seq; /* of the command */
	struct wire_shed order;
	uint64_t began_us, deadline_us;
	uint64_t step;
	uint64_t freed, free_before, stolen_before, text_before;
	unsigned int idle;
	bool cheap_done; /* text began to go: nothing but anonymous memory is left to take */
	bool no_swappiness; /* the kernel's memory.reclaim takes no swappiness */
	char path[AGENT_PATH_MAX];
};

/**
 * shed_limit() - how many bytes a shed may take now.
 * @flags: WIRE_SHED_.
 */
uint64_t shed_limit(const struct numbers *numbers, uint64_t flags);

/**
 * shed_start() - begin to carry out an order.
 * @deadline_us: when its lifetime ends.
 *
 * Return: 0; -EBUSY while one goes on; -EOPNOTSUPP where the kernel can't, or can't take lazyfree
 * memory alone as asked because vm.lazyfree_first isn't 2.
 */
int shed_start(struct shed *shed, const struct wire_shed *order, uint32_t seq, uint64_t deadline_us,
	       struct sampler *sampler);

/**
 * shed_step() - take a step.
 *
 * Return: -EINPROGRESS if another should follow; otherwise it is finished: 0 (shed->freed may be
 * less than asked where there was no more), -ETIME, -EAGAIN when it was stopped for the guest's
 * sake, or another negative errno of the kernel.
 */
int shed_step(struct shed *shed, struct sampler *sampler);

#endif
