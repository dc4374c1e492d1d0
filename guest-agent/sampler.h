/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One sample of the guest's numbers, from files that are kept open. The vmstat gauges may lag
 * behind by the kernel's own flush (vm.stat_interval, one second) on busy CPUs; writing to
 * vm.stat_refresh before each sample would interrupt every CPU for less than a second's news, so
 * it isn't done.
 */
#ifndef BALLAST_AGENT_SAMPLER_H
#define BALLAST_AGENT_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "guest-agent/procfs.h"
#include "guest-agent/proto/wire.h"
#include "guest-agent/walk.h"

struct sampler {
	int meminfo, vmstat, zoneinfo, psi_memory, psi_io; /* -1 where absent */
	uint64_t page_size;
	uint64_t swap_used; /* of the last sample */
	struct walk walk;
	char buf[16384];
};

/**
 * sampler_open() - open what is there.
 *
 * Return: 0, or a negative errno where there is no /proc/meminfo, without which nothing is known.
 */
int sampler_open(struct sampler *sampler, const char *root);

void sampler_close(struct sampler *sampler);

/**
 * sampler_read() - read everything now; the sum over processes is that of the last walk.
 */
void sampler_read(struct sampler *sampler, struct numbers *ret);

/**
 * sampler_sample() - sampler_read() into a frame's fields, all but cause and interval.
 */
void sampler_sample(struct sampler *sampler, struct wire_sample *ret);

/**
 * sampler_step() - go on with the sum over processes.
 *
 * Return: whether it wants another step soon.
 */
bool sampler_step(struct sampler *sampler, uint64_t now_us);

/**
 * sampler_psi() - read the PSI totals of memory alone.
 *
 * Return: whether both are there.
 */
bool sampler_psi(struct sampler *sampler, uint64_t *ret_some, uint64_t *ret_full);

#endif
