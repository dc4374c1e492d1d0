// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The lanes in which calls are made that wait for a QEMU, and the calls that act. internal.h has
 * the theory of operation.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/hyp/internal.h"
#include "daemon/util/parse.h"
#include "daemon/util/time.h"

/* --- Calls and their deadlines; with the lock held -------------------------------------------- */

struct call *call_begin(struct lane *lane, const struct job *job, const uint8_t *uuid,
			uint64_t deadline_us)
{
	struct domain *domain = uuid ? domain_find(lane->hyp, uuid) : NULL;
	struct call *call = lane->calls;
	uint64_t now = now_us();

	/* There is one for each thread. */
	while (call->active)
		call++;
	*call = (struct call){ .active = true,
			       .job = *job,
			       .for_all = !uuid,
			       .sent_us = now,
			       .deadline_us = now + deadline_us };
	if (uuid)
		memcpy(call->job.uuid, uuid, sizeof(call->job.uuid));
	if (domain)
		domain->in_call = true;
	events_arm(lane->hyp, call->deadline_us);
	return call;
}

bool call_end(struct lane *lane, struct call *call)
{
	struct domain *domain = call->for_all ? NULL : domain_find(lane->hyp, call->job.uuid);
	bool in_time = !call->overdue;

	call->active = false;
	if (domain) {
		domain->in_call = false;
		domain_set_suspect(lane->hyp, domain, &domain->hung, false);
	}
	(void)pthread_cond_broadcast(&lane->wake);
	return in_time;
}

bool lane_overdue(const struct lane *lane)
{
	for (size_t i = 0; i < LANE_THREADS; i++)
		if (lane->calls[i].active && lane->calls[i].overdue)
			return true;
	return false;
}

bool lane_full(const struct lane *lane)
{
	for (size_t i = 0; i < LANE_THREADS; i++)
		if (!lane->calls[i].active || !lane->calls[i].overdue)
			return false;
	return true;
}

static void push_done(struct hyp *h, const struct job *job, uint64_t sent_us, int status, int code,
		      const char *text)
{
	const struct domain *domain = domain_find(h, job->uuid);
	struct hyp_message message = { .kind = HYP_CALL_DONE, .at_us = now_us() };

	if (domain)
		message = message_for(HYP_CALL_DONE, domain);
	memcpy(message.uuid, job->uuid, sizeof(message.uuid));
	message.call = (struct hyp_call){ job->target, status, sent_us };
	message.code = code;
	(void)snprintf(message.text, sizeof(message.text), "%s", text);
	hyp_push(h, &message);
}

static void overdue(struct hyp *h, struct lane *lane, struct call *call)
{
	struct domain *domain = call->for_all ? NULL : domain_find(h, call->job.uuid);

	call->overdue = true;
	if (domain)
		domain_set_suspect(h, domain, &domain->hung, true);
	if (call->job.kind == JOB_BALLOON)
		push_done(h, &call->job, call->sent_us, -ETIMEDOUT, 0,
			  "the hypervisor doesn't answer in time");
	if (lane == &h->stats)
		stats_overdue(h, call);
}

/* Requests that no thread took in time: both wait for hung QEMUs. */
static void expire_queued(struct hyp *h, uint64_t now)
{
	struct job **at = &h->act.jobs;

	while (*at) {
		struct job *job = *at;

		if (job->kind != JOB_BALLOON || now - job->queued_us < h->call_deadline_us) {
			at = &job->next;
			continue;
		}
		push_done(h, job, job->queued_us, -ETIMEDOUT, 0,
			  "other calls to the hypervisor are still unanswered");
		*at = job->next;
		free(job);
	}
	for (const struct job *job = h->act.jobs; job; job = job->next)
		if (job->kind == JOB_BALLOON)
			events_arm(h, job->queued_us + h->call_deadline_us);
}

void calls_check(struct hyp *h, uint64_t now)
{
	struct lane *lanes[] = { &h->stats, &h->act };

	for (size_t l = 0; l < 2; l++) {
		for (size_t i = 0; i < LANE_THREADS; i++) {
			struct call *call = &lanes[l]->calls[i];

			if (!call->active || call->overdue)
				continue;
			if (now >= call->deadline_us)
				overdue(h, lanes[l], call);
			else
				events_arm(h, call->deadline_us);
		}
	}
	expire_queued(h, now);
}

