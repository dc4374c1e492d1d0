// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/app/targets.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/cleanup.h"
#include "daemon/util/fs.h"
#include "daemon/util/uuid.h"

#define HEADER "ballast-targets 1"

static int parse_line(const char *line, struct target_entry *ret)
{
	char text[UUID_TEXT_SIZE];
	uint64_t target;
	int end = 0;

	if (sscanf(line, "%36s %" SCNu64 "%n", text, &target, &end) != 2 || line[end] != '\n')
		return -EBADMSG;
	if (uuid_parse(text, ret->uuid) < 0)
		return -EBADMSG;
	ret->target = target;
	return 0;
}

static int add_entry(struct target_entry **entries, size_t *n, const struct target_entry *entry)
{
	struct target_entry *more;

	/* A power of two is full: make the next one. */
	if ((*n & (*n - 1)) == 0) {
		more = reallocarray(*entries, *n ? *n * 2 : 1, sizeof(*more));
		if (!more)
			return -ENOMEM;
		*entries = more;
	}
	(*entries)[(*n)++] = *entry;
	return 0;
}

int targets_load(const char *path, struct target_entry **ret_entries, size_t *ret_n)
{
	_cleanup_free_ struct target_entry *entries = NULL;
	_cleanup_fclose_ FILE *file = NULL;
	struct target_entry entry;
	char line[128];
	size_t n = 0;
	int r;

	*ret_entries = NULL;
	*ret_n = 0;
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT ? 0 : -errno;
	if (!fgets(line, sizeof(line), file) || strcmp(line, HEADER "\n") != 0)
		return -EBADMSG;
	while (fgets(line, sizeof(line), file)) {
		r = parse_line(line, &entry);
		if (r < 0)
			return r;
		r = add_entry(&entries, &n, &entry);
		if (r < 0)
			return r;
	}
	if (ferror(file))
		return -EIO;
	*ret_entries = TAKE_PTR(entries);
	*ret_n = n;
	return 0;
}

static int write_entries(FILE *file, const struct target_entry *entries, size_t n)
{
	char text[UUID_TEXT_SIZE];

	if (fputs(HEADER "\n", file) < 0)
		return -EIO;
	for (size_t i = 0; i < n; i++) {
		uuid_format(entries[i].uuid, text);
		if (fprintf(file, "%s %" PRIu64 "\n", text, entries[i].target) < 0)
			return -EIO;
	}
	return 0;
}

int targets_store(const char *path, const struct target_entry *entries, size_t n)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *stream;
	int r;

	stream = open_memstream(&text, &size);
	if (!stream)
		return -ENOMEM;
	r = write_entries(stream, entries, n);
	if (fclose(stream) != 0 && r == 0)
		r = -ENOMEM;
	return r < 0 ? r : fs_write_atomic(path, text, size);
}

uint64_t targets_find(const struct target_entry *entries, size_t n, const uint8_t uuid[16])
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(entries[i].uuid, uuid, sizeof(entries[i].uuid)) == 0)
			return entries[i].target;
	return 0;
}
