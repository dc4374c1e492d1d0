// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the hypervisor and the host say, into the snapshot. Each part gets the time at which its
 * source saw it, so that the policy can tell fresh from stale.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "daemon/app/manager.h"
#include "daemon/guest/channel.h"
#include "daemon/util/log.h"
#include "daemon/util/time.h"
#include "daemon/util/uuid.h"

/* The kernel grants an unprivileged trigger only for multiples of 2 s. */
#define PSI_WINDOW_US	 (2 * USEC_PER_SEC)
#define PSI_THRESHOLD_US (100 * USEC_PER_MSEC)
/* Events are hints: everything is listed anew now and then. */
#define LIST_INTERVAL_US (60 * USEC_PER_SEC)
/* While a balloon moves its statistics are asked for at this interval. */
#define MOVING_INTERVAL_US (200 * USEC_PER_MSEC)
#define MOVING_FOR_US	   (5 * USEC_PER_SEC)
/* Footprints aren't read more often than this. */
#define COST_INTERVAL_US (50 * USEC_PER_MSEC)

static void choose_settings(struct manager *m, struct guest *guest)
{
	struct guest_snapshot *snap = guest_snap(&m->guests, guest);
	char uuid[UUID_TEXT_SIZE];

	uuid_format(guest->uuid, uuid);
	snap->settings =
		*settings_for_guest(m->settings, snap->name, uuid,
				    guest->metadata[0] ? guest->metadata : NULL, &snap->rule);
	actuator_settings(m, guest);
}

void sources_apply_settings(struct manager *m)
{
	for (size_t i = 0; i < m->guests.n; i++)
		choose_settings(m, m->guests.by_index[i]);
}

/* A guest that was started just now boots, until its grace is over. */
static void set_phase(struct manager *m, struct guest *guest, enum guest_phase phase)
{
	struct guest_snapshot *snap = guest_snap(&m->guests, guest);

	guest->phase = phase;
	if (guest->suspect)
		phase = PHASE_BLOCKED;
	else if (phase == PHASE_RUNNING && snap->phase == PHASE_BOOTING)
		return;
	if (snap->phase == phase && snap->phase_since_us)
		return;
	snap->phase = phase;
	snap->phase_since_us = now_us();
}

static void begin_boot(struct manager *m, struct guest *guest)
{
	struct guest_snapshot *snap = guest_snap(&m->guests, guest);

	snap->phase = PHASE_BOOTING;
	snap->phase_since_us = now_us();
	snap->driver = (struct driver_part){ 0 };
}

static void end_boots(struct manager *m, uint64_t now)
{
	for (size_t i = 0; i < m->guests.n; i++) {
		struct guest_snapshot *snap = &m->guests.snapshots[i];

		if (snap->phase != PHASE_BOOTING ||
		    now - snap->phase_since_us < snap->settings.boot_grace_us)
			continue;
		snap->phase = m->guests.by_index[i]->phase;
		snap->phase_since_us = now;
	}
}

void guest_gone(struct manager *m, struct guest *guest)
{
	actuator_released(m, guest);
	guest->channel = channel_free(guest->channel);
	guest->cost = host_guest_close(guest->cost);
	policy_forget(m->policy, guest->slot);
	history_forget(m->history, guest->slot);
	guests_remove(&m->guests, guest);
}

static struct guest *guest_arrives(struct manager *m, const struct hyp_message *message)
{
	struct guest *guest;
	uint64_t target;
	int r;

	r = guests_add(&m->guests, message->uuid, message->name, &guest);
	if (r < 0) {
		log_error("%s: can't be watched: %s", message->name, strerror(-r));
		return NULL;
	}
	guest->manager = m;
	target = targets_find(m->restored, m->n_restored, guest->uuid);
	if (target)
		policy_restore(m->policy, guest->slot, target);
	log_info("%s: found", message->name);
	return guest;
}

static void watch_cost(struct manager *m, struct guest *guest, const struct hyp_guest *said)
{
	struct guest_snapshot *snap = guest_snap(&m->guests, guest);
	int r;

	if (snap->pid == said->pid && guest->cost) {
		host_guest_set_maximum(guest->cost, said->maximum);
		return;
	}
	guest->cost = host_guest_close(guest->cost);
	snap->pid = said->pid;
	snap->cost = (struct cost_part){ 0 };
	if (said->pid == 0)
		return;
	r = host_guest_open(m->host, said->pid, said->maximum, said->tcg, &guest->cost);
	if (r < 0)
		log_warning("%s: can't read what its QEMU (PID %d) costs: %s", snap->name,
			    said->pid, strerror(-r));
}

