// SPDX-License-Identifier: GPL-2.0-or-later
/* libvirt's event loop, and what its callbacks note. None of them calls libvirt but for freeing. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/hyp/internal.h"
#include "daemon/util/parse.h"
#include "daemon/util/time.h"

/* --- The loop --------------------------------------------------------------------------------- */

static void be_silent(void *opaque, virErrorPtr error)
{
	(void)opaque;
	(void)error;
}

/* libvirt has one event loop and one error handler a process, so this is once a process, too. */
static int init_result;

static void init_once(void)
{
	virSetErrorFunc(NULL, be_silent);
	if (virInitialize() < 0 || virEventRegisterDefaultImpl() < 0)
		init_result = -EIO;
}

int events_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, init_once);
	return init_result;
}

void events_run(struct hyp *h, void *arg)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	bool stop = false;

	(void)arg;
	while (!stop) {
		/* It fails when poll does: never spin on that. */
		if (virEventRunDefaultImpl() < 0)
			(void)nanosleep(&pause, NULL);
		(void)pthread_mutex_lock(&h->lock);
		stop = h->stop_loop;
		(void)pthread_mutex_unlock(&h->lock);
	}
}

/* Have the timer fire no later than @at_us. It may fire too early, which costs one look. */
void events_arm(struct hyp *h, uint64_t at_us)
{
	uint64_t now = now_us();

	if (h->stopping || (h->armed_us && h->armed_us <= at_us))
		return;
	h->armed_us = at_us;
	virEventUpdateTimeout(h->timer, at_us > now ? (int)((at_us - now) / USEC_PER_MSEC) + 1 : 0);
}

void events_on_timer(int timer, void *opaque)
{
	struct hyp *h = opaque;

	(void)pthread_mutex_lock(&h->lock);
	virEventUpdateTimeout(timer, -1);
	h->armed_us = 0;
	if (!h->stopping)
		calls_check(h, now_us());
	(void)pthread_mutex_unlock(&h->lock);
}

/* --- Noting ----------------------------------------------------------------------------------- */

static void queue_describe(struct hyp *h, const uint8_t uuid[16], bool started)
{
	struct job job = { .kind = JOB_DESCRIBE, .started = started };

	memcpy(job.uuid, uuid, sizeof(job.uuid));
	(void)job_queue(&h->jobs, &job, &h->wake);
}

/* The domain of an event, if it is known; locks, and unlocks again where it isn't. */
static struct domain *lock_domain(struct hyp *h, virDomainPtr dom)
{
	struct domain *domain = NULL;
	uint8_t uuid[16];

	(void)pthread_mutex_lock(&h->lock);
	if (virDomainGetUUID(dom, uuid) == 0)
		domain = domain_find(h, uuid);
	if (!domain)
		(void)pthread_mutex_unlock(&h->lock);
	return domain;
}

static const char *stopped_text(int detail)
{
	static const char *const texts[] = {
		[VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN] = "shutdown",
		[VIR_DOMAIN_EVENT_STOPPED_DESTROYED] = "destroyed",
		[VIR_DOMAIN_EVENT_STOPPED_CRASHED] = "crashed",
		[VIR_DOMAIN_EVENT_STOPPED_MIGRATED] = "migrated",
		[VIR_DOMAIN_EVENT_STOPPED_SAVED] = "saved",
		[VIR_DOMAIN_EVENT_STOPPED_FAILED] = "failed",
		[VIR_DOMAIN_EVENT_STOPPED_FROM_SNAPSHOT] = "snapshot",
	};

	if (detail < 0 || (size_t)detail >= sizeof(texts) / sizeof(*texts))
		return "stopped";
	return texts[detail];
}

static enum guest_phase suspended_phase(int detail)
{
	switch (detail) {
	case VIR_DOMAIN_EVENT_SUSPENDED_MIGRATED:
	case VIR_DOMAIN_EVENT_SUSPENDED_POSTCOPY:
	case VIR_DOMAIN_EVENT_SUSPENDED_POSTCOPY_FAILED:
		return PHASE_MIGRATING;
	default:
		return PHASE_PAUSED;
	}
}

/* --- Callbacks -------------------------------------------------------------------------------- */

static void on_started(struct hyp *h, virDomainPtr dom, int detail)
{
	uint8_t uuid[16];

	if (virDomainGetUUID(dom, uuid) < 0)
		return;
	(void)pthread_mutex_lock(&h->lock);
	queue_describe(h, uuid, detail == VIR_DOMAIN_EVENT_STARTED_BOOTED);
	(void)pthread_mutex_unlock(&h->lock);
}

static int on_lifecycle(virConnectPtr conn, virDomainPtr dom, int event, int detail, void *opaque)
{
	struct hyp *h = opaque;
	struct domain *domain;

	(void)conn;
	if (event == VIR_DOMAIN_EVENT_STARTED) {
		on_started(h, dom, detail);
		return 0;
	}
	domain = lock_domain(h, dom);
	if (!domain)
		return 0;
	if (event == VIR_DOMAIN_EVENT_STOPPED)
		domain_gone(h, domain, stopped_text(detail));
	else if (event == VIR_DOMAIN_EVENT_SUSPENDED)
		domain_set_phase(h, domain, suspended_phase(detail));
	else if (event == VIR_DOMAIN_EVENT_PMSUSPENDED)
		domain_set_phase(h, domain, PHASE_PAUSED);
	else if (event == VIR_DOMAIN_EVENT_RESUMED)
		domain_set_phase(h, domain, PHASE_RUNNING);
	else if (event == VIR_DOMAIN_EVENT_CRASHED || event == VIR_DOMAIN_EVENT_SHUTDOWN)
		domain_set_phase(h, domain, PHASE_STOPPED);
	(void)pthread_mutex_unlock(&h->lock);
	return 0;
}

