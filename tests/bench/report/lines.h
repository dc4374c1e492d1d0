/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The benchmark's text files: a record, a catalogue, a table, the targets. Empty lines and those that
 * begin with # say nothing. No state.
 */
#ifndef BALLAST_TESTS_BENCH_LINES_H
#define BALLAST_TESTS_BENCH_LINES_H

#include <stddef.h>

/* Take a line, which may be changed; a negative errno ends the file, with the reason in @why. */
typedef int lines_take(void *arg, char *line, char *why, size_t size);

/**
 * lines_each() - call @take with @arg for each line of the file that says something, without the
 * blanks at its end.
 *
 * Return: 0, or a negative errno, with "PATH:LINE: reason" in @problem, of @size bytes.
 */
int lines_each(const char *path, lines_take *take, void *arg, char *problem, size_t size);

#endif
