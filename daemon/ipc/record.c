// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/ipc/record.h"

#include <string.h>

#include "daemon/util/num.h"
#include "daemon/util/uuid.h"

/* A rendering under way: after the first error nothing more goes to the sink. */
struct record {
	const struct record_sink *sink;
	void *to;
	int error;
};

static void put_text(struct record *record, const char *key, const char *value)
{
	if (record->error >= 0)
		record->error = record->sink->text(record->to, key, value);
}

static void put_flag(struct record *record, const char *key, bool value)
{
	if (record->error >= 0)
		record->error = record->sink->flag(record->to, key, value);
}

static void put_number(struct record *record, const char *key, uint64_t value)
{
	if (record->error >= 0)
		record->error = record->sink->number(record->to, key, value);
}

/* For amounts of which 0 means "not known". */
static void put_known(struct record *record, const char *key, uint64_t value)
{
	if (value)
		put_number(record, key, value);
}

static void put_age(struct record *record, const char *key, uint64_t at_us, uint64_t now_us)
{
	if (at_us)
		put_number(record, key, less(now_us, at_us));
}

static void open_group(struct record *record, const char *key)
{
	if (record->error >= 0)
		record->error = record->sink->open(record->to, key);
}

static void close_group(struct record *record)
{
	if (record->error >= 0)
		record->error = record->sink->close(record->to);
}

struct bit_name {
	uint32_t bit;
	const char *name;
};

static void put_words(struct record *record, const char *key, const char *const *words, size_t n)
{
	if (record->error >= 0)
		record->error = record->sink->words(record->to, key, words, n);
}

static void put_bits(struct record *record, const char *key, uint32_t bits,
		     const struct bit_name *names, size_t n)
{
	const char *words[32];
	size_t used = 0;

	for (size_t i = 0; i < n && used < 32; i++)
		if (bits & names[i].bit)
			words[used++] = names[i].name;
	put_words(record, key, words, used);
}

#define PUT_BITS(record, key, bits, names)                                                         \
	put_bits((record), (key), (bits), (names), sizeof(names) / sizeof((names)[0]))

static void put_operands(struct record *record, enum reason reason, const uint64_t operand[4])
{
	const struct reason_info *info = &reason_infos[reason];

	open_group(record, "operands");
	for (int i = 0; i < 4 && info->operand[i][0]; i++)
		put_number(record, info->operand[i], operand[i]);
	close_group(record);
}

static void put_host_memory(struct record *record, const struct host_snapshot *host,
			    uint64_t now_us)
{
	if (host->at_us) {
		put_number(record, "host_total", host->total);
		put_number(record, "host_free", host->free);
		put_number(record, "host_available", host->available);
		put_number(record, "host_swap_total", host->swap_total);
		put_number(record, "host_swap_free", host->swap_free);
		put_age(record, "host_age_us", host->at_us, now_us);
	}
	if (host->psi_at_us) {
		put_number(record, "host_psi_some_pct", host->psi_some_avg10);
		put_number(record, "host_psi_full_pct", host->psi_full_avg10);
	}
	if (host->cgroup_at_us) {
		put_number(record, "cgroup_usage", host->cgroup_usage);
		put_number(record, "cgroup_limit", host->cgroup_limit);
	}
}

static void put_plan(struct record *record, const struct plan *plan, uint64_t now_us)
{
	put_text(record, "level", level_name(plan->level));
	put_number(record, "budget", plan->budget);
	put_number(record, "footprint", plan->footprint);
	put_number(record, "headroom", plan->headroom);
	put_number(record, "grant_pool", plan->grant_pool);
	put_number(record, "in_flight", plan->in_flight);
	put_number(record, "need", plan->need);
	put_number(record, "shortfall", plan->shortfall);
	put_number(record, "slack", plan->slack);
	put_number(record, "floor", plan->floor);
	put_known(record, "dead_time_us", plan->dead_time_us);
	put_age(record, "round_age_us", plan->at_us, now_us);
}

