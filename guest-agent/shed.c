// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest-agent/shed.h"

#include <errno.h>
#include <stdio.h>

#include "guest-agent/facts.h"

/* Text that reclaim may take before the shed is stopped: it is dearer than the memory is worth. */
#define TEXT_LOSS_MAX (UINT64_C(256) << 10)

/* Absent counts as nothing to take. */
static uint64_t known(const struct numbers *numbers, enum stat_id id)
{
	uint64_t value = 0;

	(void)stat_get(&numbers->stats, id, &value);
	return value;
}

uint64_t shed_limit(const struct numbers *numbers, uint64_t flags)
{
	uint64_t lazyfree = known(numbers, STAT_LAZYFREE);
	uint64_t active = known(numbers, STAT_ACTIVE_FILE);
	uint64_t inactive = known(numbers, STAT_INACTIVE_FILE);
	uint64_t limit = lazyfree;
	uint64_t file = 0;

	/* How much of the page cache is text must be known to leave it out. */
	if (stat_has(&numbers->stats, STAT_EXEC_MAPPED))
		file = less(active + inactive, lazyfree + known(numbers, STAT_EXEC_MAPPED));
	if (flags & WIRE_SHED_FILE)
		limit += lesser(less(inactive, lazyfree), file);
	if (flags & WIRE_SHED_ANON)
		limit += known(numbers, STAT_ACTIVE_ANON) + known(numbers, STAT_INACTIVE_ANON);
	return limit;
}

/* Pages that reclaim has taken since the guest booted. */
static bool stolen(const struct numbers *numbers, uint64_t *ret)
{
	uint64_t file, anon;

	if (!stat_get(&numbers->stats, STAT_STEAL_FILE, &file) ||
	    !stat_get(&numbers->stats, STAT_STEAL_ANON, &anon))
		return false;
	*ret = file + anon;
	return true;
}

/* What was freed so far: by the kernel's count, or by the growth of free memory. */
static uint64_t measure(const struct shed *shed, const struct numbers *numbers, uint64_t page)
{
	uint64_t now;

	if (stolen(numbers, &now))
		return less(now, shed->stolen_before) * page;
	return less(known(numbers, STAT_FREE), shed->free_before);
}

static bool lazyfree_goes_first(const char *root)
{
	uint64_t value;

	return read_number(root, knob_infos[KNOB_LAZYFREE_FIRST].path, &value) == 0 && value == 2;
}

int shed_start(struct shed *shed, const struct wire_shed *order, uint32_t seq, uint64_t deadline_us,
	       struct sampler *sampler)
{
	struct numbers numbers;

	if (shed->active)
		return -EBUSY;
	if (facts_reclaim_path(shed->root, shed->path) < 0)
		return -EOPNOTSUPP;
	if (!(order->flags & (WIRE_SHED_FILE | WIRE_SHED_ANON)) && !lazyfree_goes_first(shed->root))
		return -EOPNOTSUPP;
	sampler_read(sampler, &numbers);
	shed->active = true;
	shed->stop = false;
	shed->seq = seq;
	shed->order = *order;
	shed->began_us = clock_us();
	shed->deadline_us = deadline_us;
	shed->step = SHED_STEP_FIRST;
	shed->freed = 0;
	shed->idle = 0;
	shed->cheap_done = false;
	shed->free_before = known(&numbers, STAT_FREE);
	shed->text_before = known(&numbers, STAT_STEAL_EXEC);
	shed->stolen_before = 0;
	(void)stolen(&numbers, &shed->stolen_before);
	return 0;
}

static int reclaim(struct shed *shed, uint64_t bytes, unsigned int swappiness)
{
	char text[64];
	int r;

	if (!shed->no_swappiness) {
		(void)snprintf(text, sizeof(text), "%llu swappiness=%u", (unsigned long long)bytes,
			       swappiness);
		r = write_file(shed->root, shed->path, text);
		if (r != -EINVAL)
			return r;
		shed->no_swappiness = true;
	}
	/* Without it the kernel would swap as it likes, which the host must have permitted. */
	if (!(shed->order.flags & WIRE_SHED_ANON))
		return -EOPNOTSUPP;
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
	return write_file(shed->root, shed->path, text);
}