static void on_reboot(virConnectPtr conn, virDomainPtr dom, void *opaque)
{
	struct hyp *h = opaque;
	struct domain *domain = lock_domain(h, dom);
	struct hyp_message message;

	(void)conn;
	if (!domain)
		return;
	domain->last_update = 0;
	message = message_for(HYP_REBOOT, domain);
	hyp_push(h, &message);
	(void)pthread_mutex_unlock(&h->lock);
}

static void on_balloon(virConnectPtr conn, virDomainPtr dom, unsigned long long actual,
		       void *opaque)
{
	struct hyp *h = opaque;
	struct domain *domain = lock_domain(h, dom);
	struct hyp_message message;

	(void)conn;
	if (!domain)
		return;
	message = message_for(HYP_BALLOON, domain);
	message.actual = KIB(actual);
	hyp_push(h, &message);
	(void)pthread_mutex_unlock(&h->lock);
}

/* What is plugged or resized may change what we know of the domain. */
static void describe_again(virDomainPtr dom, struct hyp *h)
{
	struct domain *domain = lock_domain(h, dom);

	if (!domain)
		return;
	queue_describe(h, domain->uuid, false);
	(void)pthread_mutex_unlock(&h->lock);
}

static void on_device(virConnectPtr conn, virDomainPtr dom, const char *alias, void *opaque)
{
	(void)conn;
	(void)alias;
	describe_again(dom, opaque);
}

static void on_memory_device(virConnectPtr conn, virDomainPtr dom, const char *alias,
			     unsigned long long size, void *opaque)
{
	(void)conn;
	(void)alias;
	(void)size;
	describe_again(dom, opaque);
}

static void on_iteration(virConnectPtr conn, virDomainPtr dom, int iteration, void *opaque)
{
	struct hyp *h = opaque;
	struct domain *domain = lock_domain(h, dom);

	(void)conn;
	(void)iteration;
	if (!domain)
		return;
	domain_set_migrating(h, domain);
	(void)pthread_mutex_unlock(&h->lock);
}

static void on_job(virConnectPtr conn, virDomainPtr dom, virTypedParameterPtr params, int n_params,
		   void *opaque)
{
	struct hyp *h = opaque;
	struct domain *domain = lock_domain(h, dom);

	(void)conn;
	(void)params;
	(void)n_params;
	if (!domain)
		return;
	domain->migrating = false;
	queue_describe(h, domain->uuid, false);
	(void)pthread_mutex_unlock(&h->lock);
}

/* --- Registration ----------------------------------------------------------------------------- */

static const struct {
	int id;
	virConnectDomainEventGenericCallback callback;
} wanted[EVENTS_MAX] = {
	{ VIR_DOMAIN_EVENT_ID_LIFECYCLE, VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle) },
	{ VIR_DOMAIN_EVENT_ID_REBOOT, VIR_DOMAIN_EVENT_CALLBACK(on_reboot) },
	{ VIR_DOMAIN_EVENT_ID_BALLOON_CHANGE, VIR_DOMAIN_EVENT_CALLBACK(on_balloon) },
	{ VIR_DOMAIN_EVENT_ID_DEVICE_ADDED, VIR_DOMAIN_EVENT_CALLBACK(on_device) },
	{ VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, VIR_DOMAIN_EVENT_CALLBACK(on_device) },
	{ VIR_DOMAIN_EVENT_ID_MEMORY_DEVICE_SIZE_CHANGE,
	  VIR_DOMAIN_EVENT_CALLBACK(on_memory_device) },
	{ VIR_DOMAIN_EVENT_ID_MIGRATION_ITERATION, VIR_DOMAIN_EVENT_CALLBACK(on_iteration) },
	{ VIR_DOMAIN_EVENT_ID_JOB_COMPLETED, VIR_DOMAIN_EVENT_CALLBACK(on_job) },
};

/* The lifecycle is needed; an older libvirtd may not know the others. */
int events_register(struct hyp *h, virConnectPtr conn)
{
	h->n_events = 0;
	for (size_t i = 0; i < EVENTS_MAX; i++) {
		int id = virConnectDomainEventRegisterAny(conn, NULL, wanted[i].id,
							  wanted[i].callback, h, NULL);

		if (id >= 0)
			h->events[h->n_events++] = id;
		else if (wanted[i].id == VIR_DOMAIN_EVENT_ID_LIFECYCLE)
			return -EIO;
	}
	return 0;
}

void events_deregister(struct hyp *h, virConnectPtr conn)
{
	while (h->n_events)
		(void)virConnectDomainEventDeregisterAny(conn, h->events[--h->n_events]);
}

void events_on_close(virConnectPtr conn, int reason, void *opaque)
{
	static const char *const texts[] = {
		[VIR_CONNECT_CLOSE_REASON_ERROR] = "the connection to libvirt failed",
		[VIR_CONNECT_CLOSE_REASON_EOF] = "libvirt closed the connection",
		[VIR_CONNECT_CLOSE_REASON_KEEPALIVE] = "libvirt doesn't answer any more",
		[VIR_CONNECT_CLOSE_REASON_CLIENT] = "the connection was closed",
	};
	struct hyp *h = opaque;

	(void)conn;
	(void)pthread_mutex_lock(&h->lock);
	if (!h->lost) {
		h->lost = true;
		(void)snprintf(h->lost_why, sizeof(h->lost_why), "%s",
			       reason >= 0 && (size_t)reason < sizeof(texts) / sizeof(*texts)
				       ? texts[reason]
				       : "the connection to libvirt is gone");
		(void)pthread_cond_broadcast(&h->wake);
	}
	(void)pthread_mutex_unlock(&h->lock);
}
