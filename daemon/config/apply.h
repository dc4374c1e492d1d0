/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From tree to settings, guided by the schema. Internal to daemon/config; a loader lives for one
 * config_load() and owns nothing.
 */
#ifndef BALLAST_CONFIG_APPLY_H
#define BALLAST_CONFIG_APPLY_H

#include "daemon/config/diag.h"
#include "daemon/config/schema.h"
#include "daemon/config/tree.h"

#define ORIGINS_MAX 64 /* more than host and defaults have keys */

/* Where a value of host or defaults was given last. */
struct origin {
	size_t offset; /* in struct settings */
	struct place place;
	unsigned int number; /* counts up with each value that is given */
	bool bad; /* the value was wrong, and that was said */
};

struct loader {
	struct config_diag *diag;
	struct settings *settings;
	struct origin origins[ORIGINS_MAX];
	size_t n_origins;
	unsigned int n_values;
};

/**
 * apply_map() - all keys of a map.
 * @base: of @keys; what the map leaves out stays as it is there.
 * @path: of the map.
 */
void apply_map(struct loader *loader, const struct key *keys, void *base, const struct node *map,
	       const struct key_path *path);

/**
 * apply_key() - one value.
 * @path: of the key itself.
 */
void apply_key(struct loader *loader, const struct key *key, void *base, const struct node *node,
	       const struct key_path *path);

/**
 * apply_expect() - is the node of that kind? Says so if it isn't, unless it is known to be broken.
 */
bool apply_expect(struct loader *loader, const struct key *key, const struct node *node,
		  enum node_kind kind, const struct key_path *path);

/**
 * apply_unknown() - say that a key isn't known here, and which was probably meant.
 * @tables: key tables that could have held it, ends with NULL.
 */
void apply_unknown(struct loader *loader, const struct node *node, const struct key_path *path,
		   const struct key *const *tables);

/**
 * apply_origin() - where the value at @offset in struct settings was given last.
 *
 * Return: NULL for a built-in default.
 */
const struct origin *apply_origin(const struct loader *loader, size_t offset);

#endif
