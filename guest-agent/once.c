// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest-agent/once.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guest-agent/facts.h"
#include "guest-agent/port.h"
#include "guest-agent/sampler.h"
#include "guest-agent/util.h"

struct view {
	int fd;
	struct sampler sampler;
	struct numbers numbers;
	struct knobs knobs;
	struct trigger trigger;
	struct wire_hello hello;
	char port[AGENT_PORT_MAX]; /* "" where there is none */
};

static const struct {
	uint64_t bit;
	const char *name, *text;
} capabilities[] = {
	{ WIRE_CAP_SAMPLE, "sample", "the host may sample" },
	{ WIRE_CAP_PROFILE, "profile", "the host may change settings" },
	{ WIRE_CAP_SHED, "shed", "the host may have caches shed" },
	{ WIRE_CAP_LAZYFREE, "lazyfree", "kernel counts lazyfree memory" },
	{ WIRE_CAP_EXEC, "exec", "kernel counts executable text" },
	{ WIRE_CAP_EXEC_EVENTS, "exec_events", "kernel counts faults and reclaim of text" },
	{ WIRE_CAP_PSI, "psi", "kernel measures pressure (PSI)" },
	{ WIRE_CAP_PSI_TRIGGER, "psi_trigger", "kernel wakes the agent on pressure" },
	{ WIRE_CAP_RECLAIM, "reclaim", "memory.reclaim at the root of cgroup2" },
	{ WIRE_CAP_REPORTING, "reporting", "free pages are reported to the host" },
	{ WIRE_CAP_BALLOON, "balloon", "balloon driver" },
	{ WIRE_CAP_AUTODEFLATE, "autodeflate", "balloon may deflate by itself" },
	{ WIRE_CAP_MGLRU, "mglru", "multi-generational LRU" },
};

#define N_CAPABILITIES (sizeof(capabilities) / sizeof(*capabilities))

void once_reason(int stat_id, char *buf, size_t size)
{
	const struct stat_info *info = &stat_infos[stat_id];

	switch (info->source) {
	case STAT_SOURCE_MEMINFO:
		(void)snprintf(buf, size, "no %s in /proc/meminfo", info->key);
		return;
	case STAT_SOURCE_VMSTAT:
	case STAT_SOURCE_VMSTAT_PAGES:
		(void)snprintf(buf, size, "this kernel doesn't count %s", info->key);
		return;
	case STAT_SOURCE_PSI:
		(void)snprintf(buf, size, "no such line in /proc/pressure/%.*s: kernel without PSI",
			       (int)strcspn(info->key, " "), info->key);
		return;
	default:
		(void)snprintf(buf, size, "can't be told from this /proc");
	}
}

/* A number and its unit in 13 columns, so that the units stand in line. */
static void format_value(const struct stat_info *info, uint64_t value, char *buf, size_t size)
{
	if (info->unit == STAT_UNIT_BYTES && value >= UINT64_C(10) << 30)
		(void)snprintf(buf, size, "%10.1f GiB", (double)value / (1 << 30));
	else if (info->unit == STAT_UNIT_BYTES)
		(void)snprintf(buf, size, "%10.1f MiB", (double)value / (1 << 20));
	else if (info->unit == STAT_UNIT_USEC)
		(void)snprintf(buf, size, "%10.3f s  ", (double)value / 1e6);
	else
		(void)snprintf(buf, size, "%10llu    ", (unsigned long long)value);
}

static void print_stat(const struct view *view, int id)
{
	const struct stat_info *info = &stat_infos[id];
	bool about = view->numbers.approximate >> id & 1;
	char text[128], reason[96] = "";
	uint64_t value;

	once_reason(id, reason, sizeof(reason));
	if (!stat_get(&view->numbers.stats, id, &value)) {
		dprintf(view->fd, "  %-19s%10s      %s\n", info->name, "-", reason);
		return;
	}
	format_value(info, value, text, sizeof(text));
	dprintf(view->fd, "  %-18s%s%s  %s", info->name, about ? "~" : " ", text, info->text);
	if (about)
		dprintf(view->fd, " (estimated: %s)", reason);
	dprintf(view->fd, "\n");
}

static void print_setting(const struct view *view, int id)
{
	uint64_t own = view->hello.own.value[id], now = view->hello.now.value[id];

	if (!knob_has(&view->hello.now, id)) {
		dprintf(view->fd, "  %-29s %5s  not there\n", knob_infos[id].name, "-");
		return;
	}
	dprintf(view->fd, "  %-29s %5llu", knob_infos[id].name, (unsigned long long)now);
	if (now != own)
		dprintf(view->fd, "  for the host; the guest's own is %llu",
			(unsigned long long)own);
	else if (view->knobs.keep >> id & 1)
		dprintf(view->fd, "  kept by the configuration");
	dprintf(view->fd, "\n");
}