static void adapt(struct shed *shed, uint64_t took_us)
{
	if (took_us < SHED_STEP_QUICK_US && shed->step < SHED_STEP_MAX)
		shed->step *= 2;
	if (took_us > SHED_STEP_SLOW_US && shed->step > SHED_STEP_MIN)
		shed->step /= 2;
}

static uint64_t text_lost(const struct shed *shed, const struct numbers *numbers, uint64_t page)
{
	return less(known(numbers, STAT_STEAL_EXEC), shed->text_before) * page;
}

/*
 * Lazyfree pages that were written again count until reclaim meets them, so the bound may be too
 * high by them; that shows by the text that goes instead. With leave for it, what is left to take
 * is anonymous memory then; without, the shed ends.
 */
static void guard_text(struct shed *shed, const struct numbers *numbers, uint64_t page)
{
	if (!(shed->order.flags & WIRE_SHED_ANON) || shed->cheap_done ||
	    text_lost(shed, numbers, page) <= TEXT_LOSS_MAX)
		return;
	shed->cheap_done = true;
	shed->text_before = known(numbers, STAT_STEAL_EXEC);
}

/* Why the shed ends before another step, or -EINPROGRESS. */
static int verdict(const struct shed *shed, const struct numbers *numbers, uint64_t page)
{
	if (shed->freed >= shed->order.bytes || shed->idle >= SHED_IDLE_STEPS)
		return 0;
	if (shed->stop || text_lost(shed, numbers, page) > TEXT_LOSS_MAX)
		return -EAGAIN;
	/* The setting may have been lowered meanwhile, and reclaim would take page cache. */
	if (!(shed->order.flags & (WIRE_SHED_FILE | WIRE_SHED_ANON)) &&
	    !lazyfree_goes_first(shed->root))
		return -EAGAIN;
	if (clock_us() >= shed->deadline_us)
		return -ETIME;
	if (shed_limit(numbers, shed->order.flags) < page)
		return 0;
	return -EINPROGRESS;
}

/* What can be taken now without touching anonymous memory in use. */
static uint64_t cheap_limit(const struct shed *shed, const struct numbers *numbers)
{
	if (shed->cheap_done)
		return 0;
	if (!(shed->order.flags & WIRE_SHED_FILE) && !lazyfree_goes_first(shed->root))
		return 0;
	return shed_limit(numbers, shed->order.flags & WIRE_SHED_FILE);
}

static int take_step(struct shed *shed, const struct numbers *numbers, struct sampler *sampler)
{
	uint64_t left = shed->order.bytes - shed->freed, before = shed->freed, began, took;
	uint64_t limit = cheap_limit(shed, numbers);
	unsigned int swappiness = 0;
	struct numbers after;
	int r;

	if (limit < sampler->page_size) {
		limit = shed_limit(numbers, shed->order.flags);
		swappiness = (unsigned int)shed->order.swappiness;
	}
	/* Half of what there is, then look again, down to a step that is too small to halve. */
	if (limit > 2 * SHED_STEP_MIN)
		limit /= 2;
	began = clock_us();
	r = reclaim(shed, lesser(lesser(left, shed->step), limit), swappiness);
	took = clock_us() - began;
	adapt(shed, took);
	sampler_read(sampler, &after);
	shed->freed = measure(shed, &after, sampler->page_size);
	shed->idle = shed->freed > before ? 0 : shed->idle + 1;
	guard_text(shed, &after, sampler->page_size);
	/* The kernel says EAGAIN for less than was asked, too; what was freed is measured. */
	if (r < 0 && r != -EAGAIN && r != -EINTR)
		return r;
	return verdict(shed, &after, sampler->page_size);
}

int shed_step(struct shed *shed, struct sampler *sampler)
{
	struct numbers numbers;
	int r;

	sampler_read(sampler, &numbers);
	r = verdict(shed, &numbers, sampler->page_size);
	if (r == -EINPROGRESS)
		r = take_step(shed, &numbers, sampler);
	if (r != -EINPROGRESS)
		shed->active = false;
	return r;
}
