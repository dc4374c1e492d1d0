// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Statistics. Normally one call brings those of all guests. It hangs when a single QEMU does; then
 * the other thread of the lane goes guest by guest. The hung call holds its guest's job, so that
 * for this guest a call with NOWAIT comes back at once with only what libvirtd knows by itself:
 * it is mute, and costs no call that hangs. But a hung call that comes back goes on to the guests
 * behind, and holds the job of each of them for a moment: a guest is asked once more, some time
 * later, before it is called mute. A guest whose own call misses the deadline is hung, and is left
 * out until that call returns.
 */
#include <errno.h>
#include <string.h>

#include "daemon/hyp/internal.h"
#include "daemon/util/parse.h"
#include "daemon/util/time.h"

#define WHAT	      (VIR_DOMAIN_STATS_STATE | VIR_DOMAIN_STATS_BALLOON)
#define PASSING_BY_US (100 * USEC_PER_MSEC) /* many times what one guest's answer takes */

void stats_round_end(struct hyp *h, int code)
{
	h->round_active = false;
	hyp_push_text(h, HYP_STATS_DONE, code, "");
}

/* A call of the lane has missed its deadline: have the other thread go on, or give up. */
void stats_overdue(struct hyp *h, const struct call *call)
{
	struct job job = { .kind = JOB_SIFT, .round = call->job.round };

	if (!h->round_active || call->job.round != h->round)
		return;
	if (lane_full(&h->stats) || job_queue(&h->stats.jobs, &job, &h->stats.wake) < 0)
		stats_round_end(h, -ETIMEDOUT);
}

/* --- Reading a record ------------------------------------------------------------------------- */

struct numbers {
	struct hyp_stats stats;
	uint64_t last_update;
};

static bool get_number(const virDomainStatsRecord *record, const char *name, uint64_t *ret_value)
{
	unsigned long long value;

	/* Of another type is as good as absent. */
	if (virTypedParamsGetULLong(record->params, record->nparams, name, &value) != 1)
		return false;
	*ret_value = value;
	return true;
}

static bool get_kib(const virDomainStatsRecord *record, const char *name, uint64_t *ret_bytes)
{
	uint64_t value;

	return get_number(record, name, &value) &&
	       !__builtin_mul_overflow(value, KIB(1), ret_bytes);
}

static void read_record(const virDomainStatsRecord *record, struct numbers *ret)
{
	int state = VIR_DOMAIN_NOSTATE, reason = 0;
	uint64_t resident;

	*ret = (struct numbers){ 0 };
	(void)virTypedParamsGetInt(record->params, record->nparams, "state.state", &state);
	(void)virTypedParamsGetInt(record->params, record->nparams, "state.reason", &reason);
	ret->stats.phase = phase_from_state(state, reason);
	(void)get_kib(record, "balloon.current", &ret->stats.actual);
	(void)get_kib(record, "balloon.maximum", &ret->stats.maximum);
	ret->stats.has_usable = get_kib(record, "balloon.usable", &ret->stats.usable);
	ret->stats.has_unused = get_kib(record, "balloon.unused", &ret->stats.unused);
	/* libvirt adds the RSS last, whenever it got as far as asking QEMU. */
	ret->stats.complete = get_kib(record, "balloon.rss", &resident);
	if (!get_number(record, "balloon.last-update", &ret->last_update))
		ret->last_update = 0;
}

/* --- Publishing; with the lock held ----------------------------------------------------------- */

/* QEMU stamps with the host's wall clock, which may step: only that it changes says anything. */
static bool note_update(struct domain *domain, uint64_t last_update)
{
	bool updated = domain->last_update && last_update && last_update != domain->last_update;

	if (last_update)
		domain->last_update = last_update;
	return updated;
}

static void queue_period(struct hyp *h, struct domain *domain)
{
	struct job job = { .kind = JOB_PERIOD };

	/* Only to a QEMU that answers, since the call waits for it. */
	if (!domain->period_wanted)
		return;
	domain->period_wanted = false;
	memcpy(job.uuid, domain->uuid, sizeof(job.uuid));
	(void)job_queue(&h->act.jobs, &job, &h->act.wake);
}

static void note_completeness(struct hyp *h, struct domain *domain, bool complete)
{
	uint64_t now = now_us();

	if (complete) {
		domain->incomplete_since_us = 0;
		domain->answered = true;
		domain_set_suspect(h, domain, &domain->mute, false);
		queue_period(h, domain);
		return;
	}
	if (!domain->incomplete_since_us)
		domain->incomplete_since_us = now;
	/* The test driver never tells more: without an answer ever there is nothing to miss. */
	if (lane_overdue(&h->stats) ||
	    (domain->answered && now - domain->incomplete_since_us > SUSPECT_AFTER_US))
		domain_set_suspect(h, domain, &domain->mute, true);
}

