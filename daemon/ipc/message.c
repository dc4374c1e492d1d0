// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/ipc/message.h"

#include "daemon/ipc/record.h"
#include "daemon/util/text.h"

#define TEXT_SIZE 512

/* The a{sv} under way. */
struct dict {
	sd_bus_message *m;
	bool in_group;
};

/* A text may be a guest's name, of any bytes, and D-Bus takes UTF-8 only. */
static int dict_text(void *to, const char *key, const char *value)
{
	struct dict *dict = to;
	char text[TEXT_SIZE];

	text_to_utf8(value, text, sizeof(text));
	return sd_bus_message_append(dict->m, "{sv}", key, "s", text);
}

static int dict_flag(void *to, const char *key, bool value)
{
	struct dict *dict = to;

	return sd_bus_message_append(dict->m, "{sv}", key, "b", (int)value);
}

static int dict_number(void *to, const char *key, uint64_t value)
{
	struct dict *dict = to;

	if (dict->in_group)
		return sd_bus_message_append(dict->m, "{st}", key, value);
	return sd_bus_message_append(dict->m, "{sv}", key, "t", value);
}

/* Opens the entry, its variant and the array in it; dict_close() closes the three. */
static int open_value(struct dict *dict, const char *key, const char *array, const char *item)
{
	int r;

	r = sd_bus_message_open_container(dict->m, SD_BUS_TYPE_DICT_ENTRY, "sv");
	if (r < 0)
		return r;
	r = sd_bus_message_append_basic(dict->m, SD_BUS_TYPE_STRING, key);
	if (r < 0)
		return r;
	r = sd_bus_message_open_container(dict->m, SD_BUS_TYPE_VARIANT, array);
	if (r < 0)
		return r;
	return sd_bus_message_open_container(dict->m, SD_BUS_TYPE_ARRAY, item);
}

static int close_value(struct dict *dict)
{
	int r = 0;

	for (int i = 0; i < 3 && r >= 0; i++)
		r = sd_bus_message_close_container(dict->m);
	return r;
}

static int dict_words(void *to, const char *key, const char *const *words, size_t n)
{
	struct dict *dict = to;
	int r;

	r = open_value(dict, key, "as", "s");
	for (size_t i = 0; i < n && r >= 0; i++)
		r = sd_bus_message_append_basic(dict->m, SD_BUS_TYPE_STRING, words[i]);
	return r < 0 ? r : close_value(dict);
}

static int dict_open(void *to, const char *key)
{
	struct dict *dict = to;

	dict->in_group = true;
	return open_value(dict, key, "a{st}", "{st}");
}

static int dict_close(void *to)
{
	struct dict *dict = to;

	dict->in_group = false;
	return close_value(dict);
}

static const struct record_sink dict_sink = {
	.text = dict_text,
	.flag = dict_flag,
	.number = dict_number,
	.words = dict_words,
	.open = dict_open,
	.close = dict_close,
};

static int open_dict(sd_bus_message *m)
{
	return sd_bus_message_open_container(m, SD_BUS_TYPE_ARRAY, "{sv}");
}

int message_append_host(sd_bus_message *m, const struct bus_view *view)
{
	struct dict dict = { .m = m };
	int r;

	r = open_dict(m);
	if (r < 0)
		return r;
	r = record_host(view, &dict_sink, &dict);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int message_append_guest(sd_bus_message *m, const struct bus_view *view, size_t i)
{
	struct dict dict = { .m = m };
	int r;

	r = open_dict(m);
	if (r < 0)
		return r;
	r = record_guest(view, i, &dict_sink, &dict);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int message_append_guests(sd_bus_message *m, const struct bus_view *view)
{
	int r;

	r = sd_bus_message_open_container(m, SD_BUS_TYPE_ARRAY, "a{sv}");
	for (size_t i = 0; i < view->snapshot->n_guests && r >= 0; i++)
		r = message_append_guest(m, view, i);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int message_append_decision(sd_bus_message *m, const struct guest_snapshot *guest,
			    const struct history_entry *entry, int64_t realtime_offset_us)
{
	struct dict dict = { .m = m };
	int r;

	r = open_dict(m);
	if (r < 0)
		return r;
	r = record_decision(guest, entry, realtime_offset_us, &dict_sink, &dict);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int message_append_history(sd_bus_message *m, const struct bus_view *view,
			   const struct guest_snapshot *guest)
{
	size_t n = history_count(view->history, guest->slot);
	int r;

	r = sd_bus_message_open_container(m, SD_BUS_TYPE_ARRAY, "a{sv}");
	for (size_t i = 0; i < n && r >= 0; i++)
		r = message_append_decision(m, guest, history_get(view->history, guest->slot, i),
					    view->realtime_offset_us);
	return r < 0 ? r : sd_bus_message_close_container(m);
}
