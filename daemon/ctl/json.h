/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * D-Bus values as JSON objects, the one form in which ballastctl has what the daemon said: --json
 * prints it and the tables read it. One thread.
 */
#ifndef BALLAST_CTL_JSON_H
#define BALLAST_CTL_JSON_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "daemon/util/cleanup.h"

/**
 * json_from_message() - the next value of a message: dictionaries become objects, variants what
 * they hold.
 * @ret_value: to be released with json_object_put().
 *
 * Return: 0 or a negative errno.
 */
int json_from_message(sd_bus_message *m, struct json_object **ret_value);

/** json_add_from_message() - put the next value of a message into an object. */
int json_add_from_message(struct json_object *object, const char *key, sd_bus_message *m);

/**
 * json_number(), json_text() - a value of an object.
 * @ret_number: untouched where it is not there.
 *
 * Return: whether it is there; the text, or "".
 */
bool json_number(struct json_object *object, const char *key, uint64_t *ret_number);
const char *json_text(struct json_object *object, const char *key);
bool json_flag(struct json_object *object, const char *key);

/** json_has_word() - whether the array at @key has the text @word. */
bool json_has_word(struct json_object *object, const char *key, const char *word);

/** json_print() - write a value to stdout, for people and programs. */
void json_print(struct json_object *value);

static inline void json_drop(struct json_object **value)
{
	(void)json_object_put(*value);
}

#define _cleanup_json_ _cleanup_(json_drop)

#endif
