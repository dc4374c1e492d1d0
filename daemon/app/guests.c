// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/app/guests.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int guests_init(struct guests *guests, size_t capacity)
{
	*guests = (struct guests){ .capacity = capacity, .n_free = capacity };
	guests->snapshots = calloc(capacity, sizeof(*guests->snapshots));
	guests->by_index = calloc(capacity, sizeof(struct guest *));
	guests->by_slot = calloc(capacity, sizeof(struct guest *));
	guests->free_slots = calloc(capacity, sizeof(*guests->free_slots));
	if (!guests->snapshots || !guests->by_index || !guests->by_slot || !guests->free_slots) {
		guests_done(guests);
		return -ENOMEM;
	}
	/* The lowest slot on top, so that few pages of the policy's state are ever touched. */
	for (size_t i = 0; i < capacity; i++)
		guests->free_slots[i] = (uint32_t)(capacity - 1 - i);
	return 0;
}

void guests_done(struct guests *guests)
{
	free(guests->snapshots);
	free(guests->by_index);
	free(guests->by_slot);
	free(guests->free_slots);
	*guests = (struct guests){ 0 };
}

int guests_add(struct guests *guests, const uint8_t uuid[16], const char *name, struct guest **ret)
{
	struct guest_snapshot *snap;
	struct guest *guest;

	if (guests->n_free == 0)
		return -ENOSPC;
	guest = calloc(1, sizeof(*guest));
	if (!guest)
		return -ENOMEM;
	memcpy(guest->uuid, uuid, sizeof(guest->uuid));
	guest->slot = guests->free_slots[--guests->n_free];
	guest->index = guests->n++;
	guests->by_index[guest->index] = guest;
	guests->by_slot[guest->slot] = guest;
	snap = guest_snap(guests, guest);
	*snap = (struct guest_snapshot){ .slot = guest->slot, .rule = -1 };
	memcpy(snap->uuid, uuid, sizeof(snap->uuid));
	(void)snprintf(snap->name, sizeof(snap->name), "%s", name);
	HASH_ADD(hh, guests->by_uuid, uuid, sizeof(guest->uuid), guest);
	*ret = guest;
	return 0;
}

void guests_remove(struct guests *guests, struct guest *guest)
{
	size_t last = --guests->n;

	HASH_DEL(guests->by_uuid, guest);
	if (guest->index != last) {
		guests->snapshots[guest->index] = guests->snapshots[last];
		guests->by_index[guest->index] = guests->by_index[last];
		guests->by_index[guest->index]->index = guest->index;
	}
	guests->by_index[last] = NULL;
	guests->by_slot[guest->slot] = NULL;
	guests->free_slots[guests->n_free++] = guest->slot;
	free(guest);
}

struct guest *guests_find(struct guests *guests, const uint8_t uuid[16])
{
	struct guest *guest;

	HASH_FIND(hh, guests->by_uuid, uuid, sizeof(guest->uuid), guest);
	return guest;
}

struct guest *guests_in_slot(const struct guests *guests, uint32_t slot)
{
	return slot < guests->capacity ? guests->by_slot[slot] : NULL;
}

struct guest_snapshot *guest_snap(struct guests *guests, const struct guest *guest)
{
	return &guests->snapshots[guest->index];
}
