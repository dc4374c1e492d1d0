// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/config/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define MAP_KEYS_MAX 128 /* of one map: more than any has, and finding duplicates stays cheap */
#define NODES_MAX    200000

struct builder {
	const char *file;
	struct config_diag *diag;
	struct node *root;
	struct node *open; /* innermost map or list that isn't finished */
	unsigned int depth, documents;
	size_t n_nodes;
	char *key; /* waiting for its value */
	struct place key_place;
	bool has_key, key_broken;
	bool stop; /* what follows can't be understood */
	bool no_memory;
};

static void free_scalars(struct node *node)
{
	free(node->key);
	free(node->text);
	free(node);
}

/* Without recursion: a child list is put in front of what is still to be freed. */
void tree_free(struct node *root)
{
	while (root) {
		struct node *rest = root->next;

		if (root->last) {
			root->last->next = rest;
			rest = root->first;
		}
		free_scalars(root);
		root = rest;
	}
}

struct node *tree_find(const struct node *map, const char *key)
{
	for (struct node *child = map->first; child; child = child->next)
		if (child->key && strcmp(child->key, key) == 0)
			return child;
	return NULL;
}

static struct place place_at(const struct builder *b, const yaml_mark_t *mark)
{
	return (struct place){
		.file = b->file,
		.line = (unsigned int)mark->line + 1,
		.column = (unsigned int)mark->column + 1,
	};
}

static struct key_path path_of(const struct node *node)
{
	const struct node *chain[CONFIG_DEPTH_MAX + 2];
	struct key_path path = { "" };
	size_t n = 0;

	for (; node && n < sizeof(chain) / sizeof(chain[0]); node = node->parent)
		chain[n++] = node;
	while (n-- > 0) {
		if (chain[n]->key)
			path = key_path_add(&path, chain[n]->key);
		else if (chain[n]->parent)
			path = key_path_index(&path, chain[n]->index);
	}
	return path;
}

static void mistake(struct builder *b, struct place place, const char *text)
{
	struct key_path path = path_of(b->open);

	if (b->has_key && b->key)
		path = key_path_add(&path, b->key);
	diag_add(b->diag, CONFIG_ERROR, place, path.text, "%s", text);
}

static void drop_key(struct builder *b)
{
	free(b->key);
	b->key = NULL;
	b->has_key = false;
	b->key_broken = false;
}

static void take_key(struct builder *b, struct node *node)
{
	node->broken = node->broken || b->key_broken;
	node->key = TAKE_PTR(b->key);
	node->key_place = b->key_place;
	drop_key(b);
}

/* Hangs a new node under the open one. Gives NULL, and stops, where memory or room ran out. */
static struct node *add_node(struct builder *b, enum node_kind kind, struct place place)
{
	struct node *node;

	if (b->open && b->open->kind == NODE_LIST && b->open->n_children >= CONFIG_RULES_MAX) {
		mistake(b, place, "the list is too long: 4096 entries are the most");
		b->stop = true;
		return NULL;
	}
	if (b->n_nodes++ >= NODES_MAX) {
		mistake(b, place, "the file holds too much: split it into drop-ins");
		b->stop = true;
		return NULL;
	}
	node = calloc(1, sizeof(*node));
	if (!node) {
		b->no_memory = true;
		return NULL;
	}
	node->kind = kind;
	node->place = place;
	node->parent = b->open;
	if (!b->open) {
		b->root = node;
		return node;
	}
	if (b->open->kind == NODE_MAP)
		take_key(b, node);
	if (b->open->last)
		b->open->last->next = node;
	else
		b->open->first = node;
	b->open->last = node;
	node->index = b->open->n_children++;
	return node;
}

static bool wants_key(const struct builder *b)
{
	return b->open && b->open->kind == NODE_MAP && !b->has_key;
}

static void start_key(struct builder *b, const yaml_event_t *event)
{
	struct place place = place_at(b, &event->start_mark);
	const char *text = (const char *)event->data.scalar.value;
	const struct node *before;

	b->key = strdup(text);
	if (!b->key) {
		b->no_memory = true;
		return;
	}
	b->has_key = true;
	b->key_place = place;
	before = tree_find(b->open, text);
	if (before) {
		struct key_path path = path_of(before);

		diag_add(b->diag, CONFIG_ERROR, place, path.text,
			 "given twice, first in line %u: remove one of them",
			 before->key_place.line);
		b->key_broken = true;
	}
	if (b->open->n_children >= MAP_KEYS_MAX) {
		mistake(b, place, "more keys than this map can have: see ballast.yaml(5)");
		b->stop = true;
	}
}

