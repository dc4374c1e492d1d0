// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest-agent/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest-agent/procfs.h"
#include "guest-agent/util.h"

#define KCMP_VM 1 /* of linux/kcmp.h, which not every libc brings */

/* A record of getdents64(2). */
struct dent {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

int walk_open(struct walk *walk, const char *root)
{
	int fd = root_open(root, "/proc", O_RDONLY | O_DIRECTORY);

	*walk = (struct walk){ .proc_fd = fd, .real = *root == '\0' };
	return fd < 0 ? fd : 0;
}

void walk_close(struct walk *walk)
{
	if (walk->proc_fd >= 0)
		(void)close(walk->proc_fd);
	walk->proc_fd = -1;
}

static ssize_t read_status(int proc_fd, const char *pid, char *buf, size_t size)
{
	char path[32];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "%.20s/status", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read_again(fd, buf, size);
	(void)close(fd);
	return n;
}

/*
 * Whether a process shares the mm of its parent, which was counted already. The memory lines of
 * both are the same then; the kernel is asked only if they are. Where PIDs have wrapped around, the
 * child may come first; then both are counted.
 */
static bool shares_mm(struct walk *walk, uint32_t pid, const struct process_status *status)
{
	uint32_t parent = (uint32_t)status->parent, print = (uint32_t)status->print;
	bool same = walk->seen[parent % WALK_SEEN].pid == parent &&
		    walk->seen[parent % WALK_SEEN].print == print;

	walk->seen[pid % WALK_SEEN].pid = pid;
	walk->seen[pid % WALK_SEEN].print = print;
	if (!same || !walk->real)
		return same && !walk->real;
	return syscall(SYS_kcmp, (pid_t)pid, (pid_t)parent, KCMP_VM, 0, 0) == 0;
}

static void visit(struct walk *walk, const char *name, char *buf, size_t size)
{
	struct process_status status;
	const char *p = name;
	uint64_t pid;

	if (!take_number(&p, &pid) || *p != '\0' || pid > UINT32_MAX)
		return;
	/* It may be gone by now. */
	if (read_status(walk->proc_fd, name, buf, size) < 0)
		return;
	if (!procfs_status(buf, &status) || !status.has_mm)
		return;
	if (shares_mm(walk, (uint32_t)pid, &status))
		return;
	walk->sum += status.swap;
	walk->count++;
}

static void begin(struct walk *walk, uint64_t now_us)
{
	walk->running = true;
	walk->sum = 0;
	walk->count = 0;
	walk->used_us = 0;
	walk->began_us = now_us;
	walk->dents_len = 0;
	walk->dents_at = 0;
	memset(walk->seen, 0, sizeof(walk->seen));
	(void)lseek(walk->proc_fd, 0, SEEK_SET);
}

static void finish(struct walk *walk, uint64_t swap_used)
{
	uint64_t wait = walk->used_us * WALK_SHARE;

	if (swap_used == 0 && wait < WALK_IDLE_US)
		wait = WALK_IDLE_US;
	if (wait > WALK_MAX_US)
		wait = WALK_MAX_US;
	walk->running = false;
	walk->valid = true;
	walk->entries = walk->sum;
	walk->processes = walk->count;
	walk->at_us = walk->began_us;
	walk->cost_us = walk->used_us;
	walk->next_us = walk->began_us + wait;
}

/* The next name of /proc, or NULL at its end. */
static const char *next_name(struct walk *walk)
{
	const struct dent *dent;

	if (walk->dents_at >= walk->dents_len) {
		walk->dents_len = (int)syscall(SYS_getdents64, walk->proc_fd, walk->dents,
					       sizeof(walk->dents));
		walk->dents_at = 0;
		if (walk->dents_len <= 0)
			return NULL;
	}
	dent = (const void *)(walk->dents + walk->dents_at);
	walk->dents_at += dent->len;
	return dent->name;
}

bool walk_step(struct walk *walk, uint64_t now_us, uint64_t swap_used, char *buf, size_t size)
{
	uint64_t start = cpu_us(), spent = 0;

	if (walk->proc_fd < 0)
		return false;
	if (!walk->running) {
		/* Swap that has come into use since an idle walk is looked at without delay. */
		bool wake = swap_used > 0 && walk->entries == 0 &&
			    now_us >= walk->at_us + walk->cost_us * WALK_SHARE;

		if (walk->valid && now_us < walk->next_us && !wake)
			return false;
		begin(walk, now_us);
	}
	while (spent < WALK_STEP_US) {
		const char *name = next_name(walk);

		if (!name) {
			walk->used_us += cpu_us() - start;
			finish(walk, swap_used);
			return false;
		}
		visit(walk, name, buf, size);
		spent = cpu_us() - start;
	}
	walk->used_us += spent;
	return true;
}
