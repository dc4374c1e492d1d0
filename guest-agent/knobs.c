// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest-agent/knobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest-agent/proto/wire.h"
#include "guest-agent/util.h"

#define STATE_MAX 1024

static void forget(struct knobs *knobs, enum knob_id id)
{
	knobs->own.present &= ~(UINT32_C(1) << id);
	knobs->set.present &= ~(UINT32_C(1) << id);
}

/* One line a setting: name, own value, value set. */
static int format_state(const struct knobs *knobs, char *buf, size_t size)
{
	size_t len = 0;

	*buf = '\0';
	for (int i = 0; i < KNOB_MAX_ID; i++) {
		int n;

		if (!knob_has(&knobs->set, i))
			continue;
		n = snprintf(buf + len, size - len, "%s %llu %llu\n", knob_infos[i].name,
			     (unsigned long long)knobs->own.value[i],
			     (unsigned long long)knobs->set.value[i]);
		if (n < 0 || (size_t)n >= size - len)
			return -ENOSPC;
		len += (size_t)n;
	}
	return 0;
}

/* Written aside and renamed, so that a crash leaves the old file or the new one. */
static int write_state(const char *root, const char *text)
{
	char path[AGENT_PATH_MAX], aside[AGENT_PATH_MAX];
	int fd, r;

	r = root_path(root, KNOBS_STATE_DIR, path);
	if (r < 0)
		return r;
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	r = root_path(root, KNOBS_STATE_FILE, path);
	if (r == 0)
		r = root_path(root, KNOBS_STATE_FILE ".new", aside);
	if (r < 0)
		return r;
	fd = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		r = errno ? -errno : -EIO;
	if (close(fd) < 0 && r == 0)
		r = -errno;
	if (r == 0 && rename(aside, path) < 0)
		r = -errno;
	return r;
}

static int save(const struct knobs *knobs)
{
	char text[STATE_MAX], path[AGENT_PATH_MAX];
	int r;

	if (!knobs_changed(knobs)) {
		r = root_path(knobs->root, KNOBS_STATE_FILE, path);
		if (r == 0 && unlink(path) < 0 && errno != ENOENT)
			r = -errno;
		return r;
	}
	r = format_state(knobs, text, sizeof(text));
	return r < 0 ? r : write_state(knobs->root, text);
}

static void load_line(struct knobs *knobs, const char *line, const char *end)
{
	size_t len = strcspn(line, " \n");
	const char *s = line + len;
	uint64_t own, set;
	char name[32];
	int id;

	if (len >= sizeof(name))
		return;
	memcpy(name, line, len);
	name[len] = '\0';
	id = knob_by_name(name);
	if (id < 0 || *s++ != ' ' || !take_number(&s, &own) || *s++ != ' ' ||
	    !take_number(&s, &set) || s != end)
		return;
	knob_put(&knobs->own, id, own);
	knob_put(&knobs->set, id, set);
}

bool knobs_load(struct knobs *knobs, const char *root)
{
	char text[STATE_MAX];
	const char *s = text;

	*knobs = (struct knobs){ .root = root };
	if (read_file(root, KNOBS_STATE_FILE, text, sizeof(text)) < 0)
		return false;
	for (const char *end; (end = strchr(s, '\n')); s = end + 1)
		load_line(knobs, s, end);
	return knobs_changed(knobs);
}

void knobs_own(const struct knobs *knobs, struct profile *ret)
{
	*ret = (struct profile){ 0 };
	for (int i = 0; i < KNOB_MAX_ID; i++) {
		uint64_t value;

		if (knob_has(&knobs->own, i))
			knob_put(ret, i, knobs->own.value[i]);
		else if (read_number(knobs->root, knob_infos[i].path, &value) == 0)
			knob_put(ret, i, value);
	}
}

uint64_t knobs_writable(const struct knobs *knobs)
{
	uint64_t bits = 0;

	for (int i = 0; i < KNOB_MAX_ID; i++) {
		int fd = root_open(knobs->root, knob_infos[i].path, O_WRONLY);

		if (fd < 0)
			continue;
		(void)close(fd);
		bits |= wire_knob_bit(i);
	}
	return bits;
}

static int write_knob(const struct knobs *knobs, enum knob_id id, uint64_t value)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%llu\n", (unsigned long long)value);
	return write_file(knobs->root, knob_infos[id].path, text);
}

static int set_one(struct knobs *knobs, enum knob_id id, uint64_t value)
{
	struct knobs before = *knobs;
	uint64_t now;
	int r;

	r = read_number(knobs->root, knob_infos[id].path, &now);
	if (r < 0)
		return r;
	if (knob_has(&knobs->set, id) && knobs->set.value[id] == value && now == value)
		return 0;
	/* Somebody else's change since ours is the guest's own value from now on. */
	if (!knob_has(&knobs->own, id) || now != knobs->set.value[id])
		knob_put(&knobs->own, id, now);
	knob_put(&knobs->set, id, value);
	/* First the note of it, then the change: a crash in between only restores too much. */
	r = save(knobs);
	if (r == 0)
		r = write_knob(knobs, id, value);
	if (r < 0) {
		*knobs = before;
		(void)save(knobs);
		return r;
	}
	/* The kernel may have rounded it; what it is now is what is ours. */
	if (read_number(knobs->root, knob_infos[id].path, &now) == 0 && now != value) {
		knob_put(&knobs->set, id, now);
		r = save(knobs);
	}
	return r;
}

static int restore_one(struct knobs *knobs, enum knob_id id)
{
	uint64_t now;
	int r;

	if (!knob_has(&knobs->set, id))
		return 0;
	r = read_number(knobs->root, knob_infos[id].path, &now);
	if (r == 0 && now == knobs->set.value[id])
		r = write_knob(knobs, id, knobs->own.value[id]);
	forget(knobs, id);
	return r;
}

int knobs_apply(struct knobs *knobs, const struct profile *profile, uint64_t *ret_done)
{
	uint64_t done = 0;
	int r, first = 0;

	for (int i = 0; i < KNOB_MAX_ID; i++) {
		if (knob_has(profile, i))
			r = set_one(knobs, i, profile->value[i]);
		else
			r = restore_one(knobs, i);
		if (r == 0 && knob_has(profile, i))
			done |= wire_knob_bit(i);
		if (r < 0 && first == 0)
			first = r;
	}
	r = save(knobs);
	*ret_done = done;
	return first < 0 ? first : r;
}

int knobs_restore(struct knobs *knobs)
{
	static const struct profile nothing;
	uint64_t done;

	return knobs_apply(knobs, &nothing, &done);
}
