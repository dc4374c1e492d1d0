// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/config/value.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define FRACTION_DIGITS_MAX 6 /* 10^6 times the largest unit still fits in 64 bits */
#define LENGTH(array)	    (sizeof(array) / sizeof((array)[0]))

struct unit {
	const char *name;
	uint64_t scale;
};

/* From the largest, as formatting wants them. */
static const struct unit size_units[] = {
	{ "TiB", UINT64_C(1) << 40 },
	{ "GiB", UINT64_C(1) << 30 },
	{ "MiB", UINT64_C(1) << 20 },
	{ "KiB", UINT64_C(1) << 10 },
	{ "B", 1 },
};
static const struct unit duration_units[] = {
	{ "h", UINT64_C(3600000000) },
	{ "min", 60000000 },
	{ "s", 1000000 },
	{ "ms", 1000 },
	{ "us", 1 },
};
static const struct unit percent_units[] = { { "%", 100 } };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A decimal number in two parts, so that nothing is rounded. */
struct number {
	uint64_t whole, fraction, fraction_scale;
	bool zero, overflow, too_fine;
};

static const char *scan_number(const char *text, struct number *ret)
{
	const char *p = text;
	int digits = 0;

	*ret = (struct number){ .fraction_scale = 1 };
	for (; is_digit(*p); p++)
		if (__builtin_mul_overflow(ret->whole, 10, &ret->whole) ||
		    __builtin_add_overflow(ret->whole, (uint64_t)(*p - '0'), &ret->whole))
			ret->overflow = true;
	if (p == text)
		return NULL;
	if (*p == '.' && is_digit(p[1])) {
		for (p++; is_digit(*p); p++) {
			if (digits == FRACTION_DIGITS_MAX) {
				ret->too_fine = ret->too_fine || *p != '0';
				continue;
			}
			ret->fraction = ret->fraction * 10 + (uint64_t)(*p - '0');
			ret->fraction_scale *= 10;
			digits++;
		}
	}
	ret->zero = ret->whole == 0 && ret->fraction == 0 && !ret->overflow && !ret->too_fine;
	return p;
}

static enum value_problem scale_number(const struct number *number, uint64_t scale, uint64_t *ret)
{
	uint64_t value, part;

	if (number->too_fine)
		return VALUE_TOO_FINE;
	if (number->overflow || __builtin_mul_overflow(number->whole, scale, &value))
		return VALUE_TOO_LARGE;
	part = number->fraction * scale;
	if (part % number->fraction_scale != 0)
		return VALUE_TOO_FINE;
	if (__builtin_add_overflow(value, part / number->fraction_scale, &value))
		return VALUE_TOO_LARGE;
	*ret = value;
	return VALUE_OK;
}

static enum value_problem parse(const char *text, const struct unit *units, size_t n_units,
				uint64_t *ret)
{
	struct number number;
	const char *rest = scan_number(text, &number);

	if (!rest)
		return VALUE_NO_NUMBER;
	if (*rest == ' ' && rest[1] != '\0')
		rest++;
	if (*rest == '\0') {
		*ret = 0;
		return number.zero ? VALUE_OK : VALUE_NO_UNIT;
	}
	for (size_t i = 0; i < n_units; i++)
		if (strcmp(rest, units[i].name) == 0)
			return scale_number(&number, units[i].scale, ret);
	return VALUE_BAD_UNIT;
}

enum value_problem value_size(const char *text, uint64_t *ret)
{
	return parse(text, size_units, LENGTH(size_units), ret);
}

enum value_problem value_percent(const char *text, uint64_t *ret)
{
	return parse(text, percent_units, LENGTH(percent_units), ret);
}

enum value_problem value_duration(const char *text, uint64_t *ret)
{
	return parse(text, duration_units, LENGTH(duration_units), ret);
}

enum value_problem value_count(const char *text, uint64_t *ret)
{
	struct number number;
	const char *rest = scan_number(text, &number);

	if (!rest)
		return VALUE_NO_NUMBER;
	if (*rest != '\0' || number.fraction_scale != 1)
		return VALUE_BAD_UNIT;
	return scale_number(&number, 1, ret);
}

const char *value_unit_hint(const char *text)
{
	static const char *const guesses[][2] = {
		{ "k", "KiB" },	   { "kb", "KiB" },    { "kib", "KiB" },    { "m", "MiB" },
		{ "mb", "MiB" },   { "mib", "MiB" },   { "g", "GiB" },	    { "gb", "GiB" },
		{ "gib", "GiB" },  { "t", "TiB" },     { "tb", "TiB" },	    { "tib", "TiB" },
		{ "byte", "B" },   { "bytes", "B" },   { "sec", "s" },	    { "secs", "s" },
		{ "second", "s" }, { "seconds", "s" }, { "minute", "min" }, { "minutes", "min" },
		{ "mins", "min" }, { "hour", "h" },    { "hours", "h" },    { "hr", "h" },
		{ "msec", "ms" },  { "usec", "us" },   { "percent", "%" },  { "pct", "%" },
	};
	struct number number;
	const char *rest = scan_number(text, &number);

	if (!rest)
		return NULL;
	rest += strspn(rest, " ");
	for (size_t i = 0; i < LENGTH(guesses); i++)
		if (strcasecmp(rest, guesses[i][0]) == 0)
			return guesses[i][1];
	return NULL;
}

static void format(uint64_t value, const struct unit *units, size_t n_units, char *ret_text)
{
	size_t i = 0;

	if (value == 0) {
		strcpy(ret_text, "0");
		return;
	}
	while (i + 1 < n_units && value % units[i].scale != 0)
		i++;
	(void)snprintf(ret_text, VALUE_TEXT_MAX, "%" PRIu64 "%s", value / units[i].scale,
		       units[i].name);
}

void value_format_size(uint64_t bytes, char *ret_text)
{
	format(bytes, size_units, LENGTH(size_units), ret_text);
}

void value_format_duration(uint64_t us, char *ret_text)
{
	format(us, duration_units, LENGTH(duration_units), ret_text);
}

void value_format_percent(uint64_t hundredths, char *ret_text)
{
	uint64_t fraction = hundredths % 100;

	if (fraction == 0)
		(void)snprintf(ret_text, VALUE_TEXT_MAX, "%" PRIu64 "%%", hundredths / 100);
	else if (fraction % 10 == 0)
		(void)snprintf(ret_text, VALUE_TEXT_MAX, "%" PRIu64 ".%" PRIu64 "%%",
			       hundredths / 100, fraction / 10);
	else
		(void)snprintf(ret_text, VALUE_TEXT_MAX, "%" PRIu64 ".%02" PRIu64 "%%",
			       hundredths / 100, fraction);
}
