// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/config/apply.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "daemon/config/value.h"

#define SHOWN_MAX 64 /* of a value in a message */
#define WORDS_MAX 64

#define ERROR(loader, place, path, ...)                                                            \
	diag_add((loader)->diag, CONFIG_ERROR, place, (path)->text, __VA_ARGS__)

const struct origin *apply_origin(const struct loader *loader, size_t offset)
{
	for (size_t i = 0; i < loader->n_origins; i++)
		if (loader->origins[i].offset == offset)
			return &loader->origins[i];
	return NULL;
}

static void remember(struct loader *loader, const void *field, struct place place, bool bad)
{
	uintptr_t start = (uintptr_t)loader->settings, at = (uintptr_t)field;
	size_t offset = at - start, i = 0;

	if (at < start || offset >= sizeof(*loader->settings))
		return; /* of a rule */
	while (i < loader->n_origins && loader->origins[i].offset != offset)
		i++;
	if (i == ORIGINS_MAX)
		return;
	loader->origins[i] = (struct origin){ offset, place, loader->n_values++, bad };
	if (i == loader->n_origins)
		loader->n_origins++;
}

static const char *kind_name(const struct node *node)
{
	switch (node->kind) {
	case NODE_SCALAR:
		return "a single value";
	case NODE_LIST:
		return "a list";
	case NODE_MAP:
		return "more keys";
	}
	return "something else";
}

bool apply_expect(struct loader *loader, const struct key *key, const struct node *node,
		  enum node_kind kind, const struct key_path *path)
{
	if (node->broken && node->kind != kind)
		return false;
	if (node->kind == kind)
		return true;
	if (kind == NODE_MAP && node->kind == NODE_SCALAR && strchr(node->text, ':'))
		ERROR(loader, node->place, path, "a space is missing after the colon");
	else
		ERROR(loader, node->place, path, "expected %s, found %s", schema_expects(key),
		      kind_name(node));
	return false;
}

static void format_value(const struct key *key, bool percent, uint64_t value, char *ret_text)
{
	if (percent)
		value_format_percent(value, ret_text);
	else if (key->type == KEY_DURATION)
		value_format_duration(value, ret_text);
	else if (key->type == KEY_COUNT)
		(void)snprintf(ret_text, VALUE_TEXT_MAX, "%llu", (unsigned long long)value);
	else
		value_format_size(value, ret_text);
}

static bool in_range(struct loader *loader, const struct key *key, bool percent, uint64_t value,
		     const struct node *node, const struct key_path *path)
{
	bool amount = percent && key->type != KEY_PERCENT;
	uint64_t min = amount ? key->percent_min : key->min;
	uint64_t max = amount ? key->percent_max : key->max;
	char shown[SHOWN_MAX], low[VALUE_TEXT_MAX], high[VALUE_TEXT_MAX];

	if (value >= min && value <= max)
		return true;
	printable(node->text, sizeof(shown), shown);
	format_value(key, percent, min, low);
	format_value(key, percent, max, high);
	ERROR(loader, node->place, path, "\"%s\" is out of range: from %s to %s", shown, low, high);
	return false;
}

static void say_problem(struct loader *loader, const struct key *key, enum value_problem problem,
			const struct node *node, const struct key_path *path)
{
	const char *expects = schema_expects(key), *hint = value_unit_hint(node->text);
	int digits = (int)strspn(node->text, "0123456789.");
	char shown[SHOWN_MAX];

	printable(node->text, sizeof(shown), shown);
	switch (problem) {
	case VALUE_OK:
		break;
	case VALUE_NO_NUMBER:
		ERROR(loader, node->place, path, "expected %s, found \"%s\"", expects, shown);
		break;
	case VALUE_NO_UNIT:
		ERROR(loader, node->place, path, "\"%s\" has no unit: expected %s", shown, expects);
		break;
	case VALUE_BAD_UNIT:
		if (key->type == KEY_COUNT)
			ERROR(loader, node->place, path, "expected %s, found \"%s\"", expects,
			      shown);
		else if (hint && digits < SHOWN_MAX)
			ERROR(loader, node->place, path,
			      "\"%s\" has an unknown unit, did you mean %.*s%s?", shown, digits,
			      node->text, hint);
		else
			ERROR(loader, node->place, path, "\"%s\" has an unknown unit: expected %s",
			      shown, expects);
		break;
	case VALUE_TOO_LARGE:
		ERROR(loader, node->place, path, "\"%s\" is too large", shown);
		break;
	case VALUE_TOO_FINE:
		ERROR(loader, node->place, path,
		      "\"%s\" has too many digits after the point to be exact", shown);
		break;
	}
}

