/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guests that the daemon knows: each has a slot that stays its own while it is known, and its
 * part of the snapshot, kept dense so that the policy sees an array. Owned by the manager, used in
 * the event loop's thread.
 */
#ifndef BALLAST_APP_GUESTS_H
#define BALLAST_APP_GUESTS_H

#include <uthash.h>

#include "daemon/core/snapshot.h"

struct channel;
struct host_guest;
struct manager;

struct guest {
	uint8_t uuid[16];
	uint32_t slot;
	size_t index; /* in guests.snapshots */
	struct manager *manager;
	struct channel *channel; /* NULL: the domain has none */
	char channel_path[SETTINGS_PATH_MAX];
	char metadata[SETTINGS_NAME_MAX];
	bool request_in_call; /* a balloon request is with the hypervisor */
	bool releasing; /* ... or waits, that gives its memory back as the daemon stops */
	uint64_t request_next; /* a target that waits for that call, 0: none */
	uint32_t shed_sequence, profile_sequence; /* of those that were sent last */
	enum level profile_level; /* of the profile that was sent last */
	struct profile profile_sent;
	struct host_guest *cost; /* reads its footprint; NULL: its QEMU isn't known */
	bool acted_on; /* as the settings say, frozen or not: what is set in the guest is ours */
	bool profile_warned; /* that the agent can't set its profile, which was said */
	bool suspect; /* the hypervisor doesn't answer for it */
	enum guest_phase phase; /* as the hypervisor says */
	UT_hash_handle hh;
};

struct guests {
	struct guest *by_uuid; /* uthash */
	struct guest_snapshot *snapshots; /* dense, n of them */
	struct guest **by_index;
	struct guest **by_slot; /* NULL: the slot is free */
	size_t n, capacity;
	uint32_t *free_slots; /* stack */
	size_t n_free;
};

/**
 * guests_init() - make a table for up to @capacity guests.
 *
 * Return: 0 or -ENOMEM.
 */
int guests_init(struct guests *guests, size_t capacity);

/** guests_done() - release the table; every guest must have been removed. */
void guests_done(struct guests *guests);

/**
 * guests_add() - know a guest from now on.
 * @ret: the guest, with its slot and a snapshot that has only name, uuid and slot.
 *
 * Return: 0, -ENOMEM, or -ENOSPC when the table is full.
 */
int guests_add(struct guests *guests, const uint8_t uuid[16], const char *name, struct guest **ret);

/** guests_remove() - forget and free a guest; its channel must be closed already. */
void guests_remove(struct guests *guests, struct guest *guest);

/** guests_find(), guests_in_slot() - a guest that is known, or NULL. */
struct guest *guests_find(struct guests *guests, const uint8_t uuid[16]);
struct guest *guests_in_slot(const struct guests *guests, uint32_t slot);

/** guest_snap() - the guest's part of the snapshot; valid until a guest is added or removed. */
struct guest_snapshot *guest_snap(struct guests *guests, const struct guest *guest);

#endif
