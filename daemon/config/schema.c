// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/config/schema.h"

#include <string.h>

#define KIB	     (UINT64_C(1) << 10)
#define MIB	     (KIB << 10)
#define PIB	     (MIB << 30)
#define MS	     UINT64_C(1000)
#define SECOND	     (1000 * MS)
#define MINUTE	     (60 * SECOND)
#define HOUR	     (60 * MINUTE)

#define PERCENT(n)   ((n)*UINT64_C(100))

#define HOST(field)  offsetof(struct settings, host.field)
#define GUEST(field) offsetof(struct guest_settings, field)

static const char *const mode_words[] = { "observe", "act", NULL };
static const char *const manage_words[] = { "act", "observe", "no", NULL };
static const char *const stale_words[] = { "lower", "hold", NULL };
static const char *const leave_words[] = { "hold", "release", NULL };
static const char *const swap_words[] = { "never", "critical", "allowed", NULL };
static const char *const host_words[] = { "host", NULL };
static const char *const unset_in_profile[] = { "guest", NULL };
static const char *const unset_in_sysctl[] = { "level", NULL };

static const struct key budget_keys[] = {
	{ "size", KEY_BUDGET_SIZE, HOST(budget), .min = 64 * MIB, .max = PIB,
	  .percent_min = PERCENT(1), .percent_max = PERCENT(100), .words = host_words,
	  .help = "memory that all guests together may cost: a size, a share of the host's memory, "
		  "or host for what the host has left" },
	{ "cgroup", KEY_CGROUP, HOST(budget_cgroup),
	  .help = "take the limit of this cgroup as the budget, instead of size" },
	{ "hard", KEY_BOOL, HOST(budget_hard),
	  .help = "also keep the sum of what guests are allowed within the budget" },
	{ .name = NULL },
};

static const struct key level_keys[] = {
	{ "tight_below", KEY_PERCENT, HOST(tight_below), .min = 1, .max = PERCENT(90),
	  .help = "the host is tight when less than this share of the budget is left" },
	{ "critical_below", KEY_PERCENT, HOST(critical_below), .min = 1, .max = PERCENT(90),
	  .help = "the host is critical when less than this share of the budget is left" },
	{ "min_stay", KEY_DURATION, HOST(level_min_stay_us), .max = HOUR,
	  .help = "a level lasts at least this long before the host may go to an easier one" },
	{ .name = NULL },
};

static const struct key pressure_keys[] = {
	{ "low", KEY_PERCENT, HOST(psi_low), .max = PERCENT(100),
	  .help = "host memory pressure (PSI some, avg10) from which the headroom grows" },
	{ "high", KEY_PERCENT, HOST(psi_high), .min = 1, .max = PERCENT(100),
	  .help = "host memory pressure at which the headroom is doubled" },
	{ .name = NULL },
};

static const struct key interval_keys[] = {
	{ "round", KEY_DURATION, HOST(interval_us), .min = 100 * MS, .max = MINUTE,
	  .help = "time from one decision to the next" },
	{ "statistics", KEY_DURATION, HOST(stats_interval_us), .min = 500 * MS, .max = MINUTE,
	  .help = "time from one sample of the hypervisor's statistics to the next" },
	{ "lock_after", KEY_DURATION, HOST(lock_after_us), .max = HOUR,
	  .help = "a shortage that outlasts this lowers what guests are allowed to what they use" },
	{ .name = NULL },
};

#define PROFILE_HELP(level)                                                                        \
	"kernel settings that the agent applies while the host is " level                          \
	"; guest leaves one as the guest has it"

static const struct key profile_keys[] = {
	{ "relaxed", KEY_PROFILE, HOST(profiles[LEVEL_RELAXED]), .words = unset_in_profile,
	  .help = PROFILE_HELP("relaxed") },
	{ "tight", KEY_PROFILE, HOST(profiles[LEVEL_TIGHT]), .words = unset_in_profile,
	  .help = PROFILE_HELP("tight") },
	{ "critical", KEY_PROFILE, HOST(profiles[LEVEL_CRITICAL]), .words = unset_in_profile,
	  .help = PROFILE_HELP("critical") },
	{ .name = NULL },
};

static const struct key host_keys[] = {
	{ "mode", KEY_WORD, HOST(mode), .words = mode_words,
	  .help = "observe decides and reports without doing it, act does it" },
	{ "uri", KEY_URI, HOST(uri), .help = "libvirt connection" },
	{ "budget", KEY_BUDGET, .keys = budget_keys,
	  .help = "what the guests together may cost; a plain value is short for size" },
	{ "headroom", KEY_AMOUNT, HOST(headroom), .max = PIB, .percent_max = PERCENT(50),
	  .help = "least that is kept free under the budget, a size or a share of it" },
	{ "grant_pool", KEY_AMOUNT, HOST(grant_pool), .max = PIB, .percent_max = PERCENT(50),
	  .help = "kept beside the headroom for guests under pressure, a size or a share of the "
		  "budget" },
	{ "levels", KEY_MAP, .keys = level_keys, .help = "when the host counts as short" },
	{ "pressure", KEY_MAP, .keys = pressure_keys, .help = "what the host's own pressure does" },
	{ "intervals", KEY_MAP, .keys = interval_keys, .help = "times of the control loop" },
	{ "profiles", KEY_MAP, .keys = profile_keys, .help = "kernel settings in guests by level" },
	{ "shortfall_hook", KEY_FILE, HOST(shortfall_hook),
	  .help = "program run when the need can't be met by any means; empty for none" },
	{ .name = NULL },
};

