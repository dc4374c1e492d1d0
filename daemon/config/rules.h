/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest rules: what each matches, its settings over the defaults, and which rules can never be
 * used. Internal to daemon/config.
 */
#ifndef BALLAST_CONFIG_RULES_H
#define BALLAST_CONFIG_RULES_H

#include "daemon/config/apply.h"

/**
 * rules_apply() - add the rules of one file to the loader's settings, after those already there.
 * @root: of the file's tree; its list may be missing.
 * @places: grows along with the rules, for rules_check(); the caller frees it.
 *
 * The defaults must be complete. Return: 0 or -ENOMEM.
 */
int rules_apply(struct loader *loader, const struct node *root, struct place **places);

/**
 * rules_check() - warn of rules that no guest can reach.
 */
void rules_check(struct loader *loader, const struct place *places);

#endif