/* Parses and checks a number of any kind; @ret_percent says which range it was held against. */
static bool read_number(struct loader *loader, const struct key *key, const struct node *node,
			const struct key_path *path, uint64_t *ret, bool *ret_percent)
{
	size_t length = strlen(node->text);
	bool is_amount = key->type == KEY_AMOUNT || key->type == KEY_BUDGET_SIZE;
	enum value_problem problem;

	*ret_percent = key->type == KEY_PERCENT ||
		       (is_amount && length > 0 && node->text[length - 1] == '%');
	if (*ret_percent)
		problem = value_percent(node->text, ret);
	else if (is_amount)
		problem = value_size(node->text, ret);
	else if (key->type == KEY_DURATION)
		problem = value_duration(node->text, ret);
	else
		problem = value_count(node->text, ret);
	if (problem != VALUE_OK) {
		say_problem(loader, key, problem, node, path);
		return false;
	}
	return in_range(loader, key, *ret_percent, *ret, node, path);
}

static int word_index(const char *text, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (strcmp(text, words[i]) == 0)
			return i;
	return -1;
}

/* "act, observe, no" */
static void list_words(const char *const *words, size_t size, char *ret_text)
{
	size_t used = 0;

	ret_text[0] = '\0';
	for (; *words && used < size; words++)
		used += (size_t)snprintf(ret_text + used, size - used, "%s%s", used ? ", " : "",
					 *words);
}

static void say_empty(struct loader *loader, const struct key *key, const struct node *node,
		      const struct key_path *path)
{
	char all[128];

	if (key->type == KEY_WORD) {
		list_words(key->words, sizeof(all), all);
		ERROR(loader, node->place, path, "has no value: write one of %s, or remove the key",
		      all);
	} else {
		ERROR(loader, node->place, path, "has no value: write %s, or remove the key",
		      schema_expects(key));
	}
}

static bool read_word(struct loader *loader, const char *const *words, const struct node *node,
		      const struct key_path *path, int *ret)
{
	const char *near;
	char shown[SHOWN_MAX], all[128];

	*ret = word_index(node->text, words);
	if (*ret >= 0)
		return true;
	near = nearest_word(node->text, words);
	list_words(words, sizeof(all), all);
	printable(node->text, sizeof(shown), shown);
	if (near)
		ERROR(loader, node->place, path, "\"%s\" isn't one of %s: did you mean %s?", shown,
		      all, near);
	else
		ERROR(loader, node->place, path, "\"%s\" isn't one of %s", shown, all);
	return false;
}

static bool read_bool(struct loader *loader, const struct node *node, const struct key_path *path,
		      bool *ret)
{
	static const char *const words[] = { "false", "true", "no", "yes", "off", "on", NULL };
	char shown[SHOWN_MAX];
	int index = 0;

	while (words[index] && strcasecmp(node->text, words[index]) != 0)
		index++;
	if (!words[index]) {
		printable(node->text, sizeof(shown), shown);
		ERROR(loader, node->place, path, "expected true or false, found \"%s\"", shown);
		return false;
	}
	*ret = index & 1;
	return true;
}

/* Why a path, URI or cgroup is no good, or NULL. */
static const char *text_problem(const struct key *key, const char *text)
{
	if (strlen(text) >= SETTINGS_PATH_MAX)
		return "too long: 255 bytes are the most";
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return "a control character isn't allowed here";
	if (key->type == KEY_URI)
		return strstr(text, "://") ? NULL : "expected a libvirt URI such as qemu:///system";
	if (key->type == KEY_FILE && *text == '\0')
		return NULL;
	if (*text != '/')
		return key->type == KEY_FILE ? "the path must be absolute: start it with /"
					     : "name the cgroup from the root: start it with /";
	if (key->type == KEY_CGROUP &&
	    (strstr(text, "/../") ||
	     (strlen(text) >= 3 && strcmp(text + strlen(text) - 3, "/..") == 0)))
		return "the path of a cgroup can't go up with ..";
	return NULL;
}

