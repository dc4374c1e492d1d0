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

void call_begin(struct worker *worker, const struct job *job, const uint8_t *uuid,
		uint64_t deadline_us)
{
	struct hyp *h = worker->lane->hyp;
	struct domain *domain = uuid ? domain_find(h, uuid) : NULL;
	struct call *call = &worker->call;
	uint64_t now = now_us();

	*call = (struct call){ .active = true,
			       .job = *job,
			       .for_all = !uuid,
			       .sent_us = now,
			       .deadline_us = now + deadline_us };
	if (uuid)
		memcpy(call->job.uuid, uuid, sizeof(call->job.uuid));
	if (domain)
		domain->in_call = true;
	events_arm(h, call->deadline_us);
}

bool call_end(struct worker *worker)
{
	struct hyp *h = worker->lane->hyp;
	struct call *call = &worker->call;
	struct domain *domain = call->for_all ? NULL : domain_find(h, call->job.uuid);

	call->active = false;
	if (domain) {
		domain->in_call = false;
		domain_set_suspect(h, domain, &domain->hung, false);
	}
	(void)pthread_cond_broadcast(&worker->lane->wake);
	return !call->overdue;
}

bool lane_overdue(const struct lane *lane)
{
	for (size_t i = 0; i < WORKERS; i++)
		if (lane->workers[i].call.active && lane->workers[i].call.overdue)
			return true;
	return false;
}

bool lane_full(const struct lane *lane)
{
	for (size_t i = 0; i < WORKERS; i++)
		if (!lane->workers[i].call.active || !lane->workers[i].call.overdue)
			return false;
	return true;
}

void call_done(struct hyp *h, const struct job *job, uint64_t sent_us, int status, int code,
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
		call_done(h, &call->job, call->sent_us, -ETIMEDOUT, 0,
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
		call_done(h, job, job->queued_us, -ETIMEDOUT, 0,
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
		for (size_t i = 0; i < WORKERS; i++) {
			struct call *call = &lanes[l]->workers[i].call;

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
		return -ENOTCONN;
	default:
		return -EIO;
	}
}

static int call_domain(const struct hyp *h, virDomainPtr dom, const struct job *job)
{
	if (job->kind == JOB_PERIOD)
		return virDomainSetMemoryStatsPeriod(dom, (int)(h->period_us / USEC_PER_SEC),
						     VIR_DOMAIN_AFFECT_LIVE);
	return virDomainSetMemoryFlags(dom, (unsigned long)(job->target / KIB(1)),
				       VIR_DOMAIN_MEM_LIVE);
}

/* The call itself; without the lock. The error is taken before another call resets it. */
static int call_libvirt(const struct hyp *h, virConnectPtr conn, const struct job *job,
			char ret_text[HYP_TEXT_MAX], int *ret_code)
{
	virDomainPtr dom = virDomainLookupByUUID(conn, job->uuid);
	int r = dom ? call_domain(h, dom, job) : -1;

	if (r < 0)
		error_copy(ret_text, HYP_TEXT_MAX, ret_code);
	if (dom)
		(void)virDomainFree(dom);
	return r;
}

void act_run(struct worker *worker, virConnectPtr conn, uint64_t generation, const struct job *job)
{
	struct hyp *h = worker->lane->hyp;
	char text[HYP_TEXT_MAX] = "";
	uint64_t sent_us;
	int r, code = 0;

	(void)pthread_mutex_lock(&h->lock);
	call_begin(worker, job, job->uuid, h->call_deadline_us);
	sent_us = worker->call.sent_us;
	(void)pthread_mutex_unlock(&h->lock);

	r = call_libvirt(h, conn, job, text, &code);

	(void)pthread_mutex_lock(&h->lock);
	if (call_end(worker) && job->kind == JOB_BALLOON)
		call_done(h, job, sent_us,
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

static bool next_job(struct worker *worker, struct job *ret_job, virConnectPtr *ret_conn,
		     uint64_t *ret_generation)
{
	struct lane *lane = worker->lane;
	struct hyp *h = lane->hyp;
	bool have = false;

	(void)pthread_mutex_lock(&h->lock);
	while (!h->stopping && !have) {
		have = worker->conn && take_possible(lane, ret_job);
		if (!have)
			(void)pthread_cond_wait(&lane->wake, &h->lock);
	}
	if (have) {
		/* Our own reference: the keeper may close it meanwhile. */
		(void)virConnectRef(worker->conn);
		*ret_conn = worker->conn;
		*ret_generation = h->generation;
	}
	(void)pthread_mutex_unlock(&h->lock);
	return have;
}

void lane_run(struct hyp *h, void *arg)
{
	struct worker *worker = arg;
	uint64_t generation;
	virConnectPtr conn;
	struct job job;

	while (next_job(worker, &job, &conn, &generation)) {
		if (worker->lane == &h->stats)
			stats_run(worker, conn, generation, &job);
		else
			act_run(worker, conn, generation, &job);
		(void)virConnectClose(conn);
		virResetLastError();
	}
}
