/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host as /proc and /sys show it: memory, swap, PSI, the budget's cgroup, huge pages, and what
 * each guest's QEMU costs. Files are kept open and read with pread; nothing is allocated while
 * reading. The root of the file system is a parameter, so that tests can make up a host. Objects
 * belong to the caller; one thread at a time.
 */
#ifndef BALLAST_HOST_HOST_H
#define BALLAST_HOST_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/snapshot.h"

struct host;
struct host_guest;

struct host_options {
	const char *root; /* in front of /proc and /sys, NULL: none */
	/* The budget's cgroup, "" or NULL for none: below the mount point ("machine.slice") or
	 * with it ("/sys/fs/cgroup/machine.slice"); v2 or the memory controller of v1. */
	const char *cgroup;
};

/**
 * host_new() - open what there is.
 * @ret: owned by the caller, to be given to host_free().
 *
 * A kernel without PSI, swap or huge pages is no error: those numbers stay absent.
 * Return: 0, -ENOMEM, the errno of /proc/meminfo, or that of the cgroup that was named.
 */
int host_new(struct host **ret, const struct host_options *options);
struct host *host_free(struct host *host);

/**
 * host_read() - fill the host's part of a snapshot.
 * @now_us: the time that the numbers get.
 * @ret: all of it is written; what can't be read has time 0. cgroup_limit is UINT64_MAX where the
 *       cgroup has no limit.
 *
 * thp_always is also true for "madvise", since QEMU asks for huge pages for the guest's memory.
 * Return: 0, or the errno of /proc/meminfo.
 */
int host_read(struct host *host, uint64_t now_us, struct host_snapshot *ret);

/**
 * host_pressure_fd() - arm a PSI trigger on the host's memory.
 * @threshold_us: stall ("some") in a window of @window_us that fires it; both within what the
 *                kernel permits (window 500 ms to 10 s, without privilege multiples of 2 s).
 *
 * Return: a descriptor that the caller owns, to be watched for EPOLLPRI only; -EOPNOTSUPP without
 * PSI, -EPERM or -EINVAL where the kernel grants no trigger: then host_read() alone has to do.
 */
int host_pressure_fd(const struct host *host, uint64_t threshold_us, uint64_t window_us);

/**
 * host_guest_open() - begin to watch the QEMU of a guest.
 * @pid: of the QEMU, as HYP_GUEST says.
 * @maximum: the guest's maximum memory, by which its RAM is found among the mappings.
 * @tcg: the guest is emulated: QEMU's translation buffer makes the overhead larger.
 * @ret: owned by the caller, to be given to host_guest_close().
 *
 * It stays bound to this one process: a PID used again is not mistaken for it.
 * Return: 0, -ENOMEM, -ESRCH where there is no such process.
 */
int host_guest_open(const struct host *host, int pid, uint64_t maximum, bool tcg,
		    struct host_guest **ret);
struct host_guest *host_guest_close(struct host_guest *guest);

/**
 * host_guest_read() - what the guest costs the host now.
 * @now_us: the time that the numbers get. @ret: all of it is written, for 0 only.
 *
 * resident and swapped are from /proc/PID/status, which needs no privilege. The overhead is
 * measured by maps and pagemap at the first call and then each 30 s (more rarely where that takes
 * long, so that it takes at most a thousandth of the time) if the process may be traced (root, the
 * same user, or CAP_SYS_PTRACE); else it is an estimate (host_guest_overhead_measured()).
 * Return: 0, -ESRCH when the process is gone.
 */
int host_guest_read(struct host_guest *guest, uint64_t now_us, struct cost_part *ret);

/** host_guest_set_maximum() - the guest's maximum memory has changed. */
void host_guest_set_maximum(struct host_guest *guest, uint64_t maximum);

/** host_guest_overhead_measured() - whether the overhead is measured and no estimate. */
bool host_guest_overhead_measured(const struct host_guest *guest);

#endif
