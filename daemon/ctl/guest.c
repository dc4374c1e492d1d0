// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/ctl/guest.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/ctl/json.h"
#include "daemon/util/parse.h"
#include "guest-agent/proto/profile.h"
#include "guest-agent/proto/stats.h"

static enum colour level_colour(const char *level)
{
	if (strcmp(level, "critical") == 0)
		return COLOUR_BAD;
	return strcmp(level, "tight") == 0 ? COLOUR_NOTICE : COLOUR_GOOD;
}

enum colour state_colour(const char *state)
{
	static const struct {
		const char *state;
		enum colour colour;
	} colours[] = {
		{ "giving", COLOUR_NOTICE }, { "relieved", COLOUR_GOOD },
		{ "locked", COLOUR_NOTICE }, { "backoff", COLOUR_BAD },
		{ "blind", COLOUR_BAD },     { "observed", COLOUR_DIM },
		{ "excluded", COLOUR_DIM },
	};

	for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++)
		if (strcmp(colours[i].state, state) == 0)
			return colours[i].colour;
	return COLOUR_NONE;
}

static void print_warning(const struct terminal *terminal, enum colour colour, const char *text)
{
	fprintf(terminal->out, "%s%s%s\n", terminal_start(terminal, colour), text,
		terminal_end(terminal));
}

static void print_warnings(const struct terminal *terminal, struct json_object *host)
{
	char text[256], size[FORMAT_SIZE_MAX], more[FORMAT_SIZE_MAX];
	uint64_t shortfall = 0, floor = 0, budget = 0;

	if (!json_flag(host, "hypervisor_connected"))
		print_warning(terminal, COLOUR_BAD,
			      "the hypervisor is out of reach: all targets hold");
	if (json_flag(host, "frozen"))
		print_warning(terminal, COLOUR_NOTICE, "frozen: the freeze file is there");
	if (json_number(host, "shortfall", &shortfall) && shortfall) {
		(void)snprintf(text, sizeof(text), "short of %s: nothing more can be taken",
			       format_size(size, FORMAT_SIZE_MAX, shortfall));
		print_warning(terminal, COLOUR_BAD, text);
	}
	if (json_number(host, "floor", &floor) && json_number(host, "budget", &budget) &&
	    floor > budget) {
		(void)snprintf(text, sizeof(text),
			       "the guests' minima and the headroom are %s, the budget is %s",
			       format_size(size, FORMAT_SIZE_MAX, floor),
			       format_size(more, FORMAT_SIZE_MAX, budget));
		print_warning(terminal, COLOUR_NOTICE, text);
	}
}

static void print_sums(const struct terminal *terminal, struct json_object *host)
{
	struct items items = { 0 };

	items_add_size(&items, "budget", host, "budget");
	items_add_size(&items, "footprint", host, "footprint");
	items_add_size(&items, "headroom", host, "headroom");
	items_add_size(&items, "need", host, "need");
	items_add_size(&items, "in flight", host, "in_flight");
	items_add_span(&items, "dead time", host, "dead_time_us");
	terminal_items(terminal, "", &items);
}

void host_print(const struct terminal *terminal, struct json_object *host, size_t n_guests)
{
	const char *level = json_text(host, "level");
	char safe[TERMINAL_TEXT];

	fprintf(terminal->out, "%s%-12s%s", terminal_start(terminal, COLOUR_BOLD), "ballastd",
		terminal_end(terminal));
	fprintf(terminal->out, "%s   mode %s",
		terminal_safe(terminal, json_text(host, "version"), safe), json_text(host, "mode"));
	if (*level)
		fprintf(terminal->out, "   level %s%s%s",
			terminal_start(terminal, level_colour(level)), level,
			terminal_end(terminal));
	else
		fprintf(terminal->out, "   no round decided yet");
	fprintf(terminal->out, "   %zu guest%s\n", n_guests, n_guests == 1 ? "" : "s");
	print_sums(terminal, host);
	print_warnings(terminal, host);
}

void guest_print_title(const struct terminal *terminal, struct json_object *guest)
{
	const char *state = json_text(guest, "state");
	char name[TERMINAL_TEXT];

	fprintf(terminal->out, "%s%s%s   %s%s%s", terminal_start(terminal, COLOUR_BOLD),
		terminal_safe(terminal, json_text(guest, "name"), name), terminal_end(terminal),
		terminal_start(terminal, state_colour(state)), state, terminal_end(terminal));
	if (*json_text(guest, "wants"))
		fprintf(terminal->out, " (%s)", json_text(guest, "wants"));
	fprintf(terminal->out, "   %s\n", json_text(guest, "uuid"));
}

