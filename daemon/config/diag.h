/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Collecting mistakes: bounded, and never in the way of the rest. Where memory for a message is
 * missing the mistake is still counted, so that a bad configuration is never taken for good.
 * Internal to daemon/config; the list belongs to the caller of config_load().
 */
#ifndef BALLAST_CONFIG_DIAG_H
#define BALLAST_CONFIG_DIAG_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/config.h"

/* Where in which file; line 0 is the file as a whole. */
struct place {
	const char *file;
	unsigned int line, column; /* from 1 */
};

/**
 * diag_add() - add a message.
 * @key: path of the key, or NULL.
 */
void diag_add(struct config_diag *diag, enum config_severity severity, struct place place,
	      const char *key, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* A key's path in a fixed buffer: what is too long is cut. */
#define KEY_PATH_MAX 160

struct key_path {
	char text[KEY_PATH_MAX];
};

/**
 * key_path_add() - @parent with one more part: "host" and "levels" make "host.levels".
 */
struct key_path key_path_add(const struct key_path *parent, const char *part);
struct key_path key_path_index(const struct key_path *parent, size_t index);

/**
 * printable() - text from a file for use in a message: short, on one line, no control characters.
 * @ret_text: @size bytes.
 */
void printable(const char *text, size_t size, char *ret_text);

/**
 * nearest_word() - the word that was probably meant.
 * @words: ends with NULL.
 *
 * Return: the word with the least edit distance to @text if that is small, or NULL.
 */
const char *nearest_word(const char *text, const char *const *words);

/**
 * edit_distance() - insertions, deletions, replacements and swaps of neighbours, ignoring case and
 * the difference of - and _. For words up to 31 bytes; longer ones are infinitely far.
 */
unsigned int edit_distance(const char *a, const char *b);

#endif