/* Is a call that hangs the likely reason why so little came, for the first time? */
static bool is_doubtful(const struct hyp *h, const struct domain *domain, const struct job *job)
{
	return job->kind == JOB_SIFT && !domain->mute && !job->again && lane_overdue(&h->stats);
}

static void publish(struct hyp *h, const virDomainStatsRecord *record, const struct job *job)
{
	struct hyp_message message;
	struct domain *domain;
	struct numbers numbers;
	uint8_t uuid[16];

	if (virDomainGetUUID(record->dom, uuid) < 0)
		return;
	domain = domain_find(h, uuid);
	/* Not described yet: its HYP_GUEST comes first. */
	if (!domain)
		return;
	read_record(record, &numbers);
	domain->doubted = !numbers.stats.complete && is_doubtful(h, domain, job);
	if (domain->doubted)
		return;
	numbers.stats.updated = note_update(domain, numbers.last_update);
	note_completeness(h, domain, numbers.stats.complete);
	domain_set_phase(h, domain, numbers.stats.phase);
	numbers.stats.phase = domain->phase;
	message = message_for(HYP_STATS, domain);
	message.stats = numbers.stats;
	hyp_push(h, &message);
}

/* --- Asking ----------------------------------------------------------------------------------- */

/* Is the round still the one that this call was made for? */
static bool is_current(const struct hyp *h, uint64_t generation, const struct job *job)
{
	return h->generation == generation && h->round_active && h->round == job->round;
}

/*
 * Whether a migration is under way is told by events, but its start may have been before we came,
 * and its end may get lost. libvirtd answers this by itself unless there is such a job.
 */
static bool is_job_check_due(struct hyp *h, const uint8_t uuid[16])
{
	const struct domain *domain = domain_find(h, uuid);

	return domain && domain->answered && !domain->in_call && !domain->hung && !domain->mute &&
	       !domain->doubted && (domain->migrating || !domain->job_checked);
}

static void note_job(struct hyp *h, const uint8_t uuid[16], bool active)
{
	struct domain *domain = domain_find(h, uuid);
	struct job job = { .kind = JOB_DESCRIBE };

	if (!domain)
		return;
	domain->job_checked = true;
	if (active) {
		domain_set_migrating(h, domain);
	} else if (domain->migrating) {
		domain->migrating = false;
		memcpy(job.uuid, uuid, sizeof(job.uuid));
		(void)job_queue(&h->jobs, &job, &h->wake);
	}
}

static void check_job(struct worker *worker, virDomainPtr dom, const struct job *job)
{
	struct hyp *h = worker->lane->hyp;
	virDomainJobInfo info = { 0 };
	bool due, in_time;
	uint8_t uuid[16];
	int r;

	if (virDomainGetUUID(dom, uuid) < 0)
		return;
	(void)pthread_mutex_lock(&h->lock);
	due = is_job_check_due(h, uuid);
	if (due)
		call_begin(worker, job, uuid, h->stats_deadline_us);
	(void)pthread_mutex_unlock(&h->lock);
	if (!due)
		return;
	r = virDomainGetJobInfo(dom, &info);
	(void)pthread_mutex_lock(&h->lock);
	in_time = call_end(worker);
	if (r == 0 && in_time)
		note_job(h, uuid,
			 info.type == VIR_DOMAIN_JOB_BOUNDED ||
				 info.type == VIR_DOMAIN_JOB_UNBOUNDED);
	(void)pthread_mutex_unlock(&h->lock);
}

/* One call, for all domains or for one. Returns the number of records, negative on error. */
static int ask(struct worker *worker, virConnectPtr conn, virDomainPtr only, const struct job *job,
	       virDomainStatsRecordPtr **ret_records, bool *ret_in_time)
{
	virDomainPtr doms[] = { only, NULL };
	uint8_t uuid[16] = { 0 };
	int n;

	if (only && virDomainGetUUID(only, uuid) < 0)
		return -1;
	(void)pthread_mutex_lock(&worker->lane->hyp->lock);
	call_begin(worker, job, only ? uuid : NULL, worker->lane->hyp->stats_deadline_us);
	(void)pthread_mutex_unlock(&worker->lane->hyp->lock);
	if (only)
		n = virDomainListGetStats(doms, WHAT, ret_records,
					  VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT);
	else
		n = virConnectGetAllDomainStats(conn, WHAT, ret_records,
						VIR_CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE |
							VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT);
	(void)pthread_mutex_lock(&worker->lane->hyp->lock);
	*ret_in_time = call_end(worker);
	(void)pthread_mutex_unlock(&worker->lane->hyp->lock);
	return n;
}