void guest_print_reason(const struct terminal *terminal, struct json_object *guest)
{
	char text[TERMINAL_TEXT], line[TERMINAL_LINE];

	(void)snprintf(line, sizeof(line), "%s: %s", json_text(guest, "reason"),
		       terminal_safe(terminal, json_text(guest, "text"), text));
	terminal_text(terminal, "rule", line);
}

void guest_print_memory(const struct terminal *terminal, struct json_object *guest)
{
	struct items memory = { 0 }, cost = { 0 };

	items_add_size(&memory, "actual", guest, "actual");
	items_add_size(&memory, "target", guest, "target");
	items_add_size(&memory, "in flight", guest, "in_flight");
	items_add_size(&memory, "usable", guest, "usable");
	terminal_items(terminal, "balloon", &memory);
	items_add_size(&cost, "footprint", guest, "footprint");
	items_add_size(&cost, "resident", guest, "resident");
	items_add_size(&cost, "swapped", guest, "swapped");
	items_add_size(&cost, "QEMU's own", guest, "overhead");
	items_add_span(&cost, "dead time", guest, "dead_time_us");
	terminal_items(terminal, "host", &cost);
}

void guest_print_limits(const struct terminal *terminal, struct json_object *guest)
{
	struct json_object *obstacles;
	struct items items = { 0 };
	uint64_t number;

	items_add_size(&items, "minimum", guest, "minimum");
	items_add_size(&items, "maximum", guest, "maximum");
	items_add_size(&items, "entitlement", guest, "entitlement");
	items_add(&items, "manage %s", json_text(guest, "manage"));
	if (json_number(guest, "shares_n", &number))
		items_add(&items, "shares %" PRIu64, number);
	if (json_number(guest, "rule_n", &number))
		items_add(&items, "rule %" PRIu64 " of the configuration", number + 1);
	if (json_object_object_get_ex(guest, "obstacles", &obstacles))
		for (size_t i = 0; i < json_object_array_length(obstacles); i++)
			items_add(&items, "%s",
				  json_object_get_string(json_object_array_get_idx(obstacles, i)));
	terminal_items(terminal, "limits", &items);
}

const char *guest_mark(struct json_object *guest, const char *statistic)
{
	return json_has_word(guest, "approximate", statistic) ? "~" : "";
}

static void add_tier(struct items *items, const char *name, const char *mark,
		     struct json_object *tiers, const char *key)
{
	char size[FORMAT_SIZE_MAX];
	uint64_t bytes;

	if (json_number(tiers, key, &bytes))
		items_add(items, "%s %s%s", name, mark, format_size(size, FORMAT_SIZE_MAX, bytes));
}

void guest_print_tiers(const struct terminal *terminal, struct json_object *guest)
{
	const char *lazyfree = guest_mark(guest, "lazyfree"),
		   *text = guest_mark(guest, "exec_mapped");
	struct items items = { 0 };
	struct json_object *tiers;

	if (!json_object_object_get_ex(guest, "tiers", &tiers))
		return;
	add_tier(&items, "backed free", "", tiers, "backed_free");
	add_tier(&items, "lazyfree", lazyfree, tiers, "lazyfree");
	/* What is left of the page cache without the two. */
	add_tier(&items, "file", *lazyfree ? lazyfree : text, tiers, "file");
	add_tier(&items, "anonymous", "", tiers, "anon");
	add_tier(&items, "text", text, tiers, "text");
	terminal_items(terminal, "tiers", &items);
}

/* The kernel settings among them have lines of their own. */
static void add_capabilities(struct items *items, struct json_object *guest)
{
	char line[ITEM_SIZE] = "";
	struct json_object *words;
	size_t used = 0;

	if (!json_object_object_get_ex(guest, "capabilities", &words))
		return;
	for (size_t i = 0; i < json_object_array_length(words) && used < sizeof(line); i++) {
		const char *word = json_object_get_string(json_object_array_get_idx(words, i));

		if (word && knob_by_name(word) < 0)
			used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s",
						 used ? ", " : "can ", word);
	}
	if (used)
		items_add(items, "%s", line);
}

void guest_print_agent(const struct terminal *terminal, struct json_object *guest)
{
	struct items items = { 0 };
	uint64_t psi;

	items_add(&items, "%s", json_text(guest, "agent"));
	add_capabilities(&items, guest);
	if (*json_text(guest, "profile"))
		items_add(&items, "profile %s", json_text(guest, "profile"));
	if (json_number(guest, "psi_some_pct", &psi))
		items_add(&items, "pressure %.2f %%", (double)psi / 100);
	terminal_items(terminal, "agent", &items);
}