static uint64_t view_now(const struct bus_view *view)
{
	return view->now_us ? view->now_us() : view->snapshot->now_us;
}

int record_host(const struct bus_view *view, const struct record_sink *sink, void *to)
{
	struct record record = { .sink = sink, .to = to };
	const struct snapshot *snapshot = view->snapshot;
	uint64_t now_us = view_now(view);

	put_text(&record, "version", BALLAST_VERSION);
	put_number(&record, "time_us", now_us + (uint64_t)view->realtime_offset_us);
	put_text(&record, "mode", mode_name(view->settings->host.mode));
	put_flag(&record, "budget_hard", view->settings->host.budget_hard);
	put_flag(&record, "hypervisor_connected", snapshot->hypervisor_ready);
	put_flag(&record, "frozen", snapshot->frozen);
	if (view->plan && view->plan->at_us)
		put_plan(&record, view->plan, now_us);
	put_host_memory(&record, &snapshot->host, now_us);
	return record.error;
}

static const struct verdict *find_verdict(const struct bus_view *view, size_t i)
{
	const struct plan *plan = view->plan;
	uint32_t slot = view->snapshot->guests[i].slot;

	if (!plan || !plan->at_us)
		return NULL;
	/* The plan has the order of its own snapshot; guests may have come and gone since. */
	if (i < plan->n_verdicts && plan->verdicts[i].slot == slot)
		return &plan->verdicts[i];
	for (size_t k = 0; k < plan->n_verdicts; k++)
		if (plan->verdicts[k].slot == slot)
			return &plan->verdicts[k];
	return NULL;
}

static void put_verdict(struct record *record, const struct verdict *verdict)
{
	static const char *const tiers[] = { "backed_free", "lazyfree", "file", "anon", "text" };
	struct decision as_decision = { .reason = verdict->reason };
	char text[256];

	memcpy(as_decision.operand, verdict->operand, sizeof(as_decision.operand));
	decision_text(&as_decision, text, sizeof(text));
	put_text(record, "state", guest_state_name(verdict->state));
	put_text(record, "reason", reason_infos[verdict->reason].name);
	put_text(record, "text", text);
	put_operands(record, verdict->reason, verdict->operand);
	if (verdict->wants != ACTION_NONE)
		put_text(record, "wants", action_name(verdict->wants));
	put_known(record, "target", verdict->target);
	put_number(record, "in_flight", verdict->in_flight);
	put_known(record, "entitlement", verdict->entitlement);
	put_known(record, "dead_time_us", verdict->dead_time_us);
	if (!verdict->tiers_known)
		return;
	open_group(record, "tiers");
	for (size_t i = 0; i < sizeof(tiers) / sizeof(tiers[0]); i++)
		put_number(record, tiers[i], verdict->tiers[i]);
	close_group(record);
}

static void put_no_verdict(struct record *record)
{
	put_text(record, "state", "undecided");
	put_text(record, "reason", reason_infos[REASON_NONE].name);
	put_text(record, "text", "no round was decided yet");
}

static void put_memory(struct record *record, const struct guest_snapshot *guest)
{
	if (guest->balloon.at_us) {
		put_number(record, "actual", guest->balloon.actual);
		put_number(record, "maximum", guest_max(guest));
		put_number(record, "minimum", guest_min(guest));
		put_flag(record, "autodeflate", guest->balloon.autodeflate);
		put_flag(record, "reporting", guest->balloon.reporting);
	}
	if (guest->driver.at_us && guest->driver.has_usable)
		put_number(record, "usable", guest->driver.usable);
	if (guest->driver.at_us && guest->driver.has_unused)
		put_number(record, "unused", guest->driver.unused);
	if (guest->cost.at_us) {
		put_number(record, "footprint", guest->cost.footprint);
		put_number(record, "resident", guest->cost.resident);
		put_number(record, "swapped", guest->cost.swapped);
		put_number(record, "overhead", guest->cost.overhead);
	}
}

