// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Following a guest from round to round: what became of our requests, what somebody else did, how
 * long an action takes to be seen on the host. Nothing here decides; it sets down what is so.
 */
#include "daemon/core/policy-internal.h"

#include <errno.h>

#define PAGE	    UINT64_C(4096)
#define UNDONE_FOR  (600 * SECOND)
#define UNDONE_MOST 3 /* times in that time */
#define UNDONE_BY   (16 * MIB)

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Waits double as long as the guest fails again soon after the last wait. */
void back_off(struct guest_mem *m, uint64_t now_us, enum reason reason)
{
	bool again = m->backoff_us > 0 && now_us - m->backoff_until_us < 4 * m->backoff_us;

	m->backoff_us = again ? min_u64(2 * m->backoff_us, BACKOFF_MAX) : BACKOFF_FIRST;
	m->backoff_until_us = now_us + m->backoff_us;
	m->backoff_reason = reason;
}

void refuse(struct refusal *refusal, uint64_t now_us, uint64_t first_us)
{
	refusal->until_us = now_us + (first_us << min_u64(refusal->n, 6));
	refusal->n++;
}

bool follow_at_rest(const struct guest_mem *m)
{
	return m->balloon.target == 0 ||
	       distance(m->balloon.actual, m->balloon.target) <= ACTUAL_TOLERANCE;
}

static void adopt(struct guest_mem *m, uint64_t actual)
{
	m->balloon.target = actual;
	m->balloon.moving = false;
	m->balloon.strange_us = 0;
}

/* A request that fails or makes no way: the target becomes where the guest is. */
static void give_up(struct guest_mem *m, uint64_t now_us)
{
	struct follow *b = &m->balloon;

	adopt(m, b->actual);
	b->retarget = true;
	b->retarget_reason = REASON_STUCK;
	m->acted_us = now_us;
	m->issued = 0;
	back_off(m, now_us, REASON_STUCK);
}

static void follow_request(struct view *v, uint64_t now_us)
{
	const struct request_part *r = &v->g->request;
	struct guest_mem *m = v->m;
	struct follow *b = &m->balloon;
	bool refused;

	if (distance(b->actual, b->target) <= ACTUAL_TOLERANCE) {
		b->moving = false;
		m->acted_us = now_us;
		return;
	}
	refused =
		r->at_us >= b->sent_us && r->done_us > 0 && r->status < 0 && r->target == b->target;
	if (refused || now_us - b->progress_us > STUCK_AFTER)
		give_up(m, now_us);
}

/*
 * It moved, and not for us. A guest that deflates by itself does so for lack of memory; anything
 * else is another manager. Which, is told when it has come to rest.
 */
static void judge_strange(struct view *v, uint64_t now_us)
{
	struct guest_mem *m = v->m;
	struct follow *b = &m->balloon;
	bool up = b->actual > b->target, lean = !m->tiers.free_known;

	/* Old news of our own last move may come after its end. */
	if (b->sent_us > 0 && now_us - m->acted_us < 3 * SECOND)
		return;
	if (b->strange_us == 0)
		b->strange_us = now_us;
	if (now_us - b->changed_us < 2 * SECOND)
		return;
	if (m->tiers.free_known)
		lean = b->actual - min_u64(m->tiers.used, b->actual) < 2 * m->tiers.reserve;
	if (up && v->g->balloon.autodeflate && lean) {
		b->retarget = true;
		b->retarget_reason = REASON_AUTODEFLATED;
		back_off(m, now_us, REASON_AUTODEFLATED);
	} else {
		m->foreign = true;
	}
	adopt(m, b->actual);
}

static void follow_rest(struct policy *p, struct view *v, uint64_t before, uint64_t now_us)
{
	struct guest_mem *m = v->m;
	struct follow *b = &m->balloon;
	bool ours = b->commanded > 0 &&
		    distance(b->actual, b->commanded) <= distance(before, b->commanded);

	if (b->target == 0) {
		adopt(m, b->actual);
		return;
	}
	if (distance(b->actual, b->target) <= ACTUAL_TOLERANCE) {
		b->strange_us = 0;
		return;
	}
	if (!p->settled) /* it may still be on its way to where it was sent before a restart */
		return;
	if (ours && before != b->actual && b->strange_us == 0)
		adopt(m, b->actual);
	else
		judge_strange(v, now_us);
}