/* --- Acting ----------------------------------------------------------------------------------- */

static int to_status(int code)
{
	switch (code) {
	case VIR_ERR_NO_DOMAIN:
	case VIR_ERR_OPERATION_INVALID: /* it doesn't run */
		return -ENOENT;
	case VIR_ERR_INVALID_ARG:
	case VIR_ERR_CONFIG_UNSUPPORTED:
	case VIR_ERR_ARGUMENT_UNSUPPORTED:
		return -EINVAL;
	case VIR_ERR_OPERATION_DENIED:
	case VIR_ERR_ACCESS_DENIED:
	case VIR_ERR_AUTH_FAILED:
		return -EROFS;
	case VIR_ERR_OPERATION_TIMEOUT:
		return -ETIMEDOUT;
	case VIR_ERR_RPC:
	case VIR_ERR_INVALID_CONN:
	case VIR_ERR_SYSTEM_ERROR:
		return -ENOTCONN;
	default:
		return -EIO;
	}
}

/* The calls themselves; without the lock. */
static int call_libvirt(const struct hyp *h, virConnectPtr conn, const struct job *job)
{
	_cleanup_(virDomainFreep) virDomainPtr dom = virDomainLookupByUUID(conn, job->uuid);

	if (!dom)
		return -1;
	if (job->kind == JOB_PERIOD)
		return virDomainSetMemoryStatsPeriod(dom, (int)(h->period_us / USEC_PER_SEC),
						     VIR_DOMAIN_AFFECT_LIVE);
	return virDomainSetMemoryFlags(dom, (unsigned long)(job->target / KIB(1)),
				       VIR_DOMAIN_MEM_LIVE);
}

void act_run(struct lane *lane, virConnectPtr conn, uint64_t generation, const struct job *job)
{
	struct hyp *h = lane->hyp;
	struct call *call;
	char text[HYP_TEXT_MAX] = "";
	uint64_t sent_us;
	int r, code = 0;

	(void)pthread_mutex_lock(&h->lock);
	call = call_begin(lane, job, job->uuid, h->call_deadline_us);
	sent_us = call->sent_us;
	(void)pthread_mutex_unlock(&h->lock);

	r = call_libvirt(h, conn, job);
	if (r < 0)
		error_copy(text, sizeof(text), &code);

	(void)pthread_mutex_lock(&h->lock);
	if (call_end(lane, call) && job->kind == JOB_BALLOON)
		push_done(h, job, sent_us,
			  generation != h->generation ? -ENOTCONN
			  : r < 0		      ? to_status(code)
						      : 0,
			  code, text);
	(void)pthread_mutex_unlock(&h->lock);
}

/* --- The threads ------------------------------------------------------------------------------ */

/* The first job whose domain has no other call under way. */
static bool take_possible(struct lane *lane, struct job *ret)
{
	for (struct job **at = &lane->jobs; *at; at = &(*at)->next) {
		const struct domain *domain = domain_find(lane->hyp, (*at)->uuid);

		if (domain && domain->in_call)
			continue;
		return job_take(at, ret);
	}
	return false;
}

static bool next_job(struct lane *lane, struct job *ret_job, virConnectPtr *ret_conn,
		     uint64_t *ret_generation)
{
	struct hyp *h = lane->hyp;
	bool have = false;

	(void)pthread_mutex_lock(&h->lock);
	while (!h->stopping && !have) {
		have = lane->conn && take_possible(lane, ret_job);
		if (!have)
			(void)pthread_cond_wait(&lane->wake, &h->lock);
	}
	if (have) {
		/* Our own reference: the keeper may close it meanwhile. */
		(void)virConnectRef(lane->conn);
		*ret_conn = lane->conn;
		*ret_generation = h->generation;
	}
	(void)pthread_mutex_unlock(&h->lock);
	return have;
}

void lane_run(struct hyp *h, void *arg)
{
	struct lane *lane = arg;
	uint64_t generation;
	virConnectPtr conn;
	struct job job;

	while (next_job(lane, &job, &conn, &generation)) {
		if (lane == &h->stats)
			stats_run(lane, conn, generation, &job);
		else
			act_run(lane, conn, generation, &job);
		(void)virConnectClose(conn);
		virResetLastError();
	}
}