static void print_table(const struct view *view)
{
	dprintf(view->fd, "Kernel %s, up %llu s, pages of %llu bytes\n\n", view->hello.release,
		(unsigned long long)(uptime_us() / 1000000),
		(unsigned long long)view->hello.page_size);
	for (int i = 0; i < STAT_MAX_ID; i++)
		print_stat(view, i);
	dprintf(view->fd, "\nSettings\n");
	for (int i = 0; i < KNOB_MAX_ID; i++)
		print_setting(view, i);
	dprintf(view->fd, "\nAbilities\n");
	for (size_t i = 0; i < N_CAPABILITIES; i++)
		dprintf(view->fd, "  %-45s %s\n", capabilities[i].text,
			view->hello.capabilities & capabilities[i].bit ? "yes" : "no");
	dprintf(view->fd, "  %-45s %s\n", "port to the host",
		*view->port ? view->port
			    : "none: the host has given this guest no " WIRE_PORT_NAME);
}

/* The text has no control characters; quotes and backslashes are escaped. */
static void print_string(int fd, const char *s)
{
	dprintf(fd, "\"");
	for (; *s; s++)
		dprintf(fd, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
	dprintf(fd, "\"");
}

static void print_number(int fd, const char *name, bool has, uint64_t value, bool last)
{
	dprintf(fd, has ? "    \"%s\": %llu" : "    \"%s\": null", name, (unsigned long long)value);
	dprintf(fd, last ? "\n" : ",\n");
}

static void print_json_stats(const struct view *view)
{
	bool first = true;

	dprintf(view->fd, "  \"stats\": {\n");
	for (int i = 0; i < STAT_MAX_ID; i++)
		print_number(view->fd, stat_infos[i].name, stat_has(&view->numbers.stats, i),
			     view->numbers.stats.value[i], i == STAT_MAX_ID - 1);
	dprintf(view->fd, "  },\n  \"approximate\": [");
	for (int i = 0; i < STAT_MAX_ID; i++) {
		if (!(view->numbers.approximate >> i & 1))
			continue;
		dprintf(view->fd, "%s\"%s\"", first ? "" : ", ", stat_infos[i].name);
		first = false;
	}
	dprintf(view->fd, "],\n");
}

static void print_json_settings(int fd, const char *name, const struct profile *profile)
{
	dprintf(fd, "  \"%s\": {\n", name);
	for (int i = 0; i < KNOB_MAX_ID; i++)
		print_number(fd, knob_infos[i].name, knob_has(profile, i), profile->value[i],
			     i == KNOB_MAX_ID - 1);
	dprintf(fd, "  },\n");
}

static void print_json(const struct view *view)
{
	dprintf(view->fd, "{\n  \"agent\": ");
	print_string(view->fd, view->hello.agent);
	dprintf(view->fd, ",\n  \"kernel\": ");
	print_string(view->fd, view->hello.release);
	dprintf(view->fd, ",\n  \"boot_id\": \"%016llx%016llx\",\n",
		(unsigned long long)view->hello.boot_id_hi,
		(unsigned long long)view->hello.boot_id_lo);
	dprintf(view->fd, "  \"uptime_us\": %llu,\n  \"page_size\": %llu,\n  \"cpu_us\": %llu,\n",
		(unsigned long long)uptime_us(), (unsigned long long)view->hello.page_size,
		(unsigned long long)cpu_us());
	print_json_stats(view);
	print_json_settings(view->fd, "settings", &view->hello.now);
	print_json_settings(view->fd, "own_settings", &view->hello.own);
	dprintf(view->fd, "  \"abilities\": {\n");
	for (size_t i = 0; i < N_CAPABILITIES; i++)
		dprintf(view->fd, "    \"%s\": %s%s\n", capabilities[i].name,
			view->hello.capabilities & capabilities[i].bit ? "true" : "false",
			i == N_CAPABILITIES - 1 ? "" : ",");
	dprintf(view->fd, "  },\n  \"port\": ");
	if (*view->port)
		print_string(view->fd, view->port);
	else
		dprintf(view->fd, "null");
	dprintf(view->fd, "\n}\n");
}

static void look(struct view *view, const char *root, const struct agent_config *config)
{
	while (sampler_step(&view->sampler, clock_us()))
		;
	sampler_read(&view->sampler, &view->numbers);
	(void)knobs_load(&view->knobs, root, config->keep);
	(void)trigger_arm(&view->trigger, root);
	facts_collect(root, config->allow, &view->numbers, &view->knobs, &view->trigger,
		      &view->hello);
	trigger_close(&view->trigger);
	if (*config->port)
		(void)snprintf(view->port, sizeof(view->port), "%s", config->port);
	else if (port_find(root, view->port) < 0)
		view->port[0] = '\0';
}

int once_print(const char *root, const struct agent_config *config, bool json, int fd,
	       char *ret_error, size_t error_size)
{
	static struct view view; /* too large for a stack that is to stay small */
	int r;

	view.fd = fd;
	r = sampler_open(&view.sampler, root);
	if (r < 0) {
		(void)snprintf(ret_error, error_size, "%s/proc/meminfo: %s: is /proc mounted?",
			       root, strerror(-r));
		return r;
	}
	look(&view, root, config);
	if (json)
		print_json(&view);
	else
		print_table(&view);
	sampler_close(&view.sampler);
	return 0;
}
