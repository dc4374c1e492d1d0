/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bounded reading of the kernel's text files, and amounts as people read them. No allocation, no
 * locale, no I/O; any thread. A number that isn't there, is malformed or doesn't fit 64 bits is
 * absent and never 0.
 */
#ifndef BALLAST_UTIL_PARSE_H
#define BALLAST_UTIL_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KIB(n)		 (UINT64_C(1024) * (n))
#define MIB(n)		 (UINT64_C(1048576) * (n))

#define FORMAT_SIZE_MAX	 24 /* bytes that format_size() needs at most */

#define PARSE_FIELDS_MAX 64

/* One number to be found in a file of "key value" lines, such as meminfo, vmstat and status. */
struct parse_field {
	const char *key; /* whole, without a colon */
	uint64_t value; /* out: in bytes where the line ends in "kB", else as it stands */
	bool found; /* out */
};

/**
 * parse_u64() - read an unsigned decimal number.
 * @text: advanced behind the digits, for true only.
 *
 * No sign, no white space before it. Return: whether there was a number that fits.
 */
bool parse_u64(const char **text, uint64_t *ret_value);

/**
 * parse_fields() - find several numbers in one pass.
 * @text: lines of "key value", "key: value" or "key: value kB"; other lines are skipped.
 * @fields: what to find, at most PARSE_FIELDS_MAX; .value and .found are written. The first line
 *          of a key counts.
 *
 * Return: how many were found.
 */
size_t parse_fields(const char *text, struct parse_field *fields, size_t n_fields);

/**
 * parse_hundredths() - read a number with up to two decimals, such as "12.34", in hundredths.
 * @text: advanced behind it, for true only. Further decimals are cut off.
 */
bool parse_hundredths(const char **text, uint32_t *ret_value);

/**
 * format_size() - an amount for a person: "0", "512 KiB", "1.5 MiB", "1800 MiB", "11.5 GiB". MiB as
 * far as they can be read, for the changes that matter are of that size.
 * @buf, @size: where to write, always terminated.
 *
 * Return: @buf.
 */
char *format_size(char *buf, size_t size, uint64_t bytes);

#endif
