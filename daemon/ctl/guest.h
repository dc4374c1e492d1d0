/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host and one guest for a person, line by line, as `status GUEST` and `explain GUEST` show
 * them. Reads the objects that the daemon's records have become. One thread.
 */
#ifndef BALLAST_CTL_GUEST_H
#define BALLAST_CTL_GUEST_H

#include <json-c/json.h>

#include "daemon/ctl/terminal.h"

/** host_print() - the first lines of every status: mode, level, sums, and what is wrong. */
void host_print(const struct terminal *terminal, struct json_object *host, size_t n_guests);

/** guest_print_title() - name, state and UUID in one line. */
void guest_print_title(const struct terminal *terminal, struct json_object *guest);

/* Parts of a guest, one or two lines each; what is not known is left out. */
void guest_print_reason(const struct terminal *terminal, struct json_object *guest);
void guest_print_memory(const struct terminal *terminal, struct json_object *guest);
void guest_print_limits(const struct terminal *terminal, struct json_object *guest);
void guest_print_tiers(const struct terminal *terminal, struct json_object *guest);
void guest_print_agent(const struct terminal *terminal, struct json_object *guest);
void guest_print_ages(const struct terminal *terminal, struct json_object *guest);
/** guest_print_settings() - a line a kernel setting: in force, the guest's own, asked for. */
void guest_print_settings(const struct terminal *terminal, struct json_object *guest);
void guest_print_statistics(const struct terminal *terminal, struct json_object *guest);

/** guest_mark() - "~" before a statistic that the guest's kernel doesn't count, or "". */
const char *guest_mark(struct json_object *guest, const char *statistic);

/** state_colour() - the colour of a guest's state by its name. */
enum colour state_colour(const char *state);

#endif
