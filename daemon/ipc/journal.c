// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/ipc/journal.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/ipc/record.h"
#include "daemon/util/log.h"
#include "daemon/util/text.h"

#define FIELDS_MAX 24
#define FIELD_SIZE 320
/* Stable: the catalog and people's filters know decisions by it. */
#define DECISION_MESSAGE "MESSAGE_ID=5a9e1d0c7f3b4c6e8b2d94f1a07c3e58"

/* The record as journal fields. */
struct fields {
	char text[FIELDS_MAX][FIELD_SIZE];
	const char *list[FIELDS_MAX + 1];
	size_t n;
	bool in_group;
};

static int add_field(struct fields *fields, const char *name, const char *value)
{
	char *field;
	size_t i = 0;

	if (fields->n == FIELDS_MAX)
		return -ENOBUFS;
	field = fields->text[fields->n];
	(void)snprintf(field, FIELD_SIZE, "%s=%s", name, value);
	for (; field[i] != '='; i++)
		field[i] = (char)toupper((unsigned char)field[i]);
	fields->list[fields->n++] = field;
	return 0;
}

static int field_text(void *to, const char *key, const char *value)
{
	/* The line itself is MESSAGE, and the journal has its own NAME and UUID of things. */
	if (strcmp(key, "text") == 0)
		return 0;
	if (strcmp(key, "name") == 0)
		key = "vm_name";
	else if (strcmp(key, "uuid") == 0)
		key = "vm_uuid";
	return add_field(to, key, value);
}

static int field_flag(void *to, const char *key, bool value)
{
	return add_field(to, key, value ? "1" : "0");
}

/* Amounts get their unit into the name, as the others have it: OLD_BYTES, PSI_SOME_PCT. */
static int field_number(void *to, const char *key, uint64_t value)
{
	bool has_unit = text_ends_with(key, "_us") || text_ends_with(key, "_pct") ||
			text_ends_with(key, "_n") || strcmp(key, "bytes") == 0;
	struct fields *fields = to;
	char name[64], number[24];

	if (strcmp(key, "time_us") == 0) /* every entry has its own */
		return 0;
	(void)snprintf(name, sizeof(name), "%s%s%s", fields->in_group ? "operand_" : "", key,
		       has_unit ? "" : "_bytes");
	(void)snprintf(number, sizeof(number), "%" PRIu64, value);
	return add_field(fields, name, number);
}

static int field_words(void *to, const char *key, const char *const *words, size_t n)
{
	(void)to;
	(void)key;
	(void)words;
	(void)n;
	return 0;
}

static int field_open(void *to, const char *key)
{
	(void)key;
	((struct fields *)to)->in_group = true;
	return 0;
}

static int field_close(void *to)
{
	((struct fields *)to)->in_group = false;
	return 0;
}

void journal_decision(const struct guest_snapshot *guest, const struct history_entry *entry)
{
	static const struct record_sink sink = {
		.text = field_text,
		.flag = field_flag,
		.number = field_number,
		.words = field_words,
		.open = field_open,
		.close = field_close,
	};
	struct fields fields = { .list = { DECISION_MESSAGE }, .n = 1 };
	char text[256];

	decision_text(&entry->decision, text, sizeof(text));
	/* Fields that found no room are left out; the line says the same. */
	(void)record_decision(guest, entry, 0, &sink, &fields);
	log_fields(LOG_INFO, fields.list, "%s: %s%s", guest->name, text,
		   entry->outcome == OUTCOME_OBSERVED ? " (observed only)" : "");
}
