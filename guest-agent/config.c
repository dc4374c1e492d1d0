// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest-agent/config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "guest-agent/util.h"

#define BLANK " \t\r"

static const struct {
	const char *name;
	uint64_t bit;
} permissions[] = {
	{ "sample", WIRE_CAP_SAMPLE },
	{ "profile", WIRE_CAP_PROFILE },
	{ "shed", WIRE_CAP_SHED },
};

struct where {
	const char *file;
	unsigned int line;
	char *error;
	size_t size;
};

#define FAIL(where, ...) (fail(where), add(where, __VA_ARGS__), -EINVAL)

static void fail(const struct where *where)
{
	(void)snprintf(where->error, where->size, "%s:%u: ", where->file, where->line);
}

__attribute__((format(printf, 2, 3))) static void add(const struct where *where, const char *format,
						      ...)
{
	size_t len = strlen(where->error);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(where->error + len, where->size - len, format, args);
	va_end(args);
}

/* A piece of text without the blanks around it; not terminated. */
struct piece {
	const char *s;
	int len;
};

static struct piece trim(const char *s, size_t len)
{
	while (len && strchr(BLANK, *s)) {
		s++;
		len--;
	}
	while (len && strchr(BLANK, s[len - 1]))
		len--;
	return (struct piece){ s, (int)len };
}

static bool piece_is(struct piece piece, const char *want)
{
	return strncmp(piece.s, want, (size_t)piece.len) == 0 && want[piece.len] == '\0';
}

/* The next word of a list, without the blanks and the comma around it; false at its end. */
static bool next_word(struct piece *list, struct piece *ret_word)
{
	size_t len = 0;

	if (list->len <= 0)
		return false;
	while (len < (size_t)list->len && list->s[len] != ',')
		len++;
	*ret_word = trim(list->s, len);
	list->s += len + 1;
	list->len -= (int)len + 1;
	return true;
}

static int set_allow(struct piece value, struct agent_config *config, const struct where *where)
{
	struct piece word;

	config->allow = 0;
	while (next_word(&value, &word)) {
		size_t i;

		for (i = 0; i < sizeof(permissions) / sizeof(*permissions); i++)
			if (piece_is(word, permissions[i].name))
				break;
		if (i == sizeof(permissions) / sizeof(*permissions))
			return FAIL(where, "allow: '%.*s' is none of sample, profile, shed",
				    word.len, word.s);
		config->allow |= permissions[i].bit;
	}
	return 0;
}

static int set_keep(struct piece value, struct agent_config *config, const struct where *where)
{
	struct piece word;

	config->keep = 0;
	while (next_word(&value, &word)) {
		int id;

		for (id = 0; id < KNOB_MAX_ID; id++)
			if (piece_is(word, knob_infos[id].name))
				break;
		if (id == KNOB_MAX_ID)
			return FAIL(where,
				    "keep: '%.*s' is no setting; ballast-agent --once lists them",
				    word.len, word.s);
		config->keep |= UINT32_C(1) << id;
	}
	return 0;
}

static int set_port(struct piece value, struct agent_config *config, const struct where *where)
{
	if (value.len == 0 || *value.s != '/')
		return FAIL(where, "port: '%.*s' is no absolute path", value.len, value.s);
	if (value.len >= AGENT_PORT_MAX)
		return FAIL(where, "port: the path is longer than %d bytes", AGENT_PORT_MAX - 1);
	memcpy(config->port, value.s, (size_t)value.len);
	config->port[value.len] = '\0';
	return 0;
}

static const struct {
	const char *name;
	int (*set)(struct piece value, struct agent_config *config, const struct where *where);
} keys[] = {
	{ "allow", set_allow },
	{ "keep", set_keep },
	{ "port", set_port },
};

#define N_KEYS (sizeof(keys) / sizeof(*keys))

static int parse_line(struct piece line, unsigned int *seen, struct agent_config *config,
		      const struct where *where)
{
	const char *equals = memchr(line.s, '=', (size_t)line.len);
	struct piece key, value;

	if (!equals)
		return FAIL(where, "'%.*s' has no '='; write key = value", line.len, line.s);
	key = trim(line.s, (size_t)(equals - line.s));
	value = trim(equals + 1, (size_t)(line.s + line.len - equals - 1));
	for (size_t i = 0; i < N_KEYS; i++) {
		if (!piece_is(key, keys[i].name))
			continue;
		if (*seen >> i & 1)
			return FAIL(where, "key '%s' is set twice", keys[i].name);
		*seen |= 1U << i;
		return keys[i].set(value, config, where);
	}
	return FAIL(where, "unknown key '%.*s'; known are allow, keep and port", key.len, key.s);
}

int agent_config_parse(const char *text, const char *file, struct agent_config *config,
		       char *ret_error, size_t error_size)
{
	struct where where = { file, 1, ret_error, error_size };
	unsigned int seen = 0;
	int r;

	for (; *text; where.line++) {
		size_t len = strcspn(text, "\n");
		struct piece line = trim(text, strcspn(text, "#\n"));

		text += len + (text[len] == '\n');
		if (line.len == 0)
			continue;
		r = parse_line(line, &seen, config, &where);
		if (r < 0)
			return r;
	}
	return 0;
}

int agent_config_load(const char *root, const char *file, struct agent_config *config,
		      char *ret_error, size_t error_size)
{
	char text[AGENT_CONFIG_MAX];
	ssize_t n = read_file(root, file, text, sizeof(text));

	if (n == -ENOENT)
		return -ENOENT;
	if (n < 0) {
		(void)snprintf(ret_error, error_size, "%s: %s", file, strerror((int)-n));
		return (int)n;
	}
	if (n == sizeof(text) - 1) {
		(void)snprintf(ret_error, error_size, "%s: longer than %d bytes", file,
			       AGENT_CONFIG_MAX - 2);
		return -EFBIG;
	}
	if (strlen(text) != (size_t)n) {
		(void)snprintf(ret_error, error_size, "%s: holds a NUL byte", file);
		return -EINVAL;
	}
	return agent_config_parse(text, file, config, ret_error, error_size);
}
