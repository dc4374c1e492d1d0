// SPDX-License-Identifier: GPL-2.0-or-later
/* The keeper: it connects, lists and describes domains, and notices that the connection is lost. */
#include <errno.h>
#include <stdio.h>

#include "daemon/hyp/internal.h"
#include "daemon/hyp/pid.h"
#include "daemon/hyp/xml.h"
#include "daemon/util/time.h"

#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_COUNT	     3

/* libvirt's last error of this thread, as a text for a person. */
void error_copy(char *to, size_t size, int *ret_code)
{
	virErrorPtr error = virGetLastError();

	(void)snprintf(to, size, "%s", error && error->message ? error->message : "unknown error");
	if (ret_code)
		*ret_code = error ? error->code : 0;
	virResetLastError();
}

enum guest_phase phase_from_state(int state, int reason)
{
	switch (state) {
	case VIR_DOMAIN_RUNNING:
	case VIR_DOMAIN_BLOCKED:
	case VIR_DOMAIN_NOSTATE:
		return PHASE_RUNNING;
	case VIR_DOMAIN_PAUSED:
		if (reason == VIR_DOMAIN_PAUSED_MIGRATION || reason == VIR_DOMAIN_PAUSED_POSTCOPY ||
		    reason == VIR_DOMAIN_PAUSED_POSTCOPY_FAILED)
			return PHASE_MIGRATING;
		if (reason == VIR_DOMAIN_PAUSED_SAVE || reason == VIR_DOMAIN_PAUSED_DUMP ||
		    reason == VIR_DOMAIN_PAUSED_SNAPSHOT)
			return PHASE_SAVING;
		return PHASE_PAUSED;
	case VIR_DOMAIN_PMSUSPENDED:
		return PHASE_PAUSED;
	default:
		return PHASE_STOPPED;
	}
}

/* --- Connecting ------------------------------------------------------------------------------- */

static virConnectPtr open_one(struct hyp *h)
{
	virConnectPtr conn = h->read_only ? virConnectOpenReadOnly(h->uri) : virConnectOpen(h->uri);

	if (!conn)
		return NULL;
	/* The test driver has neither; then there is nothing to lose. */
	(void)virConnectSetKeepAlive(conn, KEEPALIVE_INTERVAL_S, KEEPALIVE_COUNT);
	(void)virConnectRegisterCloseCallback(conn, events_on_close, h, NULL);
	return conn;
}

static void close_one(virConnectPtr *conn)
{
	if (!*conn)
		return;
	(void)virConnectUnregisterCloseCallback(*conn, events_on_close);
	(void)virConnectClose(*conn);
	*conn = NULL;
}

static int connect_lane(struct hyp *h, struct lane *lane)
{
	for (size_t i = 0; i < WORKERS; i++) {
		virConnectPtr conn = open_one(h);

		if (!conn)
			return -EIO;
		(void)pthread_mutex_lock(&h->lock);
		lane->workers[i].conn = conn;
		(void)pthread_mutex_unlock(&h->lock);
	}
	return 0;
}

/* Called by the keeper alone, which is the only one to set the connections. */
static int connect_all(struct hyp *h)
{
	h->conn = open_one(h);
	if (!h->conn || events_register(h, h->conn) < 0)
		return -EIO;
	if (connect_lane(h, &h->stats) < 0)
		return -EIO;
	return h->read_only ? 0 : connect_lane(h, &h->act);
}

/*
 * The connection of a worker that waits for an answer is left to it: the worker has a reference of
 * its own, and taking the callback away is a call, which might wait, too.
 */
static void disconnect_worker(struct hyp *h, struct worker *worker)
{
	virConnectPtr conn;
	bool busy;

	(void)pthread_mutex_lock(&h->lock);
	conn = worker->conn;
	busy = worker->call.active;
	worker->conn = NULL;
	(void)pthread_mutex_unlock(&h->lock);
	if (conn && busy)
		(void)virConnectClose(conn);
	else
		close_one(&conn);
}

