// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A round: read the host, let the policy decide, carry it out, show it. Rounds come at the
 * configured interval, faster while memory moves, and soon after anything that can't wait.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "daemon/app/manager.h"
#include "daemon/util/log.h"
#include "daemon/util/num.h"
#include "daemon/util/time.h"

/* However much happens, rounds are at least this far apart: guests can't make the daemon busy. */
#define ROUND_GAP_US (20 * USEC_PER_MSEC)
/* ... and take at most a fourth of the time, however many guests there are. */
#define ROUND_SHARE 4
/* While something is wanted or under way. */
#define ROUND_MOVING_US (200 * USEC_PER_MSEC)

#define TO_MIB(bytes)	((bytes) >> 20)

static void observe_history(struct manager *m, uint64_t now)
{
	for (size_t i = 0; i < m->plan.n_verdicts; i++)
		history_observe(m->history, &m->guests.snapshots[i], now,
				m->plan.verdicts[i].dead_time_us);
}

static void log_level_change(struct manager *m)
{
	if (m->plan.level == m->logged_level)
		return;
	log_notice("host is %s: footprint %" PRIu64 " of %" PRIu64 " MiB, need %" PRIu64 " MiB",
		   level_name(m->plan.level), TO_MIB(m->plan.footprint), TO_MIB(m->plan.budget),
		   TO_MIB(m->plan.need));
	m->logged_level = m->plan.level;
}

static void tell_systemd(struct manager *m)
{
	char status[sizeof(m->status)];

	if (!m->current.hypervisor_ready)
		(void)snprintf(status, sizeof(status), "STATUS=waiting for libvirt");
	else
		(void)snprintf(status, sizeof(status),
			       "STATUS=%s, %s: %zu guests, footprint %" PRIu64 " of %" PRIu64
			       " MiB, need %" PRIu64 " MiB",
			       m->settings->host.mode == MODE_OBSERVE ? "observing" : "acting",
			       level_name(m->plan.level), m->guests.n, TO_MIB(m->plan.footprint),
			       TO_MIB(m->plan.budget), TO_MIB(m->plan.need));
	if (strcmp(status, m->status) == 0)
		return;
	memcpy(m->status, status, sizeof(status));
	(void)sd_notify(0, status);
}

static void decide(struct manager *m, uint64_t now)
{
	runtime_check(m, now);
	sources_read_host(m, now);
	m->current.now_us = now;
	m->view.realtime_offset_us = realtime_offset_us();
	m->current.frozen = access(m->freeze_path, F_OK) == 0;
	m->current.guests = m->guests.snapshots;
	m->current.n_guests = m->guests.n;
	policy_decide(m->policy, &m->current, m->settings, &m->plan);
	observe_history(m, now);
	/* Before anything is carried out, so that a restart at any moment knows the targets. */
	actuator_store_targets(m);
	for (size_t i = 0; i < m->plan.n_decisions; i++)
		actuator_carry_out(m, &m->plan.decisions[i]);
	for (size_t i = 0; i < m->plan.n_observed; i++)
		actuator_note(m, &m->plan.observed[i]);
	log_level_change(m);
	tell_systemd(m);
	hook_check(m, now);
}

static uint64_t next_interval(const struct manager *m)
{
	uint64_t interval = m->settings->host.interval_us;
	bool moving = m->plan.need > 0 || m->plan.in_flight > 0 || m->plan.n_decisions > 0;

	return moving && interval > ROUND_MOVING_US ? ROUND_MOVING_US : interval;
}

static int on_round(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;
	uint64_t now = now_us();

	(void)usec;
	if (!m->stopping)
		decide(m, now);
	m->earliest_round_us = now + max_u64(ROUND_GAP_US, ROUND_SHARE * (now_us() - now));
	m->next_round_us = max_u64(now + next_interval(m), m->earliest_round_us);
	(void)sd_event_source_set_time(source, m->next_round_us);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

void manager_kick(struct manager *m)
{
	uint64_t at = max_u64(now_us(), m->earliest_round_us);

	if (!m->round_source || at >= m->next_round_us)
		return;
	m->next_round_us = at;
	(void)sd_event_source_set_time(m->round_source, at);
}

int rounds_start(struct manager *m)
{
	int r;

	m->next_round_us = now_us();
	r = sd_event_add_time(m->event, &m->round_source, CLOCK_MONOTONIC, m->next_round_us, 1000,
			      on_round, m);
	if (r < 0)
		return r;
	(void)sd_event_source_set_exit_on_failure(m->round_source, true);
	/* After everything that fills the snapshot. */
	return sd_event_source_set_priority(m->round_source, SD_EVENT_PRIORITY_NORMAL + 1);
}
