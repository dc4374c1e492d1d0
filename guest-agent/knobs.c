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

_Static_assert(KNOB_MAX_ID * 96 < STATE_MAX, "the notes of all settings fit");

static void forget(struct knobs *knobs, enum knob_id id)
{
	knob_drop(&knobs->own, id);
	knob_drop(&knobs->set, id);
	knob_drop(&knobs->was, id);
}

/* " NUMBER" at the end of a line under way, or nothing where it is absent. */
static int append_value(char *buf, size_t size, const struct profile *profile, enum knob_id id)
{
	if (!knob_has(profile, id))
		return 0;
	return snprintf(buf, size, " %llu", (unsigned long long)profile->value[id]);
}

/* One line a setting: name, own value, value set, and while a change is under way the one before. */
static int format_line(const struct knobs *knobs, enum knob_id id, char *buf, size_t size)
{
	const struct profile *values[] = { &knobs->own, &knobs->set, &knobs->was };
	size_t len = (size_t)snprintf(buf, size, "%s", knob_infos[id].name);

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]) && len < size; i++)
		len += (size_t)append_value(buf + len, size - len, values[i], id);
	if (len < size)
		len += (size_t)snprintf(buf + len, size - len, "\n");
	return len < size ? (int)len : -ENOSPC;
}

static int format_state(const struct knobs *knobs, char *buf, size_t size)
{
	size_t len = 0;

	*buf = '\0';
	for (int i = 0; i < KNOB_MAX_ID; i++) {
		int n;

		if (!knob_has(&knobs->set, i))
			continue;
		n = format_line(knobs, i, buf + len, size - len);
		if (n < 0)
			return n;
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
	/* Whatever the umask: who looks with --once may know what is the guest's own. */
	if (r == 0 && fchmod(fd, 0644) < 0)
		r = -errno;
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

/* " NUMBER" */
static bool take_value(const char **s, uint64_t *ret_value)
{
	const char *number = *s + 1;

	if (**s != ' ' || !take_number(&number, ret_value))
		return false;
	*s = number;
	return true;
}

static void load_line(struct knobs *knobs, const char *line, const char *end)
{
	size_t len = strcspn(line, " \n");
	const char *s = line + len;
	uint64_t own, set, was;
	bool changing;
	char name[32];
	int id;

	if (len >= sizeof(name))
		return;
	memcpy(name, line, len);
	name[len] = '\0';
	id = knob_by_name(name);
	if (id < 0 || !take_value(&s, &own) || !take_value(&s, &set))
		return;
	changing = take_value(&s, &was);
	if (s != end)
		return;
	knob_put(&knobs->own, id, own);
	knob_put(&knobs->set, id, set);
	if (changing)
		knob_put(&knobs->was, id, was);
}

void knobs_parse(struct knobs *knobs, const char *text)
{
	for (const char *end; (end = strchr(text, '\n')); text = end + 1)
		load_line(knobs, text, end);
}

bool knobs_load(struct knobs *knobs, const char *root, uint32_t keep)
{
	char text[STATE_MAX];

	*knobs = (struct knobs){ .root = root, .keep = keep };
	if (read_file(root, KNOBS_STATE_FILE, text, sizeof(text)) < 0)
		return false;
	knobs_parse(knobs, text);
	return knobs_changed(knobs);
}

/* Whether a value that is in force is one that we have set. */
static bool is_ours(const struct knobs *knobs, enum knob_id id, uint64_t now)
{
	return (knob_has(&knobs->set, id) && now == knobs->set.value[id]) ||
	       (knob_has(&knobs->was, id) && now == knobs->was.value[id]);
}

void knobs_values(const struct knobs *knobs, struct profile *ret_own, struct profile *ret_now)
{
	*ret_own = (struct profile){ 0 };
	*ret_now = (struct profile){ 0 };
	for (int i = 0; i < KNOB_MAX_ID; i++) {
		uint64_t now;

		if (read_number(knobs->root, knob_infos[i].path, &now) < 0)
			continue;
		knob_put(ret_now, i, now);
		/* What is neither its own value nor ours somebody else has set, and so it is its own. */
		knob_put(ret_own, i, is_ours(knobs, i, now) ? knobs->own.value[i] : now);
	}
}

uint64_t knobs_writable(const struct knobs *knobs)
{
	uint64_t bits = 0;

	for (int i = 0; i < KNOB_MAX_ID; i++) {
		uint64_t now;
		int fd;

		/* Without its device the order of reporting reads -1, and can't be set. */
		if (knobs->keep >> i & 1 || read_number(knobs->root, knob_infos[i].path, &now) < 0)
			continue;
		fd = root_open(knobs->root, knob_infos[i].path, O_WRONLY);
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

/*
 * First the note of it, with what was in force before, then the change: whenever we die in between,
 * what is found in force is told as ours.
 */
static int note_and_write(struct knobs *knobs, enum knob_id id, uint64_t was, uint64_t value)
{
	int r;

	knob_put(&knobs->was, id, was);
	knob_put(&knobs->set, id, value);
	r = save(knobs);
	return r < 0 ? r : write_knob(knobs, id, value);
}

/* Return: 0, also for a level that the kernel doesn't have and a lower one was set in its place. */
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
	if (!is_ours(knobs, id, now))
		knob_put(&knobs->own, id, now);
	r = note_and_write(knobs, id, now, value);
	while (r == -EINVAL && knob_infos[id].levels && value > knob_infos[id].min)
		r = note_and_write(knobs, id, now, --value);
	if (r < 0) {
		*knobs = before;
		(void)save(knobs);
		return r;
	}
	/* The kernel may have rounded it; what it is now is what is ours. */
	if (read_number(knobs->root, knob_infos[id].path, &now) == 0)
		knob_put(&knobs->set, id, now);
	return 0;
}

static int restore_one(struct knobs *knobs, enum knob_id id)
{
	uint64_t now;
	int r;

	if (!knob_has(&knobs->set, id))
		return 0;
	r = read_number(knobs->root, knob_infos[id].path, &now);
	if (r == 0 && is_ours(knobs, id, now))
		r = write_knob(knobs, id, knobs->own.value[id]);
	/* What could not be restored is still to be: its own value must not be lost. */
	if (r == 0 || r == -ENOENT)
		forget(knobs, id);
	return r;
}

int knobs_apply(struct knobs *knobs, const struct profile *profile, uint64_t *ret_done)
{
	uint64_t done = 0;
	int r, first = 0;

	for (int i = 0; i < KNOB_MAX_ID; i++) {
		bool kept = knobs->keep >> i & 1;

		if (knob_has(profile, i) && !kept)
			r = set_one(knobs, i, profile->value[i]);
		else
			r = restore_one(knobs, i);
		/* The change is made: what was before it is of no use any more. */
		if (r == 0)
			knob_drop(&knobs->was, i);
		if (r == 0 && knob_has(profile, i) && kept)
			r = -EPERM;
		if (r == 0 && knob_has(profile, i) && knobs->set.value[i] == profile->value[i])
			done |= wire_knob_bit(i);
		/* That there is no room is what has to be known: it may pass, the others don't. */
		if (r < 0 && (first == 0 || r == -ENOSPC))
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

int knobs_restore_kept(struct knobs *knobs)
{
	int r, first = 0;

	for (int i = 0; i < KNOB_MAX_ID; i++) {
		if (!(knobs->keep >> i & 1))
			continue;
		r = restore_one(knobs, i);
		if (r < 0 && first == 0)
			first = r;
	}
	r = save(knobs);
	return first < 0 ? first : r;
}