/* What a late call brings was true at some time since it was sent, nobody knows when: not used. */
static void take_records(struct worker *worker, virDomainStatsRecordPtr *records, int n,
			 uint64_t generation, const struct job *job, bool in_time)
{
	struct hyp *h = worker->lane->hyp;

	(void)pthread_mutex_lock(&h->lock);
	for (int i = 0; i < n && in_time && is_current(h, generation, job); i++)
		publish(h, records[i], job);
	(void)pthread_mutex_unlock(&h->lock);
	for (int i = 0; i < n && in_time; i++)
		check_job(worker, records[i]->dom, job);
	if (n >= 0)
		virDomainStatsRecordListFree(records);
}

static void round_through(struct hyp *h, uint64_t generation, const struct job *job, int code)
{
	(void)pthread_mutex_lock(&h->lock);
	if (is_current(h, generation, job))
		stats_round_end(h, code);
	(void)pthread_mutex_unlock(&h->lock);
}

/* Whether to ask a domain by itself, or once more. */
static bool is_askable(struct hyp *h, virDomainPtr dom, uint64_t generation, const struct job *job)
{
	struct domain *domain;
	uint8_t uuid[16];
	bool askable;

	if (virDomainGetUUID(dom, uuid) < 0)
		return false;
	(void)pthread_mutex_lock(&h->lock);
	domain = domain_find(h, uuid);
	askable = domain && !domain->in_call && is_current(h, generation, job) &&
		  (!job->again || domain->doubted);
	if (askable)
		domain->doubted = false;
	(void)pthread_mutex_unlock(&h->lock);
	return askable;
}

static void ask_each(struct worker *worker, virConnectPtr conn, virDomainPtr *doms, int n,
		     uint64_t generation, const struct job *job)
{
	virDomainStatsRecordPtr *records = NULL;
	bool in_time = false;

	for (int i = 0; i < n; i++) {
		int n_records;

		if (!is_askable(worker->lane->hyp, doms[i], generation, job))
			continue;
		n_records = ask(worker, conn, doms[i], job, &records, &in_time);
		take_records(worker, records, n_records, generation, job, in_time);
	}
}

/* Let the call that came back get past those whose job it held. Returns whether there are any. */
static bool let_pass(struct hyp *h)
{
	struct timespec until = timespec_of(now_us() + PASSING_BY_US);
	struct domain *domain, *next;
	bool doubted = false;

	(void)pthread_mutex_lock(&h->lock);
	HASH_ITER (hh, h->domains, domain, next)
		doubted = doubted || domain->doubted;
	while (doubted && lane_overdue(&h->stats) && !h->stopping)
		if (pthread_cond_timedwait(&h->stats.wake, &h->lock, &until) == ETIMEDOUT)
			break;
	(void)pthread_mutex_unlock(&h->lock);
	return doubted;
}

static void sift(struct worker *worker, virConnectPtr conn, uint64_t generation,
		 const struct job *round)
{
	struct job job = { .kind = JOB_SIFT, .round = round->round };
	struct hyp *h = worker->lane->hyp;
	virDomainPtr *doms = NULL;
	int n;

	n = virConnectListAllDomains(conn, &doms, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
	ask_each(worker, conn, doms, n, generation, &job);
	job.again = true;
	if (let_pass(h))
		ask_each(worker, conn, doms, n, generation, &job);
	for (int i = 0; i < n; i++)
		(void)virDomainFree(doms[i]);
	free(doms);
	round_through(h, generation, &job, -ETIMEDOUT);
}

static bool has_suspects(struct hyp *h)
{
	struct domain *domain, *next;
	bool found;

	(void)pthread_mutex_lock(&h->lock);
	found = lane_overdue(&h->stats);
	HASH_ITER (hh, h->domains, domain, next)
		found = found || domain->hung;
	(void)pthread_mutex_unlock(&h->lock);
	return found;
}

void stats_run(struct worker *worker, virConnectPtr conn, uint64_t generation,
	       const struct job *job)
{
	struct hyp *h = worker->lane->hyp;
	virDomainStatsRecordPtr *records = NULL;
	bool in_time = false;
	int n;

	if (job->kind == JOB_SIFT || has_suspects(h)) {
		sift(worker, conn, generation, job);
		return;
	}
	n = ask(worker, conn, NULL, job, &records, &in_time);
	take_records(worker, records, n, generation, job, in_time);
	/* When it was late, the other thread has the round. */
	if (in_time)
		round_through(h, generation, job, n < 0 ? -EIO : 0);
}
