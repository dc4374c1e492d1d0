// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/hyp/pid.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "daemon/util/cleanup.h"
#include "daemon/util/fs.h"
#include "daemon/util/parse.h"
#include "daemon/util/uuid.h"

#define CMDLINE_MAX 32768

DEFINE_CLEANUP(DIR *, closedir);

/* The arguments are NUL-separated: no pattern, no guess at quoting. */
static bool has_uuid(const char *args, size_t size, const char *uuid)
{
	const char *end = args + size;
	bool expected = false;

	for (const char *arg = args; arg < end; arg += strlen(arg) + 1) {
		if (expected && strcasecmp(arg, uuid) == 0)
			return true;
		expected = strcmp(arg, "-uuid") == 0;
	}
	return false;
}

static bool is_qemu_of(const char *proc_dir, const char *pid, const char *uuid)
{
	char path[PATH_MAX], args[CMDLINE_MAX];
	ssize_t n;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s/cmdline", proc_dir, pid) >= sizeof(path))
		return false;
	n = fs_read(path, args, sizeof(args));
	return n > 0 && has_uuid(args, (size_t)n, uuid);
}

/* A PID in decimal, alone, with at most a newline behind it. */
static int to_pid(const char *text)
{
	uint64_t pid;

	if (!parse_u64(&text, &pid) || pid == 0 || pid > INT_MAX)
		return 0;
	return *text == '\0' || *text == '\n' ? (int)pid : 0;
}

static int from_file(const char *proc_dir, const char *run_dir, const char *name, const char *uuid)
{
	char path[PATH_MAX], text[32];
	int pid;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s.pid", run_dir, name) >= sizeof(path))
		return 0;
	if (fs_read(path, text, sizeof(text)) <= 0)
		return 0;
	pid = to_pid(text);
	(void)snprintf(text, sizeof(text), "%d", pid);
	return pid && is_qemu_of(proc_dir, text, uuid) ? pid : 0;
}

static int by_search(const char *proc_dir, const char *uuid)
{
	_cleanup_(closedirp) DIR *dir = opendir(proc_dir);
	const struct dirent *entry;
	int found = 0;

	while (dir && (entry = readdir(dir))) {
		int pid = to_pid(entry->d_name);

		if (!pid || !is_qemu_of(proc_dir, entry->d_name, uuid))
			continue;
		if (found)
			return 0;
		found = pid;
	}
	return found;
}

int qemu_pid_find(const char *proc_dir, const char *run_dir, const char *name,
		  const uint8_t uuid[16])
{
	char text[UUID_TEXT_SIZE];
	int pid;

	uuid_format(uuid, text);
	pid = from_file(proc_dir, run_dir, name, text);
	return pid ? pid : by_search(proc_dir, text);
}
