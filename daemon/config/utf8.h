/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks text before the YAML parser sees it, so that a bad byte has a line and a column. Internal
 * to daemon/config. Pure.
 */
#ifndef BALLAST_CONFIG_UTF8_H
#define BALLAST_CONFIG_UTF8_H

#include <stddef.h>

#include "daemon/config/diag.h"

/**
 * utf8_check() - is the text UTF-8 without control characters?
 * @place: file; line and column are set to the first offence.
 *
 * Return: NULL if it is good, or what is wrong.
 */
const char *utf8_check(const char *text, size_t size, struct place *place);

#endif
