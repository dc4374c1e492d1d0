// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/util/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool parse_u64(const char **text, uint64_t *ret_value)
{
	const char *p = *text;
	uint64_t value = 0;

	if (*p < '0' || *p > '9')
		return false;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return false;
	*text = p;
	*ret_value = value;
	return true;
}

bool parse_hundredths(const char **text, uint32_t *ret_value)
{
	const char *p = *text;
	uint64_t whole;
	uint32_t cents = 0;

	if (!parse_u64(&p, &whole) || whole > UINT32_MAX / 100 - 1)
		return false;
	if (*p == '.') {
		p++;
		for (uint32_t unit = 10; *p >= '0' && *p <= '9'; p++, unit /= 10)
			cents += unit * (uint32_t)(*p - '0');
	}
	*text = p;
	*ret_value = (uint32_t)whole * 100 + cents;
	return true;
}

static const char *skip_blanks(const char *p)
{
	return p + strspn(p, " \t");
}

/* The value of a line whose key ends at @p. */
static bool parse_value(const char *p, uint64_t *ret_value)
{
	uint64_t value;

	if (*p == ':')
		p++;
	else if (*p != ' ' && *p != '\t')
		return false;
	p = skip_blanks(p);
	if (!parse_u64(&p, &value))
		return false;
	p = skip_blanks(p);
	if (strncmp(p, "kB", 2) == 0) {
		p += 2;
		if (__builtin_mul_overflow(value, KIB(1), &value))
			return false;
	}
	p = skip_blanks(p);
	if (*p != '\n' && *p != '\0')
		return false;
	*ret_value = value;
	return true;
}

static size_t match_line(const char *line, struct parse_field *fields, size_t n_fields,
			 uint64_t *seen)
{
	size_t key_size = strcspn(line, ": \t\n");

	for (size_t i = 0; i < n_fields; i++) {
		if (*seen >> i & 1 || strlen(fields[i].key) != key_size ||
		    memcmp(line, fields[i].key, key_size) != 0)
			continue;
		*seen |= UINT64_C(1) << i;
		fields[i].found = parse_value(line + key_size, &fields[i].value);
		return fields[i].found;
	}
	return 0;
}

size_t parse_fields(const char *text, struct parse_field *fields, size_t n_fields)
{
	uint64_t seen = 0;
	size_t n = 0, n_seen;

	if (n_fields > PARSE_FIELDS_MAX)
		n_fields = PARSE_FIELDS_MAX;
	for (size_t i = 0; i < n_fields; i++)
		fields[i].found = false;
	for (const char *line = text; *line; line++) {
		n += match_line(line, fields, n_fields, &seen);
		n_seen = (size_t)__builtin_popcountll(seen);
		if (n_seen == n_fields)
			break;
		line = strchr(line, '\n');
		if (!line)
			break;
	}
	return n;
}

char *format_size(char *buf, size_t size, uint64_t bytes)
{
	if (bytes == 0)
		(void)snprintf(buf, size, "0");
	else if (bytes < MIB(1))
		(void)snprintf(buf, size, "%" PRIu64 " KiB", (bytes + KIB(1) - 1) / KIB(1));
	else if (bytes < MIB(10))
		(void)snprintf(buf, size, "%.1f MiB", (double)bytes / (double)MIB(1));
	else if (bytes < MIB(10 * 1024))
		(void)snprintf(buf, size, "%.0f MiB", (double)bytes / (double)MIB(1));
	else
		(void)snprintf(buf, size, "%.1f GiB", (double)bytes / (double)MIB(1024));
	return buf;
}
