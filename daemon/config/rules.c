// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/config/rules.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/validate.h"

#define ERROR(loader, place, path, ...)                                                            \
	diag_add((loader)->diag, CONFIG_ERROR, place, (path)->text, __VA_ARGS__)

static const char match_advice[] = "give one of name, uuid and metadata";

static bool is_uuid(const char *text)
{
	for (size_t i = 0; i < 36; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? text[i] != '-' : !isxdigit((unsigned char)text[i]))
			return false;
	}
	return text[36] == '\0';
}

static const char *pattern_problem(enum match_kind kind, const char *text)
{
	if (*text == '\0')
		return "an empty text matches nothing: use * for every guest";
	if (strlen(text) >= SETTINGS_NAME_MAX)
		return "too long: 127 bytes are the most";
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return "a control character isn't allowed here";
	if (kind == MATCH_UUID && !is_uuid(text))
		return "not a UUID: write it as virsh domuuid prints it";
	return NULL;
}

/* How far a rule has been understood. */
struct matching {
	struct guest_rule *rule;
	const struct node *first; /* what gave the pattern */
	bool broken; /* a mistake was said */
};

static void read_pattern(struct loader *loader, const struct key *key, const struct node *node,
			 const struct key_path *path, struct matching *m)
{
	const char *problem;

	if (m->first && node->broken)
		return;
	if (m->first) {
		ERROR(loader, node->key_place, path, "matches in a second way: %s", match_advice);
		return;
	}
	m->first = node;
	m->broken = true;
	if (!apply_expect(loader, key, node, NODE_SCALAR, path) || node->broken)
		return;
	problem = node->empty ? "has no value: write what it must match"
			      : pattern_problem((enum match_kind)key->min, node->text);
	if (problem) {
		ERROR(loader, node->place, path, "%s", problem);
		return;
	}
	m->broken = false;
	m->rule->kind = (enum match_kind)key->min;
	strcpy(m->rule->pattern, node->text);
	if (m->rule->kind == MATCH_UUID)
		for (char *p = m->rule->pattern; *p; p++)
			*p = (char)tolower((unsigned char)*p);
}

static void read_match(struct loader *loader, const struct node *map, const struct key_path *path,
		       struct matching *m)
{
	static const struct key *const tables[] = { schema_match, NULL };
	static const struct key row = { .type = KEY_MAP };

	if (map->kind == NODE_SCALAR && map->empty && !map->broken)
		return;
	if (!apply_expect(loader, &row, map, NODE_MAP, path)) {
		m->broken = true;
		return;
	}
	for (const struct node *node = map->first; node; node = node->next) {
		const struct key *key;
		struct key_path here;

		if (!node->key)
			continue;
		here = key_path_add(path, node->key);
		key = schema_find(schema_match, node->key);
		if (key) {
			read_pattern(loader, key, node, &here, m);
		} else {
			apply_unknown(loader, node, &here, tables);
			m->broken = true;
		}
	}
}

static void read_rule_key(struct loader *loader, const struct node *node,
			  const struct key_path *path, struct matching *m)
{
	static const struct key match_row[] = { { .name = "match" }, { .name = NULL } };
	static const struct key *const tables[] = { match_row, schema_match, schema_guest, NULL };
	const struct key *key;

	if (strcmp(node->key, "match") == 0) {
		read_match(loader, node, path, m);
		return;
	}
	key = schema_find(schema_match, node->key);
	if (key) {
		read_pattern(loader, key, node, path, m);
		return;
	}
	key = schema_find(schema_guest, node->key);
	if (key)
		apply_key(loader, key, &m->rule->guest, node, path);
	else
		apply_unknown(loader, node, path, tables);
}

/* Gives false where the rule can't be used; why has been said. */
static bool read_rule(struct loader *loader, const struct node *map, const struct key_path *path,
		      struct guest_rule *rule, struct place *ret_place)
{
	static const struct key row = { .type = KEY_RULE };
	struct matching m = { .rule = rule };
	size_t errors = loader->diag->n_errors;
	const struct node *limit;