static void disconnect_lane(struct hyp *h, struct lane *lane)
{
	for (size_t i = 0; i < WORKERS; i++)
		disconnect_worker(h, &lane->workers[i]);
}

/* Answer what will never be carried out; with the lock held. */
static void fail_jobs(struct hyp *h)
{
	struct job job;

	while (job_take(&h->act.jobs, &job))
		if (job.kind == JOB_BALLOON)
			call_done(h, &job, job.queued_us, -ENOTCONN, 0, "not connected");
	jobs_drop(&h->stats.jobs);
	jobs_drop(&h->jobs);
	if (h->round_active)
		stats_round_end(h, -ENOTCONN);
}

/* What was observed through the old connection is void, but the guests stay known. */
static void forget_calls(struct hyp *h)
{
	struct domain *domain, *next;

	HASH_ITER (hh, h->domains, domain, next) {
		domain_set_suspect(h, domain, &domain->hung, false);
		domain_set_suspect(h, domain, &domain->mute, false);
		domain->answered = domain->in_call = domain->job_checked = domain->migrating =
			false;
		domain->incomplete_since_us = 0;
	}
}

static void disconnect(struct hyp *h, const char *why, int code)
{
	(void)pthread_mutex_lock(&h->lock);
	h->connected = h->synced = false;
	h->generation++;
	fail_jobs(h);
	forget_calls(h);
	if (!h->stopping)
		hyp_push_text(h, HYP_DISCONNECTED, code, why);
	(void)pthread_mutex_unlock(&h->lock);
	if (h->conn)
		events_deregister(h, h->conn);
	disconnect_lane(h, &h->stats);
	disconnect_lane(h, &h->act);
	close_one(&h->conn);
	virResetLastError();
}

/* --- Describing ------------------------------------------------------------------------------- */

static int get_xml(virDomainPtr dom, struct domain_xml *ret)
{
	_cleanup_free_ char *text = virDomainGetXMLDesc(dom, 0);

	return text ? domain_xml_parse(text, ret) : -EIO;
}

/* Note and publish a description; with the lock held. */
static void publish_guest(struct hyp *h, const struct domain_xml *xml)
{
	struct domain *domain = domain_add(h, xml->uuid, xml->name);
	struct hyp_message message;

	if (!domain)
		return;
	if (xml->guest.started) {
		domain->last_update = 0;
		domain->migrating = false;
	}
	message = message_for(HYP_GUEST, domain);
	message.guest = xml->guest;
	if (domain->migrating && message.guest.phase == PHASE_RUNNING)
		message.guest.phase = PHASE_MIGRATING;
	domain->phase = message.guest.phase;
	domain->seen_listing = h->listing;
	domain->period_wanted = !h->read_only && xml->stats_period_us != h->period_us &&
				!(xml->guest.obstacles & OBSTACLE_NO_BALLOON);
	hyp_push(h, &message);
}

/*
 * Ask libvirtd, not QEMU, for what there is to know of a domain. A domain that vanishes in the
 * middle is no error: its event says so.
 */
static void describe(struct hyp *h, virDomainPtr dom, bool started)
{
	int state = VIR_DOMAIN_NOSTATE, reason = 0;
	struct domain_xml xml;

	if (get_xml(dom, &xml) < 0 || virDomainGetState(dom, &state, &reason, 0) < 0 ||
	    state == VIR_DOMAIN_SHUTOFF)
		return;
	xml.guest.started = started;
	xml.guest.phase = phase_from_state(state, reason);
	xml.guest.pid = qemu_pid_find(h->proc_dir, h->run_dir, xml.name, xml.uuid);
	(void)pthread_mutex_lock(&h->lock);
	publish_guest(h, &xml);
	(void)pthread_mutex_unlock(&h->lock);
}

static void describe_uuid(struct hyp *h, const struct job *job)
{
	_cleanup_(virDomainFreep) virDomainPtr dom = virDomainLookupByUUID(h->conn, job->uuid);

	if (dom)
		describe(h, dom, job->started);
}

