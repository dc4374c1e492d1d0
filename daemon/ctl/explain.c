// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `ballastctl explain`: why a guest has what it has. From what was known, through the rule that
 * applied and what limits it, to the result; then the last decisions and what came of each.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "daemon/ctl/client.h"
#include "daemon/ctl/guest.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/terminal.h"
#include "daemon/util/cleanup.h"
#include "daemon/util/parse.h"
#include "daemon/util/time.h"

#define SHOWN_MAX 10 /* decisions that are shown to a person; --json has all */

static void print_heading(const struct terminal *terminal, const char *heading)
{
	fprintf(terminal->out, "\n%s%s%s\n", terminal_start(terminal, COLOUR_BOLD), heading,
		terminal_end(terminal));
}

/* The need as a sum that can be checked. */
static void print_need(const struct terminal *terminal, struct json_object *host)
{
	struct items items = { 0 };

	items_add_size(&items, "", host, "need");
	items_add_size(&items, "= footprint", host, "footprint");
	items_add_size(&items, "+ headroom", host, "headroom");
	items_add_size(&items, "- budget", host, "budget");
	items_add_size(&items, "- in flight", host, "in_flight");
	items_add(&items, "(never below 0)");
	if (items.n > 1)
		terminal_items(terminal, "need", &items);
}

static void print_inputs(const struct terminal *terminal, struct json_object *host,
			 struct json_object *guest)
{
	struct items items = { 0 };

	print_heading(terminal, "Inputs");
	items_add(&items, "mode %s", json_text(host, "mode"));
	if (*json_text(host, "level"))
		items_add(&items, "level %s", json_text(host, "level"));
	items_add_size(&items, "grant pool", host, "grant_pool");
	items_add_size(&items, "slack", host, "slack");
	terminal_items(terminal, "round", &items);
	print_need(terminal, host);
	guest_print_memory(terminal, guest);
	guest_print_tiers(terminal, guest);
	guest_print_agent(terminal, guest);
	guest_print_ages(terminal, guest);
}

static void print_result(const struct terminal *terminal, struct json_object *guest)
{
	struct items items = { 0 };

	print_heading(terminal, "Result");
	if (*json_text(guest, "wants"))
		items_add(&items, "%s: %s", json_text(guest, "state"), json_text(guest, "wants"));
	else
		items_add(&items, "%s", json_text(guest, "state"));
	items_add_size(&items, "target", guest, "target");
	items_add_size(&items, "actual", guest, "actual");
	items_add_size(&items, "in flight", guest, "in_flight");
	terminal_items(terminal, "guest", &items);
}

static void clock_text(char *buf, size_t size, uint64_t time_us)
{
	time_t seconds = (time_t)(time_us / USEC_PER_SEC);
	struct tm tm;
	size_t n = 0;

	if (localtime_r(&seconds, &tm))
		n = strftime(buf, size, "%m-%d %H:%M:%S", &tm);
	if (n == 0)
		(void)snprintf(buf, size, "?");
}

static void add_change(struct items *items, const char *name, struct json_object *decision,
		       const char *before_key, const char *after_key)
{
	char before[FORMAT_SIZE_MAX], after[FORMAT_SIZE_MAX];
	uint64_t from, to;

	if (json_number(decision, before_key, &from) && json_number(decision, after_key, &to))
		items_add(items, "%s %s -> %s", name, format_size(before, FORMAT_SIZE_MAX, from),
			  format_size(after, FORMAT_SIZE_MAX, to));
}

static void print_decision(const struct terminal *terminal, struct json_object *decision)
{
	char when[32], safe[TERMINAL_TEXT], line[TERMINAL_LINE];
	struct items items = { 0 };
	uint64_t us = 0;

	(void)json_number(decision, "time_us", &us);
	clock_text(when, sizeof(when), us);
	(void)snprintf(line, sizeof(line), "%s  %s", when,
		       terminal_safe(terminal, json_text(decision, "text"), safe));
	terminal_text(terminal, "", line);
	items_add(&items, "=> %s%s%s", json_text(decision, "outcome"),
		  *json_text(decision, "error") ? ": " : "", json_text(decision, "error"));
	items_add_span(&items, "after", decision, "done_after_us");
	items_add_size(&items, "freed", decision, "freed");
	if (strcmp(json_text(decision, "action"), "profile") != 0) {
		add_change(&items, "actual", decision, "actual", "actual_after");
		add_change(&items, "footprint", decision, "footprint", "footprint_after");
	}
	terminal_items(terminal, "", &items);
}

static void print_decisions(const struct terminal *terminal, struct json_object *decisions)
{
	size_t n = json_object_array_length(decisions);

	print_heading(terminal, "Last decisions");
	if (n == 0)
		terminal_text(terminal, "", "none");
	for (size_t i = 0; i < n && i < SHOWN_MAX; i++)
		print_decision(terminal, json_object_array_get_idx(decisions, i));
	if (n > SHOWN_MAX)
		fprintf(terminal->out, "            and %zu older ones: --json has all\n",
			n - SHOWN_MAX);
}

static int read_answer(sd_bus_message *answer, struct json_object *all)
{
	int r;

	r = json_add_from_message(all, "host", answer);
	if (r >= 0)
		r = json_add_from_message(all, "guest", answer);
	return r < 0 ? r : json_add_from_message(all, "decisions", answer);
}

static void print_all(struct json_object *all)
{
	struct json_object *host, *guest, *decisions;
	struct terminal terminal;

	terminal_init(&terminal);
	json_object_object_get_ex(all, "host", &host);
	json_object_object_get_ex(all, "guest", &guest);
	json_object_object_get_ex(all, "decisions", &decisions);
	guest_print_title(&terminal, guest);
	print_inputs(&terminal, host, guest);
	print_heading(&terminal, "Rule and limits");
	guest_print_reason(&terminal, guest);
	guest_print_limits(&terminal, guest);
	print_result(&terminal, guest);
	print_decisions(&terminal, decisions);
}

int ctl_explain(int argc, char **argv)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
	_cleanup_json_ struct json_object *all = json_object_new_object();
	struct client_options options;
	int status, r;

	if (!client_parse(argc, argv, "explain GUEST", CLIENT_ONE_GUEST, &options, &status))
		return status;
	status = client_call(&options, "Explain", true, &answer);
	if (status != CTL_OK)
		return status;
	r = all ? read_answer(answer, all) : -ENOMEM;
	if (r < 0)
		return client_bad_answer(r);
	if (options.json)
		json_print(all);
	else
		print_all(all);
	return CTL_OK;
}
