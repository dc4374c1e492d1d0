/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the policy share: the memory of each guest that lasts from round to round, and
 * the view of each guest that a round builds. Private to the policy's own files; tests use policy.h.
 */
#ifndef BALLAST_CORE_POLICY_INTERNAL_H
#define BALLAST_CORE_POLICY_INTERNAL_H

#include <stdbool.h>

#include "daemon/core/policy.h"
#include "daemon/core/solver.h"
#include "daemon/core/tiers.h"
#include "daemon/util/num.h"

#define MIB		   (UINT64_C(1) << 20)
#define SECOND		   UINT64_C(1000000)

#define ACTUAL_TOLERANCE   (MIB / 4) /* QEMU and guest round to pages */
#define SHED_LIFETIME	   (5 * SECOND)
#define DEAD_TIME_FIRST	   SECOND /* until it was measured */
#define DEAD_TIME_MIN	   (SECOND / 10)
#define DEAD_TIME_MAX	   (10 * SECOND)
#define PROBE_LIMIT	   (8 * SECOND) /* an effect that takes longer isn't ours */
#define STUCK_AFTER	   (5 * SECOND) /* without any progress of actual */
#define BACKOFF_FIRST	   (30 * SECOND)
#define BACKOFF_MAX	   (3600 * SECOND)
#define STANDSTILL_MIN	   (3 * SECOND) /* after a start */
#define STANDSTILL_MAX	   (10 * SECOND)
#define ACCEPT_FOR	   (600 * SECOND) /* after a restart */
#define REPORT_WAIT	   (9 * SECOND / 2) /* two passes of free page reporting */
#define SLACK_STAY	   (10 * SECOND) /* before anything is given for it */
#define PRESSURE_WINDOW	   (2 * SECOND)
#define RELIEF_HOLD	   (10 * SECOND)
#define HOUR		   (3600 * SECOND)
#define LOST_BUCKETS	   12
#define REVERSALS_PER_HOUR 6
#define GAUGE_SMALL	   (16 * MIB) /* of lazyfree memory: taken whole at once */
#define ORDER_PATIENCE	   (10 * SECOND) /* with a guest whose lazyfree memory doesn't go */
#define CHUNK_MIN	   MIB
#define JUDGE_CACHE	   (30 * SECOND) /* so long, pages that come back are laid to a take */
#define HOT_FIRST	   (60 * SECOND) /* page cache in use is left alone for so long */

enum direction { DIRECTION_NONE, DIRECTION_TAKE, DIRECTION_GIVE };

/* An action whose effect on the footprint is being timed. */
struct probe {
	uint64_t at_us, footprint, amount; /* at_us 0: none */
	bool shed;
};

/* Balloon, as followed from round to round. */
struct follow {
	uint64_t target; /* that the policy stands by, 0: none yet */
	uint64_t restored; /* from before a restart, 0: none */
	uint64_t commanded; /* last target that was sent to the hypervisor, 0: none */
	uint64_t actual; /* as last seen */
	uint64_t changed_us; /* when it was last seen to have changed */
	uint64_t progress_us; /* when it was last seen nearer to the target */
	uint64_t sent_us; /* the last request */
	uint64_t strange_us; /* since when actual isn't where we left it, 0: it is */
	bool moving; /* a request of ours isn't done */
	bool retarget; /* tell the hypervisor that the target is where actual is */
	enum reason retarget_reason;
};

/* Memory that came back when it was taken: in use, and left alone for a while. */
struct hot {
	uint64_t bytes, until_us, wait_us;
};

/* What a guest refuses is asked again, each time much later. */
struct refusal {
	uint64_t until_us;
	uint32_t n;
};

struct guest_mem {
	bool seen;
	bool had_agent;
	uint64_t heard_us; /* of its agent: the last sample, or when its silence began */
	enum guest_phase phase;
	struct follow balloon;
	uint64_t shed_at_us, shed_until_us, shed_bytes; /* at 0: none outstanding */
	bool shed_anon; /* it may take anonymous memory */
	bool shed_dear; /* the outstanding one takes more than lazyfree memory */
	struct refusal refused[2]; /* by the agent: of sheds of lazyfree memory, of dearer ones */
	struct refusal profile; /* an answer that doesn't come counts as one */
	uint64_t expected; /* footprint that the outstanding actions lead to */
	uint64_t issued, flight_until_us;
	uint64_t shed_done_us; /* of the last */
	uint64_t acted_us; /* end of the last action, as seen */
	uint64_t take_us, take_dear_us, give_us; /* when last decided; dear: ITEM_FILE and beyond */
	struct probe probe;
	uint64_t dead_us;
	uint64_t numbers_us; /* guest numbers up to this time are from before an action's end */
	uint64_t shed_numbers_us; /* ... of a shed's */
	uint64_t sample_us, stolen; /* last sample that was looked at; executable pages lost */
	uint64_t asked_us; /* for a sample */
	double mean, deviation; /* of the footprint while nothing is done */
	uint32_t file_part; /* a take of page cache is at most one in so many */
	uint64_t dear_bytes; /* of the last such take, 0: judged */
	uint64_t refaults, swap_ins; /* pages, when it was decided */
	struct hot file, anon;
	double trust; /* part of the claimed lazyfree and file memory that is believed */
	uint64_t trust_us;
	double learned[ITEM_MAX_ID]; /* factor on the prior price */
	struct tiers tiers; /* as last known */
	uint64_t lost[LOST_BUCKETS], lost_bucket; /* taken, by five minutes */
	enum direction direction;
	uint64_t reversal_us[REVERSALS_PER_HOUR];
	uint64_t lazy_start, lazy_asked; /* in this shortage: the most that there was, and sheds */
	uint64_t lazy_us; /* the last such shed */
	bool lazy_good; /* it freed what was asked for: the gauge can be believed */
	uint64_t pressure_us; /* last frame that was dealt with */
	uint64_t judge_us; /* frame that may be of our own making, 0: none */
	uint64_t pause_until_us; /* no takes */
	double psi_baseline, psi_rate; /* stalled part of the time: before the action, now */
	uint64_t relief_us, relief_granted, relief_footprint, debt;
	uint64_t backoff_us, backoff_until_us;
	enum reason backoff_reason;
	uint32_t undone; /* moves of ours that the guest took back lately */
	uint64_t undone_us; /* the last time */
	uint64_t high_since_us; /* footprint above the cap since */
	bool foreign;
	enum reason observed[ACTION_MAX_ID]; /* would-be decisions that were last told */
};

