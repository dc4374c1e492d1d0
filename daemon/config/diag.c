// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/config/diag.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WORD_MAX     32
#define TEXT_MAX     512
#define FIRST_AMOUNT 8

static bool diag_grow(struct config_diag *diag)
{
	size_t capacity = diag->capacity ? diag->capacity * 2 : FIRST_AMOUNT;
	struct config_message *messages;

	if (diag->n_messages < diag->capacity)
		return true;
	if (diag->n_messages >= CONFIG_DIAG_MAX)
		return false;
	messages = realloc(diag->messages, capacity * sizeof(*messages));
	if (!messages)
		return false;
	diag->messages = messages;
	diag->capacity = capacity;
	return true;
}

static void message_clear(struct config_message *message)
{
	free(message->file);
	free(message->key);
	free(message->text);
}

void diag_add(struct config_diag *diag, enum config_severity severity, struct place place,
	      const char *key, const char *format, ...)
{
	struct config_message message = {
		.severity = severity,
		.line = place.line,
		.column = place.column,
	};
	char text[TEXT_MAX];
	va_list args;

	if (severity == CONFIG_ERROR)
		diag->n_errors++;
	else
		diag->n_warnings++;
	if (diag->n_messages >= CONFIG_DIAG_MAX || !diag_grow(diag))
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	message.text = strdup(text);
	message.file = strdup(place.file);
	message.key = key && *key ? strdup(key) : NULL;
	if (!message.text || !message.file || (key && *key && !message.key)) {
		message_clear(&message);
		return;
	}
	diag->messages[diag->n_messages++] = message;
}

void config_diag_clear(struct config_diag *diag)
{
	for (size_t i = 0; i < diag->n_messages; i++)
		message_clear(&diag->messages[i]);
	free(diag->messages);
	*diag = (struct config_diag)CONFIG_DIAG_INIT;
}

void config_diag_format(const struct config_message *message, size_t size, char *ret_text)
{
	char place[32] = "";

	if (message->line > 0)
		(void)snprintf(place, sizeof(place), ":%u:%u", message->line, message->column);
	(void)snprintf(ret_text, size, "%s%s: %s%s%s%s", message->file, place,
		       message->severity == CONFIG_WARNING ? "warning: " : "",
		       message->key ? message->key : "", message->key ? ": " : "", message->text);
}

struct key_path key_path_add(const struct key_path *parent, const char *part)
{
	struct key_path path;
	char shown[WORD_MAX * 2];

	printable(part, sizeof(shown), shown);
	(void)snprintf(path.text, sizeof(path.text), "%.*s%s%s", KEY_PATH_MAX - WORD_MAX * 2 - 2,
		       parent->text, parent->text[0] ? "." : "", shown);
	return path;
}

struct key_path key_path_index(const struct key_path *parent, size_t index)
{
	struct key_path path;

	(void)snprintf(path.text, sizeof(path.text), "%.*s[%zu]", KEY_PATH_MAX - 24, parent->text,
		       index);
	return path;
}

/* Where a UTF-8 sequence may be cut: not before one of its continuation bytes. */
static size_t cut_at(const char *text, size_t at)
{
	while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80)
		at--;
	return at;
}

void printable(const char *text, size_t size, char *ret_text)
{
	size_t length = strlen(text);
	bool cut = length >= size;

	if (cut)
		length = cut_at(text, size - sizeof("..."));
	for (size_t i = 0; i < length; i++)
		ret_text[i] = text[i];
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)ret_text[i] < ' ' || ret_text[i] == 0x7f)
			ret_text[i] = '?';
	strcpy(ret_text + length, cut ? "..." : "");
}

static char plain(char c)
{
	return c == '-' ? '_' : (char)tolower((unsigned char)c);
}

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

unsigned int edit_distance(const char *a, const char *b)
{
	unsigned int d[WORD_MAX + 1][WORD_MAX + 1];
	size_t n = strlen(a), m = strlen(b);

	if (n >= WORD_MAX || m >= WORD_MAX)
		return UINT32_MAX;
	for (unsigned int i = 0; i <= n; i++)
		d[i][0] = i;
	for (unsigned int j = 0; j <= m; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		for (size_t j = 1; j <= m; j++) {
			bool same = plain(a[i - 1]) == plain(b[j - 1]);
			bool swapped = i > 1 && j > 1 && plain(a[i - 1]) == plain(b[j - 2]) &&
				       plain(a[i - 2]) == plain(b[j - 1]);

			d[i][j] = least(d[i - 1][j] + 1, d[i][j - 1] + 1);
			d[i][j] = least(d[i][j], d[i - 1][j - 1] + !same);
			if (swapped)
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[n][m];
}

/* "minimum" for "min", "stat" for "statistics". */
static bool begins_like(const char *text, const char *word)
{
	size_t n = strlen(text), m = strlen(word);

	return n >= 3 && m >= 3 && strncasecmp(text, word, n < m ? n : m) == 0;
}

const char *nearest_word(const char *text, const char *const *words)
{
	const char *const *first = words;
	const char *best = NULL;
	unsigned int best_distance = UINT32_MAX;

	for (; *words; words++) {
		unsigned int distance = edit_distance(text, *words);

		/* A third of the word may be wrong: "mni" is min, "max" is not "min". */
		if (distance < best_distance && distance * 3 <= strlen(*words)) {
			best = *words;
			best_distance = distance;
		}
	}
	for (words = first; !best && *words; words++)
		if (begins_like(text, *words))
			best = *words;
	return best;
}