	*rule = (struct guest_rule){ .guest = loader->settings->defaults };
	if (!apply_expect(loader, &row, map, NODE_MAP, path))
		return false;
	for (const struct node *node = map->first; node; node = node->next) {
		struct key_path here;

		if (!node->key)
			continue;
		here = key_path_add(path, node->key);
		read_rule_key(loader, node, &here, &m);
	}
	if (!m.first && !m.broken && !map->broken)
		ERROR(loader, map->place, path, "matches no guest: %s", match_advice);
	limit = tree_find(map, "min");
	if (!limit)
		limit = tree_find(map, "max");
	if (limit && loader->diag->n_errors == errors)
		validate_guest(loader, &rule->guest, limit->place, path);
	if (!m.first || m.broken)
		return false;
	*ret_place = m.first->place;
	return true;
}

/* Room for @more rules and their places. */
static int grow(struct settings *settings, size_t more, struct place **places)
{
	size_t n = settings->n_rules + more;
	struct guest_rule *rules;
	struct place *p;

	rules = reallocarray(settings->rules, n, sizeof(*rules));
	if (!rules)
		return -ENOMEM;
	settings->rules = rules;
	p = reallocarray(*places, n, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*places = p;
	return 0;
}

int rules_apply(struct loader *loader, const struct node *root, struct place **places)
{
	struct settings *settings = loader->settings;
	const struct key *row = schema_find(schema_root, "guests");
	const struct key_path path = { "guests" };
	const struct node *list = root ? tree_find(root, "guests") : NULL;
	size_t i = 0;

	if (!list || (list->kind == NODE_SCALAR && list->empty && !list->broken))
		return 0;
	if (!apply_expect(loader, row, list, NODE_LIST, &path) || list->n_children == 0)
		return 0;
	if (settings->n_rules + list->n_children > CONFIG_RULES_MAX) {
		ERROR(loader, list->place, &path,
		      "too many rules in all files: %d are the most, use patterns",
		      CONFIG_RULES_MAX);
		return 0;
	}
	if (grow(settings, list->n_children, places) < 0)
		return -ENOMEM;
	for (const struct node *node = list->first; node; node = node->next) {
		struct key_path here = key_path_index(&path, i++);
		size_t n = settings->n_rules;

		if (read_rule(loader, node, &here, &settings->rules[n], &(*places)[n]))
			settings->n_rules++;
	}
	return 0;
}

/*
 * Does all that @later matches match @earlier, too? A pattern whose only wildcards are stars
 * covers another if it matches its text: a star takes in any of the other's wildcards, and the
 * rest are letters. With brackets or backslashes in either nothing is claimed.
 */
static bool covers(const struct guest_rule *earlier, const struct guest_rule *later)
{
	if (earlier->kind == MATCH_NAME && strcmp(earlier->pattern, "*") == 0)
		return true;
	if (earlier->kind != later->kind)
		return false;
	if (strcmp(earlier->pattern, later->pattern) == 0)
		return true;
	if (earlier->kind == MATCH_UUID || !strchr(earlier->pattern, '*'))
		return false;
	if (strpbrk(earlier->pattern, "?[\\") || strpbrk(later->pattern, "[\\"))
		return false;
	return fnmatch(earlier->pattern, later->pattern, 0) == 0;
}

void rules_check(struct loader *loader, const struct place *places)
{
	const struct settings *settings = loader->settings;

	for (size_t i = 1; i < settings->n_rules; i++) {
		for (size_t j = 0; j < i; j++) {
			const struct guest_rule *earlier = &settings->rules[j];
			bool same = strcmp(earlier->pattern, settings->rules[i].pattern) == 0;

			if (!covers(earlier, &settings->rules[i]))
				continue;
			diag_add(loader->diag, CONFIG_WARNING, places[i], "guests",
				 same ? "never used: the rule at %s:%u has the same pattern and "
					"comes first; remove one of them"
				      : "never used: the rule at %s:%u comes first and matches all "
					"that this one does; put this one before it",
				 places[j].file, places[j].line);
			break;
		}
	}
}
