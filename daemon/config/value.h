/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The scalars of the configuration: sizes, percentages and durations as text and as numbers.
 * Exact both ways: what is formatted parses to the same value. Pure, any thread.
 */
#ifndef BALLAST_CONFIG_VALUE_H
#define BALLAST_CONFIG_VALUE_H

#include <stdint.h>

#define VALUE_TEXT_MAX 48 /* holds what any of these formats */

enum value_problem {
	VALUE_OK,
	VALUE_NO_NUMBER, /* doesn't start with a number, or is negative */
	VALUE_NO_UNIT, /* a number alone */
	VALUE_BAD_UNIT,
	VALUE_TOO_LARGE, /* more than fits */
	VALUE_TOO_FINE, /* more digits after the point than can be told apart */
};

/**
 * value_size() - "512MiB", "1.5GiB", "4096B", "0".
 * @ret: bytes.
 */
enum value_problem value_size(const char *text, uint64_t *ret);

/**
 * value_percent() - "25%", "12.5%".
 * @ret: hundredths of a percent.
 */
enum value_problem value_percent(const char *text, uint64_t *ret);

/**
 * value_duration() - "5s", "500ms", "1.5min", "2h", "250us", "0".
 * @ret: microseconds.
 */
enum value_problem value_duration(const char *text, uint64_t *ret);

/**
 * value_count() - a whole number in decimal digits.
 */
enum value_problem value_count(const char *text, uint64_t *ret);

/**
 * value_unit_hint() - the unit that was probably meant by one that value_size() or
 * value_duration() doesn't know: "MiB" for "mb" or "M", "min" for "minutes".
 *
 * Return: a unit, or NULL where there is no guess.
 */
const char *value_unit_hint(const char *text);

/* The reverse: the largest unit that gives a whole number. @ret_text: VALUE_TEXT_MAX bytes. */
void value_format_size(uint64_t bytes, char *ret_text);
void value_format_percent(uint64_t hundredths, char *ret_text);
void value_format_duration(uint64_t us, char *ret_text);

#endif