/* Once or twice is bad luck. A balloon that takes back every move isn't moved again and again. */
static void undoes(struct guest_mem *m, uint64_t now_us)
{
	if (now_us - m->undone_us > UNDONE_FOR)
		m->undone = 0;
	m->undone_us = now_us;
	if (++m->undone < UNDONE_MOST)
		return;
	m->undone--;
	back_off(m, now_us, REASON_STUCK);
}

static void follow_balloon(struct policy *p, struct view *v, uint64_t now_us)
{
	const struct balloon_part *part = &v->g->balloon;
	struct follow *b = &v->m->balloon;
	uint64_t before = b->actual;

	if (part->at_us == 0)
		return;
	b->actual = part->actual;
	if (before == 0)
		before = b->actual;
	if (before != b->actual) {
		b->changed_us = now_us;
		v->m->numbers_us = max_u64(v->m->numbers_us, part->at_us);
		if (distance(b->actual, b->target) < distance(before, b->target))
			b->progress_us = now_us;
		if (b->target > 0 && b->actual > before + UNDONE_BY &&
		    b->target <= before + ACTUAL_TOLERANCE)
			undoes(v->m, now_us);
	}
	/* Given back by whoever took it: ours again. */
	if (v->m->foreign && distance(b->actual, part->maximum) <= ACTUAL_TOLERANCE) {
		v->m->foreign = false;
		adopt(v->m, b->actual);
	}
	if (v->m->foreign)
		b->target = b->actual;
	else if (b->moving)
		follow_request(v, now_us);
	else
		follow_rest(p, v, before, now_us);
}

/* What it freed is free from now on, even where the next sample can't tell because the balloon is
 * moving meanwhile. */
static void shed_freed(struct guest_mem *m, uint64_t freed)
{
	m->refused[m->shed_dear].n = 0;
	if (!m->shed_dear)
		m->lazy_good = freed >= m->shed_bytes / 10 * 9;
	m->tiers.amount[TIER_FREE] += freed;
	m->tiers.used = less(m->tiers.used, freed);
}

/* Not that it can't or may not: it was busy, or the command came late, as after a restart. */
static bool is_late(int status)
{
	return status == -ESTALE || status == -ETIME || status == -EBUSY;
}

static void follow_shed(struct view *v, uint64_t now_us)
{
	const struct agent_part *a = &v->g->agent;
	struct guest_mem *m = v->m;

	if (m->shed_at_us == 0)
		return;
	if (a->shed_done_at_us >= m->shed_at_us) {
		m->numbers_us = max_u64(m->numbers_us, a->shed_done_at_us);
		m->shed_numbers_us = a->shed_done_at_us;
		if (a->shed_status == -EAGAIN)
			m->pause_until_us = now_us + PRESSURE_WINDOW;
		else if (a->shed_status < 0)
			refuse(&m->refused[m->shed_dear], now_us,
			       is_late(a->shed_status) ? SECOND : BACKOFF_FIRST);
		else
			shed_freed(m, min_u64(a->shed_freed, m->shed_bytes));
	} else if (now_us < m->shed_until_us) {
		return;
	}
	m->shed_at_us = 0;
	m->acted_us = m->shed_done_us = now_us;
}

static void probe_done(struct guest_mem *m, uint64_t took_us)
{
	took_us = max_u64(took_us, DEAD_TIME_MIN);
	if (took_us > m->dead_us)
		m->dead_us = min_u64(took_us, DEAD_TIME_MAX);
	else
		m->dead_us -= (m->dead_us - took_us) / 4;
	if (m->probe.shed)
		m->trust = m->trust < 0.5 ? 2 * m->trust : 1;
	m->probe.at_us = 0;
}

/* The time from an action to nine tenths of its effect on the footprint, which is the host's own
 * number. Where less than half of it comes, the guest holds less than it claims. */
