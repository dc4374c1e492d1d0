// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest-agent/sampler.h"

#include <fcntl.h>
#include <unistd.h>

#include "guest-agent/util.h"

int sampler_open(struct sampler *sampler, const char *root)
{
	sampler->meminfo = root_open(root, "/proc/meminfo", O_RDONLY);
	sampler->vmstat = root_open(root, "/proc/vmstat", O_RDONLY);
	sampler->zoneinfo = root_open(root, "/proc/zoneinfo", O_RDONLY);
	sampler->psi_memory = root_open(root, "/proc/pressure/memory", O_RDONLY);
	sampler->psi_io = root_open(root, "/proc/pressure/io", O_RDONLY);
	sampler->page_size = (uint64_t)sysconf(_SC_PAGESIZE);
	sampler->swap_used = 0;
	(void)walk_open(&sampler->walk, root);
	return sampler->meminfo < 0 ? sampler->meminfo : 0;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

void sampler_close(struct sampler *sampler)
{
	close_one(&sampler->meminfo);
	close_one(&sampler->vmstat);
	close_one(&sampler->zoneinfo);
	close_one(&sampler->psi_memory);
	close_one(&sampler->psi_io);
	walk_close(&sampler->walk);
}

static bool read_text(struct sampler *sampler, int fd)
{
	return fd >= 0 && read_again(fd, sampler->buf, sizeof(sampler->buf)) > 0;
}

/* Without swap space in use there are no entries, whatever the last walk said. */
static void put_walk(struct sampler *sampler, struct numbers *numbers)
{
	const struct walk *walk = &sampler->walk;
	uint64_t total, free;
	bool known = stat_get(&numbers->stats, STAT_SWAP_TOTAL, &total) &&
		     stat_get(&numbers->stats, STAT_SWAP_FREE, &free);

	sampler->swap_used = known ? less(total, free) : 0;
	if (known && sampler->swap_used == 0)
		stat_put(&numbers->stats, STAT_SWAP_ENTRIES, 0);
	else if (walk->valid)
		stat_put(&numbers->stats, STAT_SWAP_ENTRIES, walk->entries);
	if (walk->valid)
		stat_put(&numbers->stats, STAT_PROCESSES, walk->processes);
}

void sampler_read(struct sampler *sampler, struct numbers *ret)
{
	struct numbers numbers = { 0 };

	if (read_text(sampler, sampler->meminfo))
		procfs_meminfo(sampler->buf, &numbers);
	if (read_text(sampler, sampler->vmstat))
		procfs_vmstat(sampler->buf, sampler->page_size, &numbers);
	if (read_text(sampler, sampler->zoneinfo))
		procfs_zoneinfo(sampler->buf, sampler->page_size, &numbers);
	if (read_text(sampler, sampler->psi_memory))
		procfs_psi(sampler->buf, "memory", &numbers);
	if (read_text(sampler, sampler->psi_io))
		procfs_psi(sampler->buf, "io", &numbers);
	procfs_approximate(&numbers);
	put_walk(sampler, &numbers);
	*ret = numbers;
}

void sampler_sample(struct sampler *sampler, struct wire_sample *ret)
{
	const struct walk *walk = &sampler->walk;
	uint64_t now = clock_us();
	struct numbers numbers;

	sampler_read(sampler, &numbers);
	*ret = (struct wire_sample){
		.clock_us = now,
		.uptime_us = uptime_us(),
		.slow_age_us = sampler->swap_used && walk->valid ? now - walk->at_us : 0,
		.cost_us = cpu_us(),
		.stats = numbers.stats,
		.approximate = numbers.approximate,
	};
}

bool sampler_step(struct sampler *sampler, uint64_t now_us)
{
	return walk_step(&sampler->walk, now_us, sampler->swap_used, sampler->buf,
			 sizeof(sampler->buf));
}

bool sampler_psi(struct sampler *sampler, uint64_t *ret_some, uint64_t *ret_full)
{
	struct numbers numbers = { 0 };

	if (!read_text(sampler, sampler->psi_memory))
		return false;
	procfs_psi(sampler->buf, "memory", &numbers);
	return stat_get(&numbers.stats, STAT_PSI_SOME, ret_some) &&
	       stat_get(&numbers.stats, STAT_PSI_FULL, ret_full);
}