static void on_guest(struct manager *m, const struct hyp_message *message)
{
	const struct hyp_guest *said = &message->guest;
	struct guest *guest = guests_find(&m->guests, message->uuid);
	bool arrives = !guest;
	struct guest_snapshot *snap;
	int r;

	if (!guest)
		guest = guest_arrives(m, message);
	if (!guest)
		return;
	snap = guest_snap(&m->guests, guest);
	(void)snprintf(snap->name, sizeof(snap->name), "%s", message->name);
	(void)snprintf(guest->metadata, sizeof(guest->metadata), "%s", said->metadata);
	choose_settings(m, guest);
	snap->obstacles = said->obstacles;
	snap->balloon.maximum = said->maximum;
	snap->balloon.autodeflate = said->autodeflate;
	snap->balloon.reporting = said->reporting;
	if (said->started && arrives)
		begin_boot(m, guest);
	set_phase(m, guest, said->phase);
	watch_cost(m, guest, said);
	r = agent_open(m, guest, said->channel_path);
	if (r < 0)
		log_warning("%s: can't watch its agent channel %s: %s", snap->name,
			    said->channel_path, strerror(-r));
	if (guest->channel)
		channel_guest_open(guest->channel, said->channel_open);
}

static void on_stats(struct manager *m, struct guest *guest, const struct hyp_message *message)
{
	struct guest_snapshot *snap = guest_snap(&m->guests, guest);
	const struct hyp_stats *said = &message->stats;

	set_phase(m, guest, said->phase);
	if (said->maximum)
		snap->balloon.maximum = said->maximum;
	/* An event may have overtaken statistics that were asked for before it. */
	if (said->actual && said->complete && message->at_us >= snap->balloon.at_us) {
		snap->balloon.actual = said->actual;
		snap->balloon.at_us = message->at_us;
	}
	if (!said->updated)
		return;
	snap->driver = (struct driver_part){
		.at_us = message->at_us,
		.has_usable = said->has_usable,
		.usable = said->usable,
		.has_unused = said->has_unused,
		.unused = said->unused,
	};
}

static void on_reboot(struct manager *m, struct guest *guest)
{
	begin_boot(m, guest);
	log_info("%s: rebooted", guest_snap(&m->guests, guest)->name);
}

static void on_suspect(struct manager *m, struct guest *guest, bool suspect)
{
	if (guest->suspect == suspect)
		return;
	guest->suspect = suspect;
	set_phase(m, guest, guest->phase);
	log_notice("%s: %s", guest_snap(&m->guests, guest)->name,
		   suspect ? "the hypervisor gets no answer from it: left alone" : "answers again");
}

static void on_guest_message(struct manager *m, struct guest *guest,
			     const struct hyp_message *message)
{
	struct guest_snapshot *snap = guest_snap(&m->guests, guest);

	switch (message->kind) {
	case HYP_GUEST_GONE:
		log_info("%s: gone: %s", snap->name, message->text);
		guest_gone(m, guest);
		break;
	case HYP_PHASE:
		set_phase(m, guest, message->phase);
		break;
	case HYP_REBOOT:
		on_reboot(m, guest);
		break;
	case HYP_STATS:
		on_stats(m, guest, message);
		break;
	case HYP_BALLOON:
		snap->balloon.actual = message->actual;
		snap->balloon.at_us = message->at_us;
		manager_kick(m);
		break;
	case HYP_CALL_DONE:
		actuator_call_done(m, guest, &message->call, message->text);
		break;
	case HYP_SUSPECT:
		on_suspect(m, guest, message->suspect);
		break;
	default:
		break;
	}
}

static void on_disconnected(struct manager *m, const struct hyp_message *message)
{
	if (m->current.hypervisor_ready || !m->hypervisor_reported)
		log_error("libvirt: %s; trying again, guests keep what they have", message->text);
	m->hypervisor_reported = true;
	m->current.hypervisor_ready = false;
	/* Calls that were under way are never answered now, and what waited for them is out of date. */
	for (size_t i = 0; i < m->guests.n; i++) {
		m->guests.by_index[i]->request_in_call = false;
		m->guests.by_index[i]->request_next = 0;
	}
}

static void on_synced(struct manager *m)
{
	if (!m->current.hypervisor_ready)
		log_info("libvirt: %zu guest%s", m->guests.n, m->guests.n == 1 ? "" : "s");
	m->current.hypervisor_ready = true;
	m->hypervisor_reported = false;
	/* A guest that comes from now on was started since: its old target is void. */
	free(m->restored);
	m->restored = NULL;
	m->n_restored = 0;
	(void)hyp_request_stats(m->hyp);
}

static void on_message(struct manager *m, const struct hyp_message *message)
{
	struct guest *guest;

	switch (message->kind) {
	case HYP_CONNECTED:
		log_info("libvirt: connected to %s", message->text);
		return;
	case HYP_SYNCED:
		on_synced(m);
		return;
	case HYP_DISCONNECTED:
		on_disconnected(m, message);
		return;
	case HYP_GUEST:
		on_guest(m, message);
		return;
	case HYP_STATS_DONE:
		return;
	default:
		guest = guests_find(&m->guests, message->uuid);
		if (guest)
			on_guest_message(m, guest, message);
	}
}