static void put_settings(struct record *record, const struct guest_snapshot *guest)
{
	put_text(record, "manage", manage_name(guest->settings.manage));
	put_number(record, "shares_n", guest->settings.shares);
	if (guest->rule >= 0)
		put_number(record, "rule_n", (uint64_t)guest->rule);
}

static void put_profile(struct record *record, const char *key, const struct profile *profile)
{
	if (!profile->present)
		return;
	open_group(record, key);
	for (int i = 0; i < KNOB_MAX_ID; i++)
		if (knob_has(profile, (enum knob_id)i))
			put_number(record, knob_infos[i].name, profile->value[i]);
	close_group(record);
}

/* The guest's kernel settings: what is in force, what was, what was asked for. */
static void put_guest_settings(struct record *record, const struct agent_part *agent)
{
	const char *words[KNOB_MAX_ID];
	size_t n = 0;

	put_profile(record, "settings", &agent->in_force);
	put_profile(record, "own_settings", &agent->own);
	if (agent->profile_set)
		put_profile(record, "asked_settings", &agent->asked);
	for (int i = 0; i < KNOB_MAX_ID; i++)
		if (agent->settable >> i & 1)
			words[n++] = knob_infos[i].name;
	put_words(record, "settable", words, n);
}

static void put_stats(struct record *record, const struct agent_part *agent)
{
	const char *approximate[STAT_MAX_ID];
	size_t n = 0;

	open_group(record, "stats");
	for (int i = 0; agent->at_us && i < STAT_MAX_ID; i++) {
		if (!stat_has(&agent->stats, (enum stat_id)i))
			continue;
		put_number(record, stat_infos[i].name, agent->stats.value[i]);
		if (agent->approximate >> i & 1)
			approximate[n++] = stat_infos[i].name;
	}
	close_group(record);
	put_words(record, "approximate", approximate, n);
}

static void put_agent(struct record *record, const struct agent_part *agent)
{
	static const struct bit_name capabilities[] = {
		{ AGENT_MAY_SAMPLE, "sample" },
		{ AGENT_MAY_PROFILE, "profile" },
		{ AGENT_MAY_SHED, "shed" },
		{ AGENT_HAS_RECLAIM, "reclaim" },
		{ AGENT_HAS_REPORTING, "reporting" },
		{ AGENT_HAS_LAZYFREE_FIRST, "lazyfree_first" },
		{ AGENT_HAS_EXEC_PROTECT, "exec_protect" },
	};
	uint64_t psi;

	put_text(record, "agent", agent_link_name(agent->link));
	PUT_BITS(record, "capabilities", agent->capabilities, capabilities);
	if (agent->profile_set)
		put_text(record, "profile", level_name(agent->profile_level));
	if (agent_psi_some(agent, &psi))
		put_number(record, "psi_some_pct", psi);
	put_guest_settings(record, agent);
	put_stats(record, agent);
}

static void put_ages(struct record *record, const struct guest_snapshot *guest, uint64_t now_us,
		     uint64_t fresh_us)
{
	static const struct bit_name parts[] = {
		{ 1, "balloon" }, { 2, "driver" }, { 4, "cost" }, { 8, "stats" }
	};
	const uint64_t at_us[] = { guest->balloon.at_us, guest->driver.at_us, guest->cost.at_us,
				   guest->agent.at_us };
	static const char *const keys[] = { "balloon_us", "driver_us", "cost_us", "stats_us" };
	uint32_t stale = 0;

	open_group(record, "ages");
	for (size_t i = 0; i < sizeof(at_us) / sizeof(at_us[0]); i++) {
		put_age(record, keys[i], at_us[i], now_us);
		if (freshness(at_us[i], now_us, fresh_us) == NUMBER_STALE)
			stale |= parts[i].bit;
	}
	if (guest->agent.at_us && stat_has(&guest->agent.stats, STAT_SWAP_ENTRIES))
		put_age(record, "swap_entries_us",
			guest->agent.at_us -
				min_u64(guest->agent.swap_entries_age_us, guest->agent.at_us - 1),
			now_us);
	put_age(record, "pressure_us", guest->agent.pressure_at_us, now_us);
	put_age(record, "request_us", guest->request.at_us, now_us);
	close_group(record);
	PUT_BITS(record, "stale", stale, parts);
}

