/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The balloon targets that outlive the daemon: a small text file in the runtime folder, written
 * before a target is acted on, one line "UUID BYTES" a guest. After a restart they are handed to
 * the policy, which reconciles them with what the hypervisor reports. Used in one thread.
 */
#ifndef BALLAST_APP_TARGETS_H
#define BALLAST_APP_TARGETS_H

#include <stddef.h>
#include <stdint.h>

struct target_entry {
	uint8_t uuid[16];
	uint64_t target; /* bytes */
};

/**
 * targets_load() - read the file.
 * @ret_entries: allocated, to be freed by the caller; NULL when there are none.
 *
 * Return: 0 (also where there is no file), -EBADMSG when the file isn't one of ours, or another
 * negative errno.
 */
int targets_load(const char *path, struct target_entry **ret_entries, size_t *ret_n);

/**
 * targets_store() - replace the file by @entries, atomically.
 *
 * Return: 0 or a negative errno; then the old file is still there.
 */
int targets_store(const char *path, const struct target_entry *entries, size_t n);

/**
 * targets_find() - the target of one guest.
 *
 * Return: bytes, 0 when there is none.
 */
uint64_t targets_find(const struct target_entry *entries, size_t n, const uint8_t uuid[16]);

#endif
