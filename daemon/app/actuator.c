// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Carries out what the policy decided, and decides nothing. A target is stored before it is asked
 * for, so that a restart in between knows of it; what came of an action is read back from the
 * statistics and from the agent's answers.
 */
#include <errno.h>
#include <string.h>

#include "daemon/app/manager.h"
#include "daemon/core/profile.h"
#include "daemon/guest/channel.h"
#include "daemon/ipc/journal.h"
#include "daemon/util/cleanup.h"
#include "daemon/util/log.h"
#include "daemon/util/time.h"

#define PROFILE_LIFETIME_US (5 * USEC_PER_SEC)
#define SAMPLE_LIFETIME_US  USEC_PER_SEC
#define SHED_SWAPPINESS	    60

bool actuator_may_act(const struct manager *m, const struct guest_snapshot *snap)
{
	return m->settings->host.mode == MODE_ACT && !m->current.frozen &&
	       snap->settings.manage == MANAGE_ACT;
}

static uint64_t digest_of(const struct target_entry *entries, size_t n)
{
	uint64_t digest = n, id;

	for (size_t i = 0; i < n; i++) {
		memcpy(&id, entries[i].uuid, sizeof(id));
		digest = digest * UINT64_C(0x9e3779b97f4a7c15) + (entries[i].target ^ id);
	}
	return digest;
}

static void store_targets(struct manager *m, const struct target_entry *entries, size_t n)
{
	uint64_t digest = digest_of(entries, n);
	int r;

	if (digest == m->targets_stored)
		return;
	r = targets_store(m->targets_path, entries, n);
	if (r == 0)
		m->targets_stored = digest;
	else if (!m->targets_failing)
		log_error("%s: can't store the targets: %s; after a restart what the hypervisor "
			  "reports is taken instead",
			  m->targets_path, strerror(-r));
	m->targets_failing = r < 0;
}

void actuator_store_targets(struct manager *m)
{
	_cleanup_free_ struct target_entry *entries = NULL;
	size_t n = 0;

	/* As long as not all guests are known, the file knows more than we do. */
	if (!m->current.hypervisor_ready)
		return;
	entries = reallocarray(NULL, m->guests.n + 1, sizeof(*entries));
	if (!entries)
		return;
	for (size_t i = 0; i < m->guests.n; i++) {
		const struct guest *guest = m->guests.by_index[i];
		uint64_t target = policy_target(m->policy, guest->slot);

		if (target == 0 || guest->releasing)
			continue;
		memcpy(entries[n].uuid, guest->uuid, sizeof(entries[n].uuid));
		entries[n++].target = target;
	}
	store_targets(m, entries, n);
}

static void note_request(struct guest_snapshot *snap, uint64_t target, uint64_t now)
{
	snap->request = (struct request_part){ .at_us = now, .target = target };
}

static void send_balloon(struct manager *m, struct guest *guest, uint64_t target)
{
	struct guest_snapshot *snap = guest_snap(&m->guests, guest);
	int r;

	note_request(snap, target, now_us());
	if (guest->request_in_call) {
		guest->request_next = target;
		return;
	}
	r = hyp_request_balloon(m->hyp, guest->uuid, target);
	if (r == 0) {
		guest->request_in_call = true;
		return;
	}
	snap->request.done_us = now_us();
	snap->request.status = r;
	log_warning("%s: balloon: %s", snap->name, strerror(-r));
}

void actuator_call_done(struct manager *m, struct guest *guest, const struct hyp_call *call,
			const char *text)
{
	struct guest_snapshot *snap = guest_snap(&m->guests, guest);
	uint64_t next = guest->request_next;

	guest->request_in_call = false;
	guest->request_next = 0;
	if (call->target == snap->request.target) {
		snap->request.done_us = now_us();
		snap->request.status = call->status;
	}
	if (call->status < 0)
		log_warning("%s: balloon: %s", snap->name,
			    text[0] ? text : strerror(-call->status));
	if (next && next != call->target)
		send_balloon(m, guest, next);
	if (!guest->request_in_call)
		actuator_released(m, guest);
}

void actuator_released(struct manager *m, struct guest *guest)
{
	if (!guest->releasing)
		return;
	guest->releasing = false;
	if (--m->releases_pending == 0)
		(void)sd_event_exit(m->event, 0);
}

static void send_shed(struct guest *guest, const struct guest_snapshot *snap,
		      const struct decision *decision)
{
	struct wire_shed shed = {
		.bytes = decision->bytes,
		.swappiness = decision->shed_flags & SHED_ANON ? SHED_SWAPPINESS : 0,
		.flags = (decision->shed_flags & SHED_FILE ? WIRE_SHED_FILE : 0) |
			 (decision->shed_flags & SHED_ANON ? WIRE_SHED_ANON : 0),
	};
	int r;

	r = guest->channel ? channel_send_shed(guest->channel, &shed, decision->lifetime_us,
					       &guest->shed_sequence)
			   : -ENOTCONN;
	if (r < 0)
		log_debug("%s: shed not sent: %s", snap->name, strerror(-r));
}

