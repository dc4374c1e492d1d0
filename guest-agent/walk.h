/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sum of MM_SWAPENTS over all processes, in small steps so that a guest with many processes
 * doesn't delay samples and pressure. The kernel has no gauge of it: it is VmSwap of each
 * /proc/PID/status. Threads share an mm and /proc lists only their leader; a process that shares
 * its parent's mm (vfork, CLONE_VM) is told by kcmp(2) and counted once. After a fork both hold
 * the entries, and both are counted: the sum may be above the swap space in use.
 *
 * Where no swap is in use there is nothing to sum, and the walk only counts processes, seldom.
 * Otherwise it runs as often as one percent of a CPU permits.
 */
#ifndef BALLAST_AGENT_WALK_H
#define BALLAST_AGENT_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WALK_SEEN    1024
#define WALK_SHARE   100 /* a hundredth of a CPU */
#define WALK_IDLE_US 30000000 /* between walks without swap in use */
#define WALK_MAX_US  300000000 /* between walks, however dear */
#define WALK_STEP_US 10000 /* CPU time of one step */

struct walk {
	int proc_fd;
	bool real; /* a real /proc: PIDs are this kernel's */
	bool running;
	bool valid; /* entries and processes hold a finished walk */
	uint64_t entries, processes; /* of the last walk: bytes, count */
	uint64_t at_us; /* when it began */
	uint64_t cost_us; /* CPU time that it took */
	uint64_t next_us; /* when the next is due */
	/* of the walk that runs */
	uint64_t sum, count, began_us, used_us;
	char dents[2048];
	int dents_len, dents_at;
	struct {
		uint32_t pid;
		uint32_t print;
	} seen[WALK_SEEN]; /* memory lines of recent processes, by PID */
};

/**
 * walk_open() - prepare to walk the /proc of a root.
 *
 * Return: 0, or a negative errno of opening it.
 */
int walk_open(struct walk *walk, const char *root);

void walk_close(struct walk *walk);

/**
 * walk_step() - begin a walk if one is due, and go on with the one that runs.
 * @swap_used: bytes of swap space in use, which tells how often a walk is worth it.
 * @buf: room for one status file.
 *
 * Return: whether a walk runs and wants another step soon.
 */
bool walk_step(struct walk *walk, uint64_t now_us, uint64_t swap_used, char *buf, size_t size);

#endif
