/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parsers of daemon/host that tests and the fuzzer call by themselves. Pure, any thread.
 */
#ifndef BALLAST_HOST_INTERNAL_H
#define BALLAST_HOST_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

struct host;

const char *host_root(const struct host *host);

/**
 * pressure_parse() - one line of a file of /proc/pressure.
 * @kind: "some" or "full". @ret_avg10: hundredths of a percent.
 *
 * Return: whether the line was there and well formed; else the outputs are untouched.
 */
bool pressure_parse(const char *text, const char *kind, uint32_t *ret_avg10,
		    uint64_t *ret_total_us);

/* What smaps is read for, line by line. Start with all zero but .maximum. All in bytes. */
struct smaps_scan {
	uint64_t maximum; /* of the guest */
	uint64_t all; /* anonymous memory, resident or swapped, of all mappings so far */
	uint64_t exact; /* ... of those that are just as large as the guest */
	uint64_t large; /* ... of those that are larger than what QEMU needs for itself */
	uint64_t large_size; /* of all those mappings together */
	bool exact_found;
	bool in_exact, in_large; /* whether the lines are those of such a mapping */
};

/**
 * smaps_line() - take one line of /proc/PID/smaps, without its newline.
 */
void smaps_line(struct smaps_scan *scan, const char *line);

/**
 * smaps_overhead() - what isn't the guest's RAM.
 *
 * Return: whether the RAM could be told from the rest; else @ret_overhead is untouched.
 */
bool smaps_overhead(const struct smaps_scan *scan, uint64_t *ret_overhead);

#endif