static bool read_text(struct loader *loader, const struct key *key, const struct node *node,
		      const struct key_path *path, char *ret)
{
	static const char mount[] = "/sys/fs/cgroup/";
	const char *text = node->text, *problem = text_problem(key, text);

	if (problem) {
		ERROR(loader, node->place, path, "%s", problem);
		return false;
	}
	if (key->type == KEY_CGROUP && strncmp(text, mount, sizeof(mount) - 1) == 0)
		text += sizeof(mount) - 2;
	(void)snprintf(ret, SETTINGS_PATH_MAX, "%s", text);
	return true;
}

static void apply_budget_size(struct loader *loader, const struct key *key, struct amount *field,
			      const struct node *node, const struct key_path *path)
{
	struct host_settings *host = &loader->settings->host;
	uint64_t value;
	bool percent;

	if (word_index(node->text, key->words) >= 0) {
		host->budget_kind = BUDGET_HOST;
		*field = (struct amount){ AMOUNT_NONE, 0 };
		return;
	}
	if (!read_number(loader, key, node, path, &value, &percent))
		return;
	host->budget_kind = BUDGET_AMOUNT;
	*field = (struct amount){ percent ? AMOUNT_PERCENT : AMOUNT_BYTES, value };
}

/* All that is written as one value. */
static void apply_scalar(struct loader *loader, const struct key *key, void *base,
			 const struct node *node, const struct key_path *path)
{
	char *field = (char *)base + key->offset;
	uint64_t value;
	uint32_t small;
	bool percent;
	int word;

	switch (key->type) {
	case KEY_WORD:
		if (read_word(loader, key->words, node, path, &word))
			memcpy(field, &word, sizeof(word));
		break;
	case KEY_BOOL:
		if (read_bool(loader, node, path, &percent))
			memcpy(field, &percent, sizeof(percent));
		break;
	case KEY_AMOUNT:
		if (read_number(loader, key, node, path, &value, &percent))
			*(struct amount *)(void *)field =
				(struct amount){ percent ? AMOUNT_PERCENT : AMOUNT_BYTES, value };
		break;
	case KEY_DURATION:
		if (read_number(loader, key, node, path, &value, &percent))
			memcpy(field, &value, sizeof(value));
		break;
	case KEY_PERCENT:
	case KEY_COUNT:
		if (!read_number(loader, key, node, path, &value, &percent))
			break;
		small = (uint32_t)value;
		memcpy(field, &small, sizeof(small));
		break;
	case KEY_BUDGET_SIZE:
		apply_budget_size(loader, key, (struct amount *)(void *)field, node, path);
		break;
	case KEY_CGROUP:
		if (read_text(loader, key, node, path, field))
			loader->settings->host.budget_kind = BUDGET_CGROUP;
		break;
	default:
		(void)read_text(loader, key, node, path, field);
		break;
	}
}

static void apply_knob(struct loader *loader, const struct key *profile_key, int knob,
		       struct profile *profile, const struct node *node,
		       const struct key_path *path)
{
	const struct key key = {
		.type = KEY_COUNT,
		.min = knob_infos[knob].min,
		.max = knob_infos[knob].max,
	};
	char shown[SHOWN_MAX];
	uint64_t value;
	bool percent;

	if (!apply_expect(loader, &key, node, NODE_SCALAR, path) || node->broken)
		return;
	if (node->empty) {
		say_empty(loader, &key, node, path);
	} else if (word_index(node->text, profile_key->words) >= 0) {
		profile->present &= ~(UINT32_C(1) << knob);
		profile->value[knob] = 0;
	} else if (node->text[0] < '0' || node->text[0] > '9') {
		printable(node->text, sizeof(shown), shown);
		ERROR(loader, node->place, path, "expected a whole number or %s, found \"%s\"",
		      profile_key->words[0], shown);
	} else if (read_number(loader, &key, node, path, &value, &percent)) {
		knob_put(profile, (enum knob_id)knob, value);
	}
}