static void follow_probe(struct view *v, uint64_t now_us)
{
	struct guest_mem *m = v->m;
	struct probe *probe = &m->probe;
	uint64_t fallen;

	if (probe->at_us == 0 || v->g->cost.at_us <= probe->at_us)
		return;
	fallen = less(probe->footprint, v->footprint);
	if (fallen >= probe->amount / 10 * 9) {
		probe_done(m, v->g->cost.at_us - probe->at_us);
	} else if (now_us - probe->at_us > PROBE_LIMIT) {
		if (probe->shed && fallen < probe->amount / 2) {
			m->trust /= 2;
			m->trust_us = now_us;
		}
		probe->at_us = 0;
	}
	if (m->trust < 1 && now_us - m->trust_us > 60 * SECOND) {
		m->trust = m->trust < 0.5 ? 2 * m->trust : 1;
		m->trust_us = now_us;
	}
}

static void follow_deviation(struct view *v, uint64_t now_us)
{
	struct guest_mem *m = v->m;
	double h = (double)v->footprint, off;

	if (m->mean == 0)
		m->mean = h;
	if (m->balloon.moving || m->shed_at_us > 0 || now_us - m->acted_us < 2 * SECOND) {
		m->mean = h;
		return;
	}
	off = h > m->mean ? h - m->mean : m->mean - h;
	m->mean += (h - m->mean) / 8;
	m->deviation += (off - m->deviation) / 16;
}

/* All that is there now is in use. Some of it is tried again later, each time much later. */
static void is_hot(struct guest_mem *m, struct hot *hot, enum tier tier, uint64_t now_us)
{
	hot->bytes = max_u64(m->tiers.amount[tier], 1);
	hot->wait_us = hot->wait_us > 0 ? min_u64(2 * hot->wait_us, HOUR) : HOT_FIRST;
	hot->until_us = now_us + hot->wait_us;
	m->dear_bytes = 0;
}

static void cools(struct hot *hot, uint64_t now_us)
{
	if (hot->bytes == 0 || now_us <= hot->until_us)
		return;
	hot->bytes -= hot->bytes / 8 + 1;
	hot->until_us = now_us + hot->wait_us;
}

/* Pages that were read again since the last take, of all kinds. */
static uint64_t came_back(const struct guest_mem *m, const struct stat_set *s)
{
	uint64_t refaults = 0, swap_ins = 0;

	(void)stat_get(s, STAT_REFAULT_FILE, &refaults);
	(void)stat_get(s, STAT_SWAP_IN, &swap_ins);
	return less(refaults, m->refaults) + less(swap_ins, m->swap_ins);
}

/* What a take of page cache or anonymous memory did: pages that come back at once weren't cold,
 * and executable pages among them say that the next take has to be smaller. */
static void follow_cache(struct view *v, uint64_t now_us)
{
	const struct stat_set *s = &v->g->agent.stats;
	struct guest_mem *m = v->m;
	uint64_t stolen = 0, text = m->tiers.amount[TIER_TEXT];

	cools(&m->file, now_us);
	cools(&m->anon, now_us);
	if (now_us - m->take_dear_us > JUDGE_CACHE)
		m->dear_bytes = 0;
	if (m->dear_bytes == 0)
		return;
	if (stat_get(s, STAT_STEAL_EXEC, &stolen) && less(stolen, m->stolen) * PAGE > text / 400)
		m->file_part = (uint32_t)min_u64(2 * m->file_part, 64);
	else if (came_back(m, s) <= m->dear_bytes / PAGE / 2)
		return;
	if (m->shed_anon)
		is_hot(m, &m->anon, TIER_ANON, now_us);
	is_hot(m, &m->file, TIER_FILE, now_us);
}

