// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The agent's parsers on any text: the files of /proc, its configuration, its note of the guest's own
 * values. The first byte chooses the parser.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest-agent/config.h"
#include "guest-agent/knobs.h"
#include "guest-agent/procfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(uint8_t which, const char *text)
{
	struct agent_config config = AGENT_CONFIG_DEFAULT;
	struct process_status status;
	struct numbers numbers = { 0 };
	struct knobs knobs = { 0 };
	char buf[64];

	switch (which % 7) {
	case 0:
		procfs_meminfo(text, &numbers);
		procfs_approximate(&numbers);
		break;
	case 1:
		procfs_vmstat(text, 4096, &numbers);
		break;
	case 2:
		procfs_psi(text, which & 8 ? "io" : "memory", &numbers);
		break;
	case 3:
		(void)procfs_status(text, &status);
		break;
	case 4:
		if (procfs_cgroup2(text, buf, sizeof(buf)) == 0 && strlen(buf) >= sizeof(buf))
			abort();
		break;
	case 5:
		knobs_parse(&knobs, text);
		if (knobs.own.present != knobs.set.present ||
		    knobs.was.present & ~knobs.set.present)
			abort();
		break;
	default:
		if (agent_config_parse(text, "f", &config, buf, sizeof(buf)) < 0 && !*buf)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size == 0)
		return 0;
	text = malloc(size);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	parse(*data, text);
	free(text);
	return 0;
}