static void send_profile(struct manager *m, struct guest *guest, struct guest_snapshot *snap,
			 enum level level)
{
	struct profile profile;
	int r;

	profile_for(m->settings, &m->current.host, snap, level, &profile);
	/* What the guest had isn't what is asked for now: it has that when it answers. */
	snap->agent.profile_set = false;
	r = guest->channel ? channel_send_profile(guest->channel, &profile, PROFILE_LIFETIME_US,
						  &guest->profile_sequence)
			   : -ENOTCONN;
	if (r < 0) {
		log_debug("%s: profile not sent: %s", snap->name, strerror(-r));
		return;
	}
	guest->profile_level = level;
	guest->profile_sent = profile;
}

static void record(struct manager *m, const struct guest_snapshot *snap,
		   const struct decision *decision, bool acts)
{
	const struct history_entry *entry;
	int r;

	r = history_add(m->history, snap, decision, acts, &entry);
	if (r < 0) {
		log_warning("%s: decision not remembered: %s", snap->name, strerror(-r));
		return;
	}
	journal_decision(snap, entry);
	if (m->bus)
		bus_emit_decision(m->bus, snap, entry);
}

static void act(struct manager *m, struct guest *guest, struct guest_snapshot *snap,
		const struct decision *decision)
{
	switch (decision->action) {
	case ACTION_BALLOON:
		send_balloon(m, guest, decision->new_target);
		break;
	case ACTION_SHED:
		send_shed(guest, snap, decision);
		break;
	case ACTION_PROFILE:
		send_profile(m, guest, snap, decision->level);
		break;
	case ACTION_SAMPLE:
		if (guest->channel)
			(void)channel_send_sample_now(guest->channel, SAMPLE_LIFETIME_US, NULL);
		break;
	case ACTION_NONE:
	case ACTION_MAX_ID:
		break;
	}
}

void actuator_carry_out(struct manager *m, const struct decision *decision)
{
	struct guest *guest = guests_in_slot(&m->guests, decision->slot);
	struct guest_snapshot *snap;

	if (!guest)
		return;
	snap = guest_snap(&m->guests, guest);
	if (!actuator_may_act(m, snap)) {
		actuator_note(m, decision);
		return;
	}
	/* Asking for a sample changes nothing, and would drown what does. */
	if (decision->action != ACTION_SAMPLE)
		record(m, snap, decision, true);
	act(m, guest, snap, decision);
}

void actuator_note(struct manager *m, const struct decision *decision)
{
	struct guest *guest = guests_in_slot(&m->guests, decision->slot);

	if (guest && decision->action != ACTION_SAMPLE)
		record(m, guest_snap(&m->guests, guest), decision, false);
}

static void release_guest(struct manager *m, struct guest *guest)
{
	struct guest_snapshot *snap = guest_snap(&m->guests, guest);
	struct decision decision = {
		.at_us = now_us(),
		.slot = guest->slot,
		.action = ACTION_BALLOON,
		.reason = REASON_LEAVING,
		.operand = { snap->balloon.actual, guest_max(snap) },
		.old_target = snap->balloon.actual,
		.new_target = guest_max(snap),
	};

	record(m, snap, &decision, true);
	send_balloon(m, guest, decision.new_target);
	if (!guest->request_in_call)
		return;
	guest->releasing = true;
	m->releases_pending++;
}

static void give_settings_back(struct guest *guest)
{
	static const struct profile nothing;

	if (guest->channel)
		(void)channel_send_profile(guest->channel, &nothing, PROFILE_LIFETIME_US, NULL);
}

void actuator_settings(struct manager *m, struct guest *guest)
{
	struct guest_snapshot *snap = guest_snap(&m->guests, guest);
	bool before = guest->acted_on;

	guest->acted_on = m->settings->host.mode == MODE_ACT && snap->settings.manage == MANAGE_ACT;
	if (guest->channel)
		channel_lease(guest->channel, guest->acted_on);
	if (!before || guest->acted_on)
		return;
	/* If it doesn't get there, the lease that isn't renewed any more does the same. */
	give_settings_back(guest);
	snap->agent.profile_set = false;
	guest->profile_sequence = 0; /* nor does an answer under way say so */
}

void actuator_leave(struct manager *m)
{
	for (size_t i = 0; i < m->guests.n; i++) {
		struct guest *guest = m->guests.by_index[i];
		struct guest_snapshot *snap = guest_snap(&m->guests, guest);

		if (!actuator_may_act(m, snap))
			continue;
		give_settings_back(guest);
		if (snap->settings.on_stop == LEAVE_RELEASE && snap->balloon.at_us &&
		    snap->balloon.actual < guest_max(snap))
			release_guest(m, guest);
	}
}