/* From here on, what comes back is laid to the take that was just decided. */
void follow_take(struct view *v, uint64_t now_us)
{
	const struct stat_set *s = &v->g->agent.stats;
	struct guest_mem *m = v->m;

	m->take_dear_us = now_us;
	m->dear_bytes = m->shed_at_us == now_us ? m->shed_bytes : m->issued;
	m->refaults = m->swap_ins = m->stolen = UINT64_MAX; /* absent: never judged */
	(void)stat_get(s, STAT_REFAULT_FILE, &m->refaults);
	(void)stat_get(s, STAT_SWAP_IN, &m->swap_ins);
	(void)stat_get(s, STAT_STEAL_EXEC, &m->stolen);
}

static void follow_sample(struct view *v, uint64_t now_us)
{
	const struct agent_part *a = &v->g->agent;
	struct guest_mem *m = v->m;
	uint64_t then = 0, now = 0;

	/* An agent that says hello and never a number is silent, too. */
	if (a->link == AGENT_UP && m->heard_us == 0)
		m->heard_us = now_us;
	if (a->at_us == 0 || a->at_us == m->sample_us)
		return;
	m->sample_us = m->heard_us = a->at_us;
	m->had_agent = true;
	follow_cache(v, now_us);
	if (a->previous_at_us == 0 || a->previous_at_us >= a->at_us ||
	    !stat_get(&a->previous, STAT_PSI_SOME, &then) ||
	    !stat_get(&a->stats, STAT_PSI_SOME, &now))
		return;
	m->psi_rate = (double)less(now, then) / (double)(a->at_us - a->previous_at_us);
	if (m->shed_at_us == 0 && !m->balloon.moving && now_us - m->acted_us > PRESSURE_WINDOW)
		m->psi_baseline += (m->psi_rate - m->psi_baseline) / 4;
}

/* A guest that isn't running, or just came back: what it was in is void. */
static void follow_phase(struct view *v)
{
	struct guest_mem *m = v->m;

	if (m->phase == v->g->phase)
		return;
	m->phase = v->g->phase;
	m->shed_at_us = 0;
	m->issued = 0;
	m->probe.at_us = 0;
	m->balloon.retarget = false;
	if (v->g->balloon.at_us > 0)
		adopt(m, v->g->balloon.actual);
	/* A guest that boots is inflated again to where it was by its hypervisor. */
	m->balloon.strange_us = 0;
}

static void first_sight(struct view *v)
{
	struct guest_mem *m = v->m;

	m->seen = true;
	m->phase = v->g->phase;
	m->dead_us = DEAD_TIME_FIRST;
	m->trust = 1;
	m->file_part = 4;
	for (int k = 0; k < ITEM_MAX_ID; k++)
		m->learned[k] = 1;
	if (m->balloon.restored > 0)
		m->balloon.target = m->balloon.commanded = m->balloon.restored;
	m->pressure_us = 0;
}

void follow_guest(struct policy *p, struct view *v)
{
	uint64_t now_us = p->now->now_us;

	if (!v->m->seen)
		first_sight(v);
	follow_phase(v);
	if (v->g->phase != PHASE_RUNNING)
		return;
	follow_sample(v, now_us);
	follow_balloon(p, v, now_us);
	follow_shed(v, now_us);
	if (!v->footprint_known)
		return;
	follow_probe(v, now_us);
	follow_deviation(v, now_us);
}

/* What a shed freed and the balloon leaves to the guest as its reserve is reported after a while,
 * all the same. */
static uint64_t to_be_reported(const struct view *v, uint64_t now_us)
{
	const struct guest_mem *m = v->m;

	if (!v->g->balloon.reporting || !(v->g->agent.capabilities & AGENT_HAS_REPORTING) ||
	    m->shed_done_us == 0 || now_us - m->shed_done_us > REPORT_WAIT)
		return 0;
	return min_u64(m->tiers.amount[TIER_FREE], m->tiers.reserve + m->tiers.held / 2);
}

uint64_t follow_in_flight(const struct view *v, uint64_t now_us)
{
	const struct guest_mem *m = v->m;
	uint64_t bytes = v->shed_busy ? m->shed_bytes : 0;

	if (now_us < m->flight_until_us)
		bytes += min_u64(less(v->footprint, m->expected), m->issued);
	if (m->tiers.known)
		bytes += to_be_reported(v, now_us);
	return bytes;
}
