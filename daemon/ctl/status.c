// SPDX-License-Identifier: GPL-2.0-or-later
/* `ballastctl status`: the host in three lines and the guests in a table, or one guest at length. */
#include <errno.h>
#include <libsmartcols/libsmartcols.h>
#include <string.h>

#include "daemon/ctl/client.h"
#include "daemon/ctl/guest.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/terminal.h"
#include "daemon/util/cleanup.h"
#include "daemon/util/parse.h"

#define TINY	    76 /* columns below which the guest's own statistics are left out */
#define NARROW	    100 /* columns below which amounts are "1800M" and headings short */
#define AMOUNT_SIZE (FORMAT_SIZE_MAX + 1)
#define WIDE	    160 /* columns from which the reason is a sentence */

enum source { FROM_GUEST, FROM_STATS };

struct column {
	const char *heading, *short_heading;
	const char *key; /* of an amount, NULL: not one */
	enum source source;
	const char *part; /* that goes stale */
	double width; /* hint, as smartcols has it */
	int flags;
};

/* The amounts stand between the state and the reason. */
static const struct column columns[] = {
	{ "GUEST", "GUEST", NULL, FROM_GUEST, NULL, 8, 0 },
	{ "STATE", "STATE", NULL, FROM_GUEST, NULL, 8, 0 },
	{ "ACTUAL", "ACTUAL", "actual", FROM_GUEST, "balloon", 5, SCOLS_FL_RIGHT },
	{ "TARGET", "TARGET", "target", FROM_GUEST, NULL, 5, SCOLS_FL_RIGHT },
	{ "FOOTPRINT", "FOOTPR", "footprint", FROM_GUEST, "cost", 5, SCOLS_FL_RIGHT },
	{ "EXEC MAPPED", "EXEC", "exec_mapped", FROM_STATS, "stats", 5, SCOLS_FL_RIGHT },
	{ "LAZYFREE", "LAZYFR", "lazyfree", FROM_STATS, "stats", 5, SCOLS_FL_RIGHT },
	{ "SWAP ENTRIES", "SWAP", "swap_entries", FROM_STATS, "stats", 5, SCOLS_FL_RIGHT },
	{ "REASON", "REASON", NULL, FROM_GUEST, NULL, 10, SCOLS_FL_TRUNC },
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

enum { COLUMN_GUEST, COLUMN_STATE, COLUMN_AMOUNTS, COLUMN_REASON = N_COLUMNS - 1 };

static bool is_narrow(const struct terminal *terminal)
{
	return terminal->width && terminal->width < NARROW;
}

/* Long names must not push the other columns out; all of it is in the view of one guest. */
static size_t name_columns(const struct terminal *terminal)
{
	if (!terminal->width)
		return TERMINAL_TEXT;
	if (is_narrow(terminal))
		return 16;
	return terminal->width < WIDE ? 24 : 40;
}

/* "1800 MiB" as "1800M" */
static void shorten(char *size)
{
	char *space = strchr(size, ' ');

	if (space) {
		space[0] = space[1];
		space[1] = '\0';
	}
}

static const char *amount_cell(const struct terminal *terminal, const struct column *column,
			       struct json_object *guest, char buf[AMOUNT_SIZE])
{
	struct json_object *object = guest;
	char size[FORMAT_SIZE_MAX];
	uint64_t bytes;

	if (column->source == FROM_STATS && !json_object_object_get_ex(guest, "stats", &object))
		return "-";
	if ((column->part && json_has_word(guest, "stale", column->part)) ||
	    !json_number(object, column->key, &bytes))
		return "-";
	format_size(size, FORMAT_SIZE_MAX, bytes);
	if (is_narrow(terminal))
		shorten(size);
	(void)snprintf(buf, AMOUNT_SIZE, "%s%s",
		       column->source == FROM_STATS ? guest_mark(guest, column->key) : "", size);
	return buf;
}

/* What the mark before a number means, where there is one. */
static void print_legend(const struct terminal *terminal, struct json_object *guests)
{
	for (size_t i = 0; i < json_object_array_length(guests); i++) {
		struct json_object *guest = json_object_array_get_idx(guests, i);

		if (!*guest_mark(guest, "lazyfree") && !*guest_mark(guest, "exec_mapped"))
			continue;
		fprintf(terminal->out, "%s~ estimated: the guest's kernel doesn't count it%s\n",
			terminal_start(terminal, COLOUR_DIM), terminal_end(terminal));
		return;
	}
}

/* The name of the reason, or its sentence where there is room, and what of it all is stale. */
static const char *reason_cell(const struct terminal *terminal, struct json_object *guest,
			       char *buf, size_t size)
{
	bool wide = !terminal->width || terminal->width >= WIDE;
	const char *reason = json_text(guest, wide ? "text" : "reason");
	char span[32], safe[TERMINAL_TEXT];
	struct json_object *ages;
	uint64_t us;

	terminal_safe(terminal, reason, safe);
	if (json_has_word(guest, "stale", "stats") &&
	    json_object_object_get_ex(guest, "ages", &ages) && json_number(ages, "stats_us", &us))
		(void)snprintf(buf, size, wide ? "%s, statistics %s old" : "%s (%s)", safe,
			       span_text(span, sizeof(span), us));
	else
		(void)snprintf(buf, size, "%s", safe);
	return buf;
}

static int fill_line(const struct terminal *terminal, struct libscols_line *line,
		     struct json_object *guest)
{
	const char *state = json_text(guest, "state");
	char safe[TERMINAL_TEXT], text[TERMINAL_TEXT + 64];
	int r;

	terminal_safe(terminal, json_text(guest, "name"), safe);
	terminal_cut(terminal, safe, name_columns(terminal));
	r = scols_line_set_data(line, COLUMN_GUEST, safe);
	if (r >= 0)
		r = scols_line_set_data(line, COLUMN_STATE, state);
	for (size_t i = COLUMN_AMOUNTS; i < COLUMN_REASON && r >= 0; i++)
		r = scols_line_set_data(line, i, amount_cell(terminal, &columns[i], guest, text));
	if (r >= 0)
		r = scols_line_set_data(line, COLUMN_REASON,
					reason_cell(terminal, guest, text, sizeof(text)));
	if (r >= 0 && terminal->colours && state_colour(state) != COLOUR_NONE)
		r = scols_cell_set_color(scols_line_get_cell(line, COLUMN_STATE),
					 terminal_start(terminal, state_colour(state)));
	return r;
}

static int add_columns(const struct terminal *terminal, struct libscols_table *table)
{
	bool tiny = terminal->width && terminal->width < TINY;

	for (size_t i = 0; i < N_COLUMNS; i++) {
		const struct column *column = &columns[i];
		int hidden = tiny && column->source == FROM_STATS ? SCOLS_FL_HIDDEN : 0;

		if (!scols_table_new_column(
			    table, is_narrow(terminal) ? column->short_heading : column->heading,
			    column->width, column->flags | hidden))
			return -ENOMEM;
	}
	return 0;
}

static struct libscols_table *new_table(const struct terminal *terminal)
{
	struct libscols_table *table = scols_new_table();

	if (!table)
		return NULL;
	scols_table_set_stream(table, terminal->out);
	scols_table_enable_noencoding(table, 1); /* terminal_safe() has done it, and more */
	scols_table_enable_colors(table, terminal->colours);
	if (terminal->width) {
		scols_table_set_termforce(table, SCOLS_TERMFORCE_ALWAYS);
		scols_table_set_termwidth(table, terminal->width);
	} else {
		scols_table_set_termforce(table, SCOLS_TERMFORCE_NEVER);
	}
	if (add_columns(terminal, table) < 0) {
		scols_unref_table(table);
		return NULL;
	}
	return table;
}

static int print_table(const struct terminal *terminal, struct json_object *guests)
{
	struct libscols_table *table = new_table(terminal);
	int r = table ? 0 : -ENOMEM;

	for (size_t i = 0; i < json_object_array_length(guests) && r >= 0; i++) {
		struct libscols_line *line = scols_table_new_line(table, NULL);

		r = line ? fill_line(terminal, line, json_object_array_get_idx(guests, i))
			 : -ENOMEM;
	}
	if (r >= 0)
		r = scols_print_table(table);
	scols_unref_table(table);
	return r;
}

static int by_name(const void *a, const void *b)
{
	struct json_object *const *first = a, *const *second = b;

	return strcmp(json_text(*first, "name"), json_text(*second, "name"));
}

/* Host and guests become one object, the host's values at its top. */
static int read_status(sd_bus_message *answer, struct json_object **ret_status)
{
	_cleanup_json_ struct json_object *host = NULL;
	struct json_object *guests;
	int r;

	r = json_from_message(answer, &host);
	if (r < 0)
		return r;
	r = json_add_from_message(host, "guests", answer);
	if (r < 0)
		return r;
	json_object_object_get_ex(host, "guests", &guests);
	json_object_array_sort(guests, by_name);
	*ret_status = TAKE_PTR(host);
	return 0;
}

static int host_status(const struct client_options *options)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
	_cleanup_json_ struct json_object *status = NULL;
	struct json_object *guests;
	struct terminal terminal;
	uint64_t shortfall = 0;
	int r;

	r = client_call(options, "GetStatus", false, &answer);
	if (r != CTL_OK)
		return r;
	r = read_status(answer, &status);
	if (r < 0)
		return client_bad_answer(r);
	(void)json_number(status, "shortfall", &shortfall);
	if (options->json) {
		json_print(status);
		return shortfall ? CTL_SHORTFALL : CTL_OK;
	}
	terminal_init(&terminal);
	json_object_object_get_ex(status, "guests", &guests);
	host_print(&terminal, status, json_object_array_length(guests));
	if (json_object_array_length(guests) > 0) {
		fputc('\n', terminal.out);
		r = print_table(&terminal, guests);
		if (r < 0)
			return client_bad_answer(r);
		print_legend(&terminal, guests);
	}
	return shortfall ? CTL_SHORTFALL : CTL_OK;
}

static int guest_status(const struct client_options *options)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
	_cleanup_json_ struct json_object *guest = NULL;
	struct terminal terminal;
	int r;

	r = client_call(options, "GetGuest", true, &answer);
	if (r != CTL_OK)
		return r;
	r = json_from_message(answer, &guest);
	if (r < 0)
		return client_bad_answer(r);
	if (options->json) {
		json_print(guest);
		return CTL_OK;
	}
	terminal_init(&terminal);
	guest_print_title(&terminal, guest);
	guest_print_reason(&terminal, guest);
	guest_print_memory(&terminal, guest);
	guest_print_limits(&terminal, guest);
	guest_print_tiers(&terminal, guest);
	guest_print_agent(&terminal, guest);
	guest_print_ages(&terminal, guest);
	guest_print_settings(&terminal, guest);
	guest_print_statistics(&terminal, guest);
	return CTL_OK;
}

int ctl_status(int argc, char **argv)
{
	struct client_options options;
	int status;

	if (!client_parse(argc, argv, "status [GUEST]", CLIENT_MAYBE_GUEST, &options, &status))
		return status;
	return options.guest ? guest_status(&options) : host_status(&options);
}