static void apply_profile(struct loader *loader, const struct key *key, struct profile *profile,
			  const struct node *map, const struct key_path *path)
{
	struct key names[KNOB_MAX_ID + 1] = { 0 };
	const struct key *const tables[] = { names, NULL };

	for (int i = 0; i < KNOB_MAX_ID; i++)
		names[i].name = knob_infos[i].name;
	for (const struct node *node = map->first; node; node = node->next) {
		struct key_path here;
		int knob;

		if (!node->key)
			continue;
		here = key_path_add(path, node->key);
		knob = knob_by_name(node->key);
		if (knob < 0)
			apply_unknown(loader, node, &here, tables);
		else
			apply_knob(loader, key, knob, profile, node, &here);
	}
}

static void apply_budget(struct loader *loader, const struct key *key, void *base,
			 const struct node *node, const struct key_path *path)
{
	const struct node *cgroup;

	if (node->kind == NODE_SCALAR && !node->empty) {
		apply_key(loader, schema_find(key->keys, "size"), base, node, path);
		return;
	}
	if (!apply_expect(loader, key, node, NODE_MAP, path))
		return;
	apply_map(loader, key->keys, base, node, path);
	cgroup = tree_find(node, "cgroup");
	if (cgroup && tree_find(node, "size")) {
		struct key_path here = key_path_add(path, "cgroup");

		ERROR(loader, cgroup->key_place, &here,
		      "size and cgroup exclude each other: remove one of them");
	}
}

void apply_key(struct loader *loader, const struct key *key, void *base, const struct node *node,
	       const struct key_path *path)
{
	bool holds_keys = key->keys || key->type == KEY_PROFILE;
	char *field = (char *)base + key->offset;

	/* Nothing under a heading, as when all is commented out. */
	if (node->kind == NODE_SCALAR && node->empty && !node->broken && holds_keys)
		return;
	if (key->type == KEY_BUDGET) {
		apply_budget(loader, key, base, node, path);
	} else if (!apply_expect(loader, key, node, holds_keys ? NODE_MAP : NODE_SCALAR, path)) {
		return;
	} else if (key->type == KEY_PROFILE) {
		apply_profile(loader, key, (struct profile *)(void *)field, node, path);
	} else if (holds_keys) {
		apply_map(loader, key->keys, field, node, path);
	} else if (node->empty && !node->broken) {
		say_empty(loader, key, node, path);
	} else if (!node->broken) {
		size_t errors = loader->diag->n_errors;

		apply_scalar(loader, key, base, node, path);
		remember(loader, field, node->place, loader->diag->n_errors > errors);
	}
}

void apply_map(struct loader *loader, const struct key *keys, void *base, const struct node *map,
	       const struct key_path *path)
{
	const struct key *const tables[] = { keys, NULL };

	for (const struct node *node = map->first; node; node = node->next) {
		const struct key *key;
		struct key_path here;

		if (!node->key)
			continue;
		here = key_path_add(path, node->key);
		key = schema_find(keys, node->key);
		if (!key)
			apply_unknown(loader, node, &here, tables);
		else if (key->type != KEY_RULES) /* they wait until the defaults are known */
			apply_key(loader, key, base, node, &here);
	}
}

/* Where else in the schema a key of that name is, as "host.levels", in @ret_text. */
static bool find_elsewhere(const struct key *keys, const char *name, const struct key_path *path,
			   struct key_path *ret)
{
	for (; keys->name; keys++) {
		struct key_path here = key_path_add(path, keys->name);

		if (!keys->keys)
			continue;
		if (schema_find(keys->keys, name)) {
			*ret = here;
			return true;
		}
		if (find_elsewhere(keys->keys, name, &here, ret))
			return true;
	}
	return false;
}

void apply_unknown(struct loader *loader, const struct node *node, const struct key_path *path,
		   const struct key *const *tables)
{
	const struct key_path root = { "" };
	const char *words[WORDS_MAX], *near;
	struct key_path elsewhere;
	char all[256];
	size_t n = 0;

	for (; *tables; tables++)
		for (const struct key *key = *tables; key->name && n + 1 < WORDS_MAX; key++)
			words[n++] = key->name;
	words[n] = NULL;
	near = nearest_word(node->key, words);
	list_words(words, sizeof(all), all);
	if (find_elsewhere(schema_root, node->key, &root, &elsewhere))
		ERROR(loader, node->key_place, path, "unknown key here: it belongs under %s",
		      elsewhere.text);
	else if (near)
		ERROR(loader, node->key_place, path, "unknown key, did you mean %s?", near);
	else
		ERROR(loader, node->key_place, path, "unknown key: the keys here are %s", all);
}
