// SPDX-License-Identifier: GPL-2.0-or-later
/* Writes settings as YAML, walking the schema. All values are there, none by default. */
#include "daemon/config/config.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/config/schema.h"
#include "daemon/config/value.h"

static void indent(FILE *to, unsigned int depth)
{
	(void)fprintf(to, "%*s", (int)depth * 2, "");
}

/* In double quotes, with what YAML takes as special in them escaped. */
static void dump_text(FILE *to, const char *text)
{
	(void)fputc('"', to);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			(void)fputc('\\', to);
		(void)fputc(*text, to);
	}
	(void)fputc('"', to);
}

static void dump_amount(FILE *to, const struct amount *amount)
{
	char text[VALUE_TEXT_MAX];

	if (amount->kind == AMOUNT_PERCENT)
		value_format_percent(amount->value, text);
	else
		value_format_size(amount->value, text);
	(void)fputs(text, to);
}

static void dump_scalar(FILE *to, const struct key *key, const char *field)
{
	char text[VALUE_TEXT_MAX];
	uint64_t large;
	uint32_t small;
	bool truth;

	switch (key->type) {
	case KEY_WORD:
		memcpy(&small, field, sizeof(small));
		(void)fputs(key->words[small], to);
		break;
	case KEY_BOOL:
		memcpy(&truth, field, sizeof(truth));
		(void)fputs(truth ? "true" : "false", to);
		break;
	case KEY_PERCENT:
		memcpy(&small, field, sizeof(small));
		value_format_percent(small, text);
		(void)fputs(text, to);
		break;
	case KEY_COUNT:
		memcpy(&small, field, sizeof(small));
		(void)fprintf(to, "%" PRIu32, small);
		break;
	case KEY_DURATION:
		memcpy(&large, field, sizeof(large));
		value_format_duration(large, text);
		(void)fputs(text, to);
		break;
	case KEY_AMOUNT:
		dump_amount(to, (const struct amount *)(const void *)field);
		break;
	default:
		dump_text(to, field);
		break;
	}
}

/* @base has what it lacks written as the word that unsets it, where @under had it. */
static void dump_profile(FILE *to, const struct key *key, const struct profile *profile,
			 const struct profile *under, unsigned int depth)
{
	bool any = false;

	for (int i = 0; i < KNOB_MAX_ID; i++) {
		if (!knob_has(profile, (enum knob_id)i) && !knob_has(under, (enum knob_id)i))
			continue;
		if (!any)
			(void)fputc('\n', to);
		any = true;
		indent(to, depth);
		if (knob_has(profile, (enum knob_id)i))
			(void)fprintf(to, "%s: %" PRIu64 "\n", knob_infos[i].name,
				      profile->value[i]);
		else
			(void)fprintf(to, "%s: %s\n", knob_infos[i].name, key->words[0]);
	}
	if (!any)
		(void)fputs(" {}\n", to);
}

static void dump_budget(FILE *to, const struct settings *settings, unsigned int depth)
{
	const struct host_settings *host = &settings->host;

	(void)fputc('\n', to);
	indent(to, depth);
	if (host->budget_kind == BUDGET_CGROUP) {
		(void)fputs("cgroup: ", to);
		dump_text(to, host->budget_cgroup);
	} else {
		(void)fputs("size: ", to);
		if (host->budget_kind == BUDGET_HOST)
			(void)fputs("host", to);
		else
			dump_amount(to, &host->budget);
	}
	(void)fputc('\n', to);
	indent(to, depth);
	(void)fprintf(to, "hard: %s\n", host->budget_hard ? "true" : "false");
}

/* @under: the same kind of settings as what these are read over: defaults, built-in or not. */
static void dump_keys(FILE *to, const struct key *keys, const void *base, const void *under,
		      unsigned int depth)
{
	for (; keys->name; keys++) {
		const char *field = (const char *)base + keys->offset;
		const char *under_field = (const char *)under + keys->offset;

		if (keys->type == KEY_RULES)
			continue;
		indent(to, depth);
		(void)fprintf(to, "%s:", keys->name);
		if (keys->type == KEY_PROFILE) {
			dump_profile(to, keys, (const struct profile *)(const void *)field,
				     (const struct profile *)(const void *)under_field, depth + 1);
		} else if (keys->type == KEY_BUDGET) {
			dump_budget(to, base, depth + 1);
		} else if (keys->keys) {
			(void)fputc('\n', to);
			dump_keys(to, keys->keys, field, under_field, depth + 1);
		} else {
			(void)fputc(' ', to);
			dump_scalar(to, keys, field);
			(void)fputc('\n', to);
		}
	}
}

static void dump_rule(FILE *to, const struct settings *settings, const struct guest_rule *rule)
{
	const struct key *match = schema_match;

	while (match->min != (uint64_t)rule->kind)
		match++;
	(void)fprintf(to, "  - match:\n      %s: ", match->name);
	dump_text(to, rule->pattern);
	(void)fputc('\n', to);
	dump_keys(to, schema_guest, &rule->guest, &settings->defaults, 2);
}

int config_dump(FILE *to, const struct settings *settings)
{
	struct settings built_in;

	settings_init_defaults(&built_in);
	dump_keys(to, schema_root, settings, &built_in, 0);
	(void)fputs(settings->n_rules ? "guests:\n" : "guests: []\n", to);
	for (size_t i = 0; i < settings->n_rules; i++)
		dump_rule(to, settings, &settings->rules[i]);
	return fflush(to) == 0 && !ferror(to) ? 0 : -EIO;
}
