/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * YAML as a tree of nodes that know their place. Takes the plain part of YAML only: what makes a
 * configuration mean something else than it looks like (anchors, aliases, tags, several documents,
 * duplicate keys) is a mistake. Internal to daemon/config; the tree belongs to the caller and
 * points at the file name that was given.
 */
#ifndef BALLAST_CONFIG_TREE_H
#define BALLAST_CONFIG_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/diag.h"

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	struct place place;
	struct place key_place; /* of the key, in a map */
	char *key; /* in a map, else NULL */
	char *text; /* of a scalar */
	bool empty; /* a scalar that isn't there: "key:" */
	bool broken; /* had a mistake that was said: its value means nothing */
	struct node *parent;
	struct node *first, *last, *next; /* children in order */
	size_t n_children;
	size_t index; /* among its parent's children */
};

/**
 * tree_parse() - parse one file's text.
 * @file: name for the places; must live as long as the tree and @diag's additions.
 * @ret_root: the root, a map; NULL when the document is empty or was not understood.
 *
 * Return: 0, with mistakes in @diag; -ENOMEM.
 */
int tree_parse(const char *file, const char *text, size_t size, struct config_diag *diag,
	       struct node **ret_root);

void tree_free(struct node *root);
DEFINE_CLEANUP(struct node *, tree_free);

/**
 * tree_find() - the child of a map with that key, or NULL.
 */
struct node *tree_find(const struct node *map, const char *key);

#endif