static int on_hyp(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct manager *m = userdata;
	struct hyp_message message;

	(void)source;
	(void)fd;
	(void)events;
	while (hyp_next(m->hyp, &message))
		on_message(m, &message);
	return 0;
}

static bool balloons_move(const struct manager *m, uint64_t now)
{
	for (size_t i = 0; i < m->guests.n; i++) {
		const struct guest_snapshot *snap = &m->guests.snapshots[i];

		if (snap->request.at_us && now - snap->request.at_us < MOVING_FOR_US &&
		    snap->request.target != snap->balloon.actual)
			return true;
	}
	return false;
}

static int on_stats_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;
	uint64_t now = now_us(), next = m->settings->host.stats_interval_us;

	(void)usec;
	if (m->current.hypervisor_ready) {
		(void)hyp_request_stats(m->hyp);
		if (now - m->last_list_us >= LIST_INTERVAL_US) {
			m->last_list_us = now;
			(void)hyp_request_list(m->hyp);
		}
	}
	if (balloons_move(m, now) && next > MOVING_INTERVAL_US)
		next = MOVING_INTERVAL_US;
	(void)sd_event_source_set_time(source, now + next);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_host_pressure(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct manager *m = userdata;

	(void)fd;
	/* The cgroup or the file is gone: polling would spin. */
	if (events & EPOLLERR)
		return sd_event_source_set_enabled(source, SD_EVENT_OFF);
	manager_kick(m);
	return 0;
}

static void read_cost(struct manager *m, struct guest *guest, uint64_t now)
{
	struct guest_snapshot *snap = guest_snap(&m->guests, guest);
	int r;

	if (!guest->cost)
		return;
	r = host_guest_read(guest->cost, now, &snap->cost);
	if (r == 0)
		return;
	log_debug("%s: its QEMU is gone: %s", snap->name, strerror(-r));
	guest->cost = host_guest_close(guest->cost);
	snap->pid = 0;
	snap->cost = (struct cost_part){ 0 };
}

void sources_read_host(struct manager *m, uint64_t now)
{
	int r;

	end_boots(m, now);
	if (now - m->last_cost_us < COST_INTERVAL_US)
		return;
	m->last_cost_us = now;
	r = host_read(m->host, now, &m->current.host);
	if (r < 0 && !m->host_failing)
		log_error(
			"host: /proc/meminfo: %s; trying again, guests keep what they have unless "
			"the budget is a size",
			strerror(-r));
	m->host_failing = r < 0;
	for (size_t i = 0; i < m->guests.n; i++)
		read_cost(m, m->guests.by_index[i], now);
}

static int open_host(struct manager *m)
{
	struct host_options options = {
		.root = m->options.root,
		.cgroup = m->settings->host.budget_kind == BUDGET_CGROUP
				  ? m->settings->host.budget_cgroup
				  : NULL,
	};
	int fd, r;

	r = host_new(&m->host, &options);
	if (r < 0) {
		log_error("host: can't read /proc/meminfo%s%s: %s",
			  options.cgroup ? " or the budget's cgroup " : "",
			  options.cgroup ? options.cgroup : "", strerror(-r));
		return r;
	}
	fd = host_pressure_fd(m->host, PSI_THRESHOLD_US, PSI_WINDOW_US);
	if (fd < 0) {
		log_info("host: no pressure trigger (%s): pressure is read once a round",
			 strerror(-fd));
		return 0;
	}
	r = sd_event_add_io(m->event, &m->pressure_source, fd, EPOLLPRI, on_host_pressure, m);
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	return sd_event_source_set_io_fd_own(m->pressure_source, 1);
}

int sources_open(struct manager *m)
{
	struct hyp_options options = {
		.uri = m->options.uri ? m->options.uri : m->settings->host.uri,
		.run_dir = m->options.run_dir,
		.stats_period_us = USEC_PER_SEC,
	};
	int r;

	r = open_host(m);
	if (r < 0)
		return r;
	r = hyp_new(&m->hyp, &options);
	if (r < 0) {
		log_error("libvirt: can't start its threads: %s", strerror(-r));
		return r;
	}
	m->last_list_us = now_us();
	r = sd_event_add_io(m->event, &m->hyp_source, hyp_fd(m->hyp), EPOLLIN, on_hyp, m);
	if (r < 0)
		return r;
	r = sd_event_add_time(m->event, &m->stats_source, CLOCK_MONOTONIC, now_us(), 0,
			      on_stats_timer, m);
	if (r < 0)
		return r;
	return sd_event_source_set_exit_on_failure(m->stats_source, true);
}

void sources_close(struct manager *m)
{
	m->stats_source = sd_event_source_disable_unref(m->stats_source);
	m->hyp_source = sd_event_source_disable_unref(m->hyp_source);
	m->pressure_source = sd_event_source_disable_unref(m->pressure_source);
	m->hyp = hyp_free(m->hyp);
	while (m->guests.n > 0)
		guest_gone(m, m->guests.by_index[m->guests.n - 1]);
	m->host = host_free(m->host);
}
