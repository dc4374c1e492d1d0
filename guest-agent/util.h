/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What all parts of the agent use: clocks, small files under a root folder, numbers in text.
 * The root is "" in a guest and a folder with a made-up /proc and /sys in a test. No allocation.
 */
#ifndef BALLAST_AGENT_UTIL_H
#define BALLAST_AGENT_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define AGENT_PATH_MAX 512

static inline uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* a - b, or 0. */
static inline uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/**
 * clock_us() - CLOCK_MONOTONIC in µs.
 */
uint64_t clock_us(void);

/**
 * uptime_us() - time since boot in µs, with the time suspended.
 */
uint64_t uptime_us(void);

/**
 * cpu_us() - CPU time in µs that this process has used.
 */
uint64_t cpu_us(void);

/**
 * root_path() - put a root before an absolute path.
 * @buf: AGENT_PATH_MAX bytes.
 *
 * Return: 0, -ENAMETOOLONG.
 */
int root_path(const char *root, const char *path, char *buf);

/**
 * root_open() - open a file under a root, close-on-exec.
 *
 * Return: a descriptor, or a negative errno.
 */
int root_open(const char *root, const char *path, int flags);

/**
 * read_again() - read a whole small file from its start through a descriptor that is kept open.
 * @buf: gets the text and a NUL; what doesn't fit is left out.
 *
 * Return: bytes read, or a negative errno.
 */
ssize_t read_again(int fd, char *buf, size_t size);

/**
 * read_file() - read_again() of a file that is opened and closed for it.
 */
ssize_t read_file(const char *root, const char *path, char *buf, size_t size);

/**
 * write_file() - write a text into an existing file in one call, as /proc and /sys want it.
 *
 * Return: 0, or a negative errno.
 */
int write_file(const char *root, const char *path, const char *text);

/**
 * read_number() - read a file that holds one decimal number.
 *
 * Return: 0, -EBADMSG where it holds something else, or another negative errno.
 */
int read_number(const char *root, const char *path, uint64_t *ret_value);

/**
 * take_number() - read a decimal number at *@p and move *@p behind it.
 *
 * Return: false where there is none or it doesn't fit 64 bits; *@p is untouched then.
 */
bool take_number(const char **p, uint64_t *ret_value);

#endif