static bool is_null(const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;

	return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (*text == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

/* What this part of YAML has no use for, on any node. */
static bool check_decoration(struct builder *b, const yaml_event_t *event,
			     const yaml_char_t *anchor, const yaml_char_t *tag)
{
	struct place place = place_at(b, &event->start_mark);

	if (anchor)
		mistake(b, place, "anchors (&name) aren't used here: remove it");
	if (tag)
		mistake(b, place, "tags (!name) aren't used here: write the plain value");
	return !anchor && !tag;
}

static void on_scalar(struct builder *b, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	bool good = check_decoration(b, event, event->data.scalar.anchor, event->data.scalar.tag);
	struct node *node;

	if (strlen(text) != event->data.scalar.length) {
		mistake(b, place_at(b, &event->start_mark), "a NUL character isn't allowed here");
		good = false;
	}
	if (wants_key(b)) {
		start_key(b, event);
		b->key_broken = b->key_broken || !good;
		return;
	}
	node = add_node(b, NODE_SCALAR, place_at(b, &event->start_mark));
	if (!node)
		return;
	node->broken = node->broken || !good;
	node->empty = is_null(event);
	node->text = strdup(text);
	if (!node->text)
		b->no_memory = true;
}

static void on_start(struct builder *b, const yaml_event_t *event, enum node_kind kind,
		     const yaml_char_t *anchor, const yaml_char_t *tag)
{
	struct place place = place_at(b, &event->start_mark);
	bool good = check_decoration(b, event, anchor, tag);
	struct node *node;

	if (wants_key(b)) {
		mistake(b, place, "a key must be a plain word, not a list or a map");
		b->stop = true;
		return;
	}
	if (b->depth >= CONFIG_DEPTH_MAX) {
		mistake(b, place, "nested too deeply: see ballast.yaml(5)");
		b->stop = true;
		return;
	}
	node = add_node(b, kind, place);
	if (!node)
		return;
	node->broken = node->broken || !good;
	b->open = node;
	b->depth++;
}

static void on_end(struct builder *b)
{
	/* libyaml pairs it with a start. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	b->open = b->open->parent;
	b->depth--;
}

static void on_alias(struct builder *b, const yaml_event_t *event)
{
	struct place place = place_at(b, &event->start_mark);
	struct node *node;

	mistake(b, place,
		"aliases (*name) aren't used here: write it out, or put a pattern in quotes");
	if (wants_key(b)) {
		b->has_key = true;
		b->key_broken = true;
		b->key_place = place;
		return;
	}
	node = add_node(b, NODE_SCALAR, place);
	if (node)
		node->broken = true;
}

static void on_document(struct builder *b, const yaml_event_t *event)
{
	if (++b->documents == 1)
		return;
	mistake(b, place_at(b, &event->start_mark),
		"a second document starts here: a file holds one, remove the ---");
	b->stop = true;
}

static void on_event(struct builder *b, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		on_document(b, event);
		break;
	case YAML_ALIAS_EVENT:
		on_alias(b, event);
		break;
	case YAML_SCALAR_EVENT:
		on_scalar(b, event);
		break;
	case YAML_SEQUENCE_START_EVENT:
		on_start(b, event, NODE_LIST, event->data.sequence_start.anchor,
			 event->data.sequence_start.tag);
		break;
	case YAML_MAPPING_START_EVENT:
		on_start(b, event, NODE_MAP, event->data.mapping_start.anchor,
			 event->data.mapping_start.tag);
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		on_end(b);
		break;
	default:
		break;
	}
}

/* What the parser stumbled over, in words that help. */
static void on_syntax_error(struct builder *b, const yaml_parser_t *parser, const char *text,
			    size_t size)
{
	struct place place = place_at(b, &parser->problem_mark);
	const char *problem = parser->problem ? parser->problem : "it can't be parsed";
	const char *advice = "check indentation, colons and quotes";
	size_t at = parser->problem_mark.index;

	if (parser->error == YAML_MEMORY_ERROR) {
		b->no_memory = true;
		return;
	}
	if (at < size && text[at] == '\t')
		advice = "indent with spaces, not with tabs";
	else if (at < size && (text[at] == '@' || text[at] == '`'))
		advice = "put the value in double quotes";
	diag_add(b->diag, CONFIG_ERROR, place, NULL, "not YAML, %s: %s", problem, advice);
}

static void run(struct builder *b, yaml_parser_t *parser, const char *text, size_t size)
{
	bool done = false;

	while (!done && !b->stop && !b->no_memory) {
		yaml_event_t event;

		if (!yaml_parser_parse(parser, &event)) {
			on_syntax_error(b, parser, text, size);
			break;
		}
		on_event(b, &event);
		done = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	/* What was not read to its end isn't judged for what it lacks. */
	for (; b->open; b->open = b->open->parent)
		b->open->broken = true;
}

int tree_parse(const char *file, const char *text, size_t size, struct config_diag *diag,
	       struct node **ret_root)
{
	struct builder b = { .file = file, .diag = diag };
	yaml_parser_t parser;

	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
	run(&b, &parser, text, size);
	yaml_parser_delete(&parser);
	drop_key(&b);
	if (b.no_memory) {
		tree_free(b.root);
		return -ENOMEM;
	}
	if (b.root && b.root->kind == NODE_SCALAR && b.root->empty) {
		tree_free(b.root);
		b.root = NULL;
	}
	if (b.root && b.root->kind != NODE_MAP) {
		if (!b.root->broken)
			diag_add(diag, CONFIG_ERROR, b.root->place, NULL,
				 "expected the keys host:, defaults: and guests: here");
		tree_free(b.root);
		b.root = NULL;
	}
	*ret_root = b.root;
	return 0;
}
