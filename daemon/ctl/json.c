// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/ctl/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int read_basic(sd_bus_message *m, char type, struct json_object **ret_value)
{
	union {
		const char *s;
		uint64_t t; /* no type is larger */
		int b;
	} basic;
	int r;

	r = sd_bus_message_read_basic(m, type, &basic);
	if (r < 0)
		return r;
	switch (type) {
	case SD_BUS_TYPE_STRING:
		*ret_value = json_object_new_string(basic.s);
		break;
	case SD_BUS_TYPE_UINT64:
		*ret_value = json_object_new_uint64(basic.t);
		break;
	case SD_BUS_TYPE_BOOLEAN:
		*ret_value = json_object_new_boolean(basic.b);
		break;
	default: /* nothing else is in the interface */
		return -EBADMSG;
	}
	return *ret_value ? 0 : -ENOMEM;
}

int json_add_from_message(struct json_object *object, const char *key, sd_bus_message *m)
{
	struct json_object *value = NULL;
	int r;

	r = json_from_message(m, &value);
	if (r < 0)
		return r;
	if (json_object_object_add(object, key, value) < 0) {
		json_object_put(value);
		return -ENOMEM;
	}
	return 0;
}

static int read_entry(sd_bus_message *m, const char *contents, struct json_object *object)
{
	const char *key;
	int r;

	r = sd_bus_message_enter_container(m, SD_BUS_TYPE_DICT_ENTRY, contents);
	if (r < 0)
		return r;
	r = sd_bus_message_read_basic(m, SD_BUS_TYPE_STRING, &key);
	if (r < 0)
		return r;
	r = json_add_from_message(object, key, m);
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_item(sd_bus_message *m, struct json_object *array)
{
	struct json_object *value = NULL;
	int r;

	r = json_from_message(m, &value);
	if (r < 0)
		return r;
	if (json_object_array_add(array, value) < 0) {
		json_object_put(value);
		return -ENOMEM;
	}
	return 0;
}

static int read_array(sd_bus_message *m, const char *contents, struct json_object **ret_value)
{
	bool is_dict = contents[0] == '{';
	_cleanup_json_ struct json_object *value =
		is_dict ? json_object_new_object() : json_object_new_array();
	char inner[64] = "";
	int r;

	if (!value)
		return -ENOMEM;
	if (is_dict) /* "{sv}" becomes "sv" */
		(void)snprintf(inner, sizeof(inner), "%.*s", (int)strlen(contents) - 2,
			       contents + 1);
	r = sd_bus_message_enter_container(m, SD_BUS_TYPE_ARRAY, contents);
	if (r < 0)
		return r;
	while ((r = sd_bus_message_at_end(m, 0)) == 0) {
		r = is_dict ? read_entry(m, inner, value) : read_item(m, value);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	r = sd_bus_message_exit_container(m);
	if (r < 0)
		return r;
	*ret_value = json_object_get(value);
	return 0;
}

int json_from_message(sd_bus_message *m, struct json_object **ret_value)
{
	const char *contents;
	char type;
	int r;

	r = sd_bus_message_peek_type(m, &type, &contents);
	if (r < 0)
		return r;
	if (r == 0)
		return -ENODATA;
	if (type == SD_BUS_TYPE_ARRAY)
		return read_array(m, contents, ret_value);
	if (type != SD_BUS_TYPE_VARIANT)
		return read_basic(m, type, ret_value);
	r = sd_bus_message_enter_container(m, SD_BUS_TYPE_VARIANT, contents);
	if (r < 0)
		return r;
	r = json_from_message(m, ret_value);
	if (r < 0)
		return r;
	r = sd_bus_message_exit_container(m);
	if (r < 0) {
		json_object_put(*ret_value);
		*ret_value = NULL;
	}
	return r < 0 ? r : 0;
}

bool json_number(struct json_object *object, const char *key, uint64_t *ret_number)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value) ||
	    !json_object_is_type(value, json_type_int))
		return false;
	*ret_number = json_object_get_uint64(value);
	return true;
}

const char *json_text(struct json_object *object, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value) ||
	    !json_object_is_type(value, json_type_string))
		return "";
	return json_object_get_string(value);
}

bool json_flag(struct json_object *object, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(object, key, &value) && json_object_get_boolean(value);
}

bool json_has_word(struct json_object *object, const char *key, const char *word)
{
	struct json_object *words;

	if (!json_object_object_get_ex(object, key, &words) ||
	    !json_object_is_type(words, json_type_array))
		return false;
	for (size_t i = 0; i < json_object_array_length(words); i++) {
		const char *text = json_object_get_string(json_object_array_get_idx(words, i));

		if (text && strcmp(text, word) == 0)
			return true;
	}
	return false;
}

void json_print(struct json_object *value)
{
	puts(json_object_to_json_string_ext(value, JSON_C_TO_STRING_PRETTY |
							   JSON_C_TO_STRING_SPACED |
							   JSON_C_TO_STRING_NOSLASHESCAPE));
}