int record_guest(const struct bus_view *view, size_t i, const struct record_sink *sink, void *to)
{
	static const struct bit_name obstacles[] = {
		{ OBSTACLE_NO_BALLOON, "no-balloon" }, { OBSTACLE_PASSTHROUGH, "passthrough" },
		{ OBSTACLE_LOCKED, "locked" },	       { OBSTACLE_HUGEPAGES, "hugepages" },
		{ OBSTACLE_SHARED, "shared" },
	};
	const struct guest_snapshot *guest = &view->snapshot->guests[i];
	const struct verdict *verdict = find_verdict(view, i);
	uint64_t now_us = view_now(view);
	struct record record = { .sink = sink, .to = to };
	char uuid[UUID_TEXT_SIZE];

	uuid_format(guest->uuid, uuid);
	put_text(&record, "name", guest->name);
	put_text(&record, "uuid", uuid);
	if (verdict)
		put_verdict(&record, verdict);
	else
		put_no_verdict(&record);
	put_text(&record, "phase", guest_phase_name(guest->phase));
	put_age(&record, "phase_age_us", guest->phase_since_us, now_us);
	PUT_BITS(&record, "obstacles", guest->obstacles, obstacles);
	put_memory(&record, guest);
	put_settings(&record, guest);
	put_agent(&record, &guest->agent);
	put_ages(&record, guest, now_us, settings_fresh_limit(view->settings));
	return record.error;
}

static void put_action(struct record *record, const struct decision *decision)
{
	if (decision->action == ACTION_BALLOON) {
		put_number(record, "old", decision->old_target);
		put_number(record, "new", decision->new_target);
	} else if (decision->action == ACTION_SHED) {
		put_number(record, "bytes", decision->bytes);
	} else if (decision->action == ACTION_PROFILE) {
		put_text(record, "level", level_name(decision->level));
	}
}

static void put_outcome(struct record *record, const struct history_entry *entry)
{
	uint64_t at_us = entry->decision.at_us;

	put_text(record, "outcome", outcome_name(entry->outcome));
	if (entry->outcome == OUTCOME_FAILED || entry->status < 0)
		put_text(record, "error", strerrordesc_np(-entry->status) ?: "unknown error");
	if (entry->done_us)
		put_number(record, "done_after_us", entry->done_us - at_us);
	if (entry->decision.action == ACTION_SHED && entry->done_us)
		put_number(record, "freed", entry->freed);
	if (!entry->settled_us)
		return;
	put_number(record, "settled_after_us", entry->settled_us - at_us);
	put_known(record, "actual_after", entry->actual_after);
	put_known(record, "footprint_after", entry->footprint_after);
}

int record_decision(const struct guest_snapshot *guest, const struct history_entry *entry,
		    int64_t realtime_offset_us, const struct record_sink *sink, void *to)
{
	const struct decision *decision = &entry->decision;
	struct record record = { .sink = sink, .to = to };
	char uuid[UUID_TEXT_SIZE], text[256];

	uuid_format(guest->uuid, uuid);
	decision_text(decision, text, sizeof(text));
	put_text(&record, "name", guest->name);
	put_text(&record, "uuid", uuid);
	put_number(&record, "time_us", decision->at_us + (uint64_t)realtime_offset_us);
	put_text(&record, "action", action_name(decision->action));
	put_text(&record, "reason", reason_infos[decision->reason].name);
	put_text(&record, "text", text);
	put_operands(&record, decision->reason, decision->operand);
	put_action(&record, decision);
	put_known(&record, "actual", entry->actual);
	put_known(&record, "footprint", entry->footprint);
	if (entry->psi_known)
		put_number(&record, "psi_some_pct", entry->psi_some);
	put_outcome(&record, entry);
	return record.error;
}