/* Those that the listing didn't name: they went while we weren't told. With the lock held. */
static void drop_unlisted(struct hyp *h)
{
	struct domain *domain, *next;

	HASH_ITER (hh, h->domains, domain, next) {
		if (domain->seen_listing != h->listing)
			domain_gone(h, domain, "no longer there");
	}
}

static int list_all(struct hyp *h)
{
	virDomainPtr *doms = NULL;
	int n;

	(void)pthread_mutex_lock(&h->lock);
	h->listing++;
	(void)pthread_mutex_unlock(&h->lock);
	n = virConnectListAllDomains(h->conn, &doms, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
	if (n < 0)
		return -EIO;
	for (int i = 0; i < n; i++) {
		describe(h, doms[i], false);
		(void)virDomainFree(doms[i]);
	}
	free(doms);
	(void)pthread_mutex_lock(&h->lock);
	if (!h->lost) {
		drop_unlisted(h);
		h->synced = true;
		hyp_push_text(h, HYP_SYNCED, 0, "");
	}
	(void)pthread_mutex_unlock(&h->lock);
	return 0;
}

/* --- The thread ------------------------------------------------------------------------------- */

/* Sleep until there is a job, the connection is lost, or it is time to stop. */
static bool next_job(struct hyp *h, struct job *ret)
{
	bool have = false;

	(void)pthread_mutex_lock(&h->lock);
	while (!h->stopping && !h->lost && !have) {
		have = job_take(&h->jobs, ret);
		if (!have)
			(void)pthread_cond_wait(&h->wake, &h->lock);
	}
	(void)pthread_mutex_unlock(&h->lock);
	return have;
}

/* Serve one connection until it is lost. */
static void serve(struct hyp *h)
{
	struct job job;
	int r = 0;

	(void)pthread_mutex_lock(&h->lock);
	h->connected = true;
	hyp_push_text(h, HYP_CONNECTED, 0, h->uri);
	(void)pthread_mutex_unlock(&h->lock);
	r = list_all(h);
	while (r == 0 && next_job(h, &job)) {
		if (job.kind == JOB_LIST)
			r = list_all(h);
		else
			describe_uuid(h, &job);
		virResetLastError();
	}
}

static bool sleep_or_stop(struct hyp *h, uint64_t delay_us)
{
	struct timespec until = timespec_of(now_us() + delay_us);
	bool stop;

	(void)pthread_mutex_lock(&h->lock);
	while (!h->stopping && pthread_cond_timedwait(&h->wake, &h->lock, &until) == 0)
		;
	stop = h->stopping;
	(void)pthread_mutex_unlock(&h->lock);
	return stop;
}

static bool start_over(struct hyp *h)
{
	bool go;

	(void)pthread_mutex_lock(&h->lock);
	go = !h->stopping;
	h->lost = false;
	(void)snprintf(h->lost_why, sizeof(h->lost_why), "libvirt doesn't list its domains");
	(void)pthread_mutex_unlock(&h->lock);
	return go;
}

static void why_lost(struct hyp *h, char *to, size_t size)
{
	(void)pthread_mutex_lock(&h->lock);
	(void)snprintf(to, size, "%s", h->lost_why);
	(void)pthread_mutex_unlock(&h->lock);
}

void keeper_run(struct hyp *h, void *arg)
{
	uint64_t delay_us = h->retry_min_us;
	char why[HYP_TEXT_MAX];
	int code = 0;

	(void)arg;
	while (start_over(h)) {
		if (connect_all(h) == 0) {
			serve(h);
			why_lost(h, why, sizeof(why));
			code = 0;
			delay_us = h->retry_min_us;
		} else {
			error_copy(why, sizeof(why), &code);
		}
		disconnect(h, why, code);
		if (sleep_or_stop(h, delay_us))
			break;
		delay_us = delay_us * 2 < h->retry_max_us ? delay_us * 2 : h->retry_max_us;
	}
}