/* Once here, for the defaults and for each rule. */
const struct key schema_guest[] = {
	{ "manage", KEY_WORD, GUEST(manage), .words = manage_words,
	  .help = "act balances the guest, observe only reports on it, no leaves it out" },
	{ "min", KEY_AMOUNT, GUEST(min), .min = 16 * MIB, .max = PIB, .percent_min = PERCENT(1),
	  .percent_max = PERCENT(100),
	  .help = "never take the guest below this, a size or a share of its maximum memory" },
	{ "max", KEY_AMOUNT, GUEST(max), .min = 16 * MIB, .max = PIB, .percent_min = PERCENT(1),
	  .percent_max = PERCENT(100),
	  .help = "never give the guest more than this, a size or a share of its maximum memory" },
	{ "burst", KEY_AMOUNT, GUEST(burst), .max = PIB, .percent_max = PERCENT(100),
	  .help = "room above its footprint that a guest keeps when it is locked" },
	{ "shares", KEY_COUNT, GUEST(shares), .min = 1, .max = 10000,
	  .help = "weight against other guests; 1000 is usual, more gives and keeps more" },
	{ "swap", KEY_WORD, GUEST(swap), .words = swap_words,
	  .help = "may reclaim in the guest write to its swap: never, only when the host is "
		  "critical, or always (allowed)" },
	{ "proactive", KEY_BOOL, GUEST(proactive),
	  .help = "let the guest return what it doesn't use even while the host has room" },
	{ "stale", KEY_WORD, GUEST(stale), .words = stale_words,
	  .help = "a guest that falls silent is lowered slowly while the host is critical (lower), "
		  "or never (hold)" },
	{ "stale_grace", KEY_DURATION, GUEST(stale_grace_us), .min = SECOND, .max = 24 * HOUR,
	  .help = "how long a guest may be silent before stale applies" },
	{ "boot_grace", KEY_DURATION, GUEST(boot_grace_us), .max = HOUR,
	  .help = "a guest isn't touched for this long after it started" },
	{ "on_stop", KEY_WORD, GUEST(on_stop), .words = leave_words,
	  .help = "what happens to the guest's balloon when the daemon stops: hold or release" },
	{ "on_migrate", KEY_WORD, GUEST(on_migrate), .words = leave_words,
	  .help = "what happens to the guest's balloon when it migrates: hold or release" },
	{ "sysctl", KEY_PROFILE, GUEST(sysctl), .words = unset_in_sysctl,
	  .help = "kernel settings for this guest, in place of the level's; level goes back to "
		  "it" },
	{ .name = NULL },
};

const struct key schema_match[] = {
	{ "name", KEY_PATTERN, .min = MATCH_NAME,
	  .help = "name of the domain, with * and ? as in the shell" },
	{ "uuid", KEY_PATTERN, .min = MATCH_UUID, .help = "UUID of the domain" },
	{ "metadata", KEY_PATTERN, .min = MATCH_METADATA,
	  .help = "value of the domain's ballast metadata element, with * and ?" },
	{ .name = NULL },
};

const struct key schema_root[] = {
	{ "host", KEY_MAP, .keys = host_keys, .help = "the host as a whole" },
	{ "defaults", KEY_GUEST, offsetof(struct settings, defaults), .keys = schema_guest,
	  .help = "what a guest gets where its rule says nothing" },
	{ "guests", KEY_RULES, .keys = schema_guest,
	  .help = "rules for guests: the first that matches a guest wins" },
	{ .name = NULL },
};

const struct key *schema_find(const struct key *keys, const char *name)
{
	for (; keys->name; keys++)
		if (strcmp(keys->name, name) == 0)
			return keys;
	return NULL;
}

const char *schema_expects(const struct key *key)
{
	switch (key->type) {
	case KEY_WORD:
		return "a word";
	case KEY_BOOL:
		return "true or false";
	case KEY_PERCENT:
		return "a percentage such as 10%";
	case KEY_AMOUNT:
		return "a size such as 512MiB or a percentage such as 25%";
	case KEY_BUDGET_SIZE:
		return "a size such as 24GiB, a percentage such as 80%, or host";
	case KEY_DURATION:
		return "a time such as 5s or 500ms";
	case KEY_COUNT:
		return "a whole number";
	case KEY_FILE:
		return "an absolute path";
	case KEY_URI:
		return "a libvirt URI such as qemu:///system";
	case KEY_CGROUP:
		return "a cgroup such as /machine.slice";
	case KEY_PATTERN:
		return "a text";
	case KEY_BUDGET:
		return "a size such as 24GiB, a percentage, or the keys size, cgroup and hard";
	case KEY_PROFILE:
	case KEY_MAP:
	case KEY_GUEST:
		return "more keys, indented";
	case KEY_RULE:
		return "a rule such as {name: web-*, min: 2GiB}";
	case KEY_RULES:
		return "a list, each entry starting with -";
	}
	return "something else";
}