static void add_age(struct items *items, const char *name, struct json_object *guest,
		    const char *key, const char *part)
{
	struct json_object *ages;
	char span[32];
	uint64_t us;

	if (!json_object_object_get_ex(guest, "ages", &ages) || !json_number(ages, key, &us))
		return;
	items_add(items, "%s %s%s", name, span_text(span, sizeof(span), us),
		  json_has_word(guest, "stale", part) ? " (stale)" : "");
}

void guest_print_ages(const struct terminal *terminal, struct json_object *guest)
{
	struct items items = { 0 };

	add_age(&items, "balloon", guest, "balloon_us", "balloon");
	add_age(&items, "driver", guest, "driver_us", "driver");
	add_age(&items, "host", guest, "cost_us", "cost");
	add_age(&items, "statistics", guest, "stats_us", "stats");
	add_age(&items, "swap entries", guest, "swap_entries_us", "");
	add_age(&items, "pressure alarm", guest, "pressure_us", "");
	terminal_items(terminal, "ages", &items);
}

#define SETTING_SHOWN_MAX UINT64_C(9999999) /* a guest may say anything; JSON has all of it */

static const char *setting_cell(struct json_object *values, const char *name, char buf[16])
{
	uint64_t value;

	if (!values || !json_number(values, name, &value))
		return "-";
	if (value > SETTING_SHOWN_MAX)
		(void)snprintf(buf, 16, ">%" PRIu64, SETTING_SHOWN_MAX);
	else
		(void)snprintf(buf, 16, "%" PRIu64, value);
	return buf;
}

static const char *setting_note(struct json_object *guest, const char *name,
				struct json_object *settings, struct json_object *own,
				struct json_object *asked)
{
	uint64_t now, wanted;

	if (!json_number(own, name, &now))
		return "not there";
	if (json_has_word(guest, "capabilities", "profile") &&
	    !json_has_word(guest, "settable", name))
		return "kept by the guest";
	if (settings && asked && json_number(settings, name, &now) &&
	    json_number(asked, name, &wanted) && now != wanted)
		return "not as asked";
	return "";
}

void guest_print_settings(const struct terminal *terminal, struct json_object *guest)
{
	struct json_object *settings = NULL, *own = NULL, *asked = NULL;
	char a[16], b[16], c[16];

	(void)json_object_object_get_ex(guest, "settings", &settings);
	(void)json_object_object_get_ex(guest, "asked_settings", &asked);
	if (!json_object_object_get_ex(guest, "own_settings", &own))
		return;
	fprintf(terminal->out, "\n%-32s%8s %8s %8s\n", "kernel settings of the guest", "in force",
		"its own", "asked");
	for (int i = 0; i < KNOB_MAX_ID; i++) {
		const char *name = knob_infos[i].name;
		const char *note = setting_note(guest, name, settings, own, asked);

		fprintf(terminal->out, "  %-30s%8s %8s %8s%s%s%s%s\n", name,
			setting_cell(settings, name, a), setting_cell(own, name, b),
			setting_cell(asked, name, c), *note ? "  " : "",
			*note ? terminal_start(terminal, COLOUR_DIM) : "", note,
			*note ? terminal_end(terminal) : "");
	}
}

static const char *statistic_value(char *buf, size_t size, enum stat_unit unit, uint64_t value)
{
	if (unit == STAT_UNIT_BYTES)
		return format_size(buf, FORMAT_SIZE_MAX, value);
	if (unit == STAT_UNIT_USEC)
		return span_text(buf, size, value);
	(void)snprintf(buf, size, "%" PRIu64, value);
	return buf;
}

void guest_print_statistics(const struct terminal *terminal, struct json_object *guest)
{
	int room = terminal->width ? (int)terminal->width - 36 : 200;
	struct json_object *stats;
	char value[32], text[40];
	uint64_t number;

	if (!json_object_object_get_ex(guest, "stats", &stats) ||
	    json_object_object_length(stats) == 0)
		return;
	fprintf(terminal->out, "\nstatistics of the guest%s\n",
		json_has_word(guest, "stale", "stats") ? " (stale)" : "");
	for (int i = 0; i < STAT_MAX_ID; i++) {
		const struct stat_info *info = &stat_infos[i];
		const char *mark = guest_mark(guest, info->name);
		const char *about = *mark ? "estimated: " : "";

		if (!json_number(stats, info->name, &number))
			continue;
		(void)snprintf(text, sizeof(text), "%s%s", mark,
			       statistic_value(value, sizeof(value), info->unit, number));
		fprintf(terminal->out, "  %-19s %12s", info->name, text);
		if (room >= 20)
			fprintf(terminal->out, "  %s%s%.*s%s", terminal_start(terminal, COLOUR_DIM),
				about, room - (int)strlen(about), info->text,
				terminal_end(terminal));
		fputc('\n', terminal->out);
	}
}