/* One guest in one round. */
struct view {
	const struct guest_snapshot *g;
	struct guest_mem *m;
	struct verdict *v;
	uint64_t footprint, actual, min, max, entitlement; /* H, C */
	bool footprint_known; /* seen at least once */
	bool excluded; /* nothing may be done to it: .v->reason says why */
	bool observed; /* what is decided isn't carried out */
	bool busy; /* an action is outstanding, or numbers are older than its end */
	bool shed_busy; /* ... of a shed: what the guest holds isn't known */
	bool blind; /* numbers are missing */
	bool balloons, sheds, sheds_lazyfree; /* means that can be used now */
	bool acted; /* a decision was made this round */
	bool dear; /* nothing cheap to take from it this round */
	uint64_t band;
	struct solver_guest *s;
};

struct policy {
	size_t capacity;
	struct guest_mem *mem; /* by slot */
	struct view *views; /* by index in the snapshot */
	struct solver_guest *solver;
	struct solver_event *events;
	/* Of the host, from round to round. */
	uint64_t first_us;
	bool restarted; /* targets were restored */
	bool settled; /* the standstill after the start is over */
	bool seen; /* ... isn't, but all numbers are there */
	uint64_t accepted, accepted_caps; /* lack of reserve from before a restart */
	enum level level;
	uint64_t level_since_us;
	uint64_t budget_configured, budget_rose_us;
	double growth, psi_scale; /* bytes per second; 1 to 2 */
	uint64_t last_round_us, last_us, last_footprint;
	bool short_of; /* taking, until the need is met */
	uint64_t short_since_us, short_ended_us, lock_since_us;
	uint64_t slack_since_us;
	/* Of the round. */
	const struct snapshot *now;
	const struct settings *settings;
	struct plan *plan;
	size_t n;
	uint64_t fresh_us;
	uint64_t pool, reserve; /* the two parts of R */
	uint64_t lent; /* from the pool, beyond entitlements */
	uint64_t unmanaged, commitment; /* footprint of those without control; caps of the rest */
	uint64_t cheaper; /* lazyfree memory that dearer takes wait for */
	uint64_t caps_excess; /* of the caps over what a hard budget allows */
	uint64_t promised; /* granted and not used yet */
	bool budget_known, observing;
};

/* follow.c: what became of what was done, and what others did. */
void follow_guest(struct policy *p, struct view *v);
uint64_t follow_in_flight(const struct view *v, uint64_t now_us);
void refuse(struct refusal *refusal, uint64_t now_us, uint64_t first_us);
bool follow_at_rest(const struct guest_mem *m); /* actual is where the target is */
void follow_take(struct view *v, uint64_t now_us);
void back_off(struct guest_mem *m, uint64_t now_us, enum reason reason);

/* budget.c: the host's side of the round. */
void budget_round(struct policy *p);
uint64_t commit_floor(const struct view *v); /* of a balloon that takes free memory only */
bool budget_rose(const struct policy *p); /* a short while ago */

/* take.c */
void take_amounts(struct policy *p);
void take_round(struct policy *p);
void lock_round(struct policy *p);

/* give.c */
void pause_guest(struct policy *p, struct view *v);
void relief_round(struct policy *p);
void give_round(struct policy *p);

/* view.c */
void view_guest(struct policy *p, size_t i);

/*
 * decide.c. The decide functions return whether there is a decision; v->acted then holds, and what
 * is remembered follows it, unless the guest is only observed.
 */
void say(struct view *v, enum guest_state state, enum reason reason, uint64_t a, uint64_t b,
	 uint64_t c);
bool decide_balloon(struct policy *p, struct view *v, uint64_t target, enum reason reason,
		    const uint64_t operand[4]);
bool decide_shed(struct policy *p, struct view *v, uint64_t bytes, uint32_t flags,
		 enum reason reason, const uint64_t operand[4]);
void decide_simple(struct policy *p, struct view *v, enum action action, enum reason reason,
		   uint64_t operand);
bool reversal_allowed(const struct policy *p, const struct view *v, enum direction direction);

#endif
