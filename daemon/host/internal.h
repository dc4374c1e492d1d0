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
 * Return: whether the line was there and began well; else the output is untouched.
 */
bool pressure_parse(const char *text, const char *kind, uint32_t *ret_avg10);

/* A line of /proc/PID/maps. */
struct mapping {
	uint64_t start, end; /* addresses */
	bool readable, writable, executable, private;
	bool file; /* of a file, or of a memfd */
};

/**
 * mapping_parse() - read a line of /proc/PID/maps.
 *
 * Return: whether it was one; else @ret is untouched.
 */
bool mapping_parse(const char *line, struct mapping *ret);

/* Which mappings are the guest's RAM. Start with all zero but .maximum. In bytes. */
struct ram_look {
	uint64_t maximum; /* of the guest */
	uint64_t large; /* size of all mappings that are larger than what QEMU needs for itself */
	bool exact; /* there is a mapping just as large as the guest */
};

/** ram_look() - take note of a mapping. To be called for all of them before what follows. */
void ram_look(struct ram_look *look, const struct mapping *mapping);

/** ram_found() - whether the RAM can be told from the rest. */
bool ram_found(const struct ram_look *look);

/** mapping_is_own() - whether a mapping may have memory of QEMU's own. */
bool mapping_is_own(const struct ram_look *look, const struct mapping *mapping);

#endif
