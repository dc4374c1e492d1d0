// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/core/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/text.h"

const struct reason_info reason_infos[REASON_MAX_ID] = {
#define REASON(id_, name_, text_, a_, b_, c_, d_)                                                  \
	[REASON_##id_] = { .name = (name_),                                                        \
			   .text = (text_),                                                        \
			   .operand = { (a_), (b_), (c_), (d_) } },
#include "daemon/core/reason.def"
#undef REASON
};

int plan_init(struct plan *plan, size_t capacity)
{
	size_t n = capacity ? capacity : 1;

	*plan = (struct plan){ .capacity = capacity };
	plan->verdicts = calloc(n, sizeof(*plan->verdicts));
	plan->decisions = calloc(n * PLAN_DECISIONS_PER_GUEST, sizeof(*plan->decisions));
	plan->observed = calloc(n * PLAN_DECISIONS_PER_GUEST, sizeof(*plan->observed));
	if (!plan->verdicts || !plan->decisions || !plan->observed) {
		plan_done(plan);
		return -ENOMEM;
	}
	return 0;
}

void plan_done(struct plan *plan)
{
	free(plan->verdicts);
	free(plan->decisions);
	free(plan->observed);
	*plan = (struct plan){ 0 };
}

const char *action_name(enum action action)
{
	static const char *const names[ACTION_MAX_ID] = {
		[ACTION_NONE] = "none",	      [ACTION_SHED] = "shed",
		[ACTION_BALLOON] = "balloon", [ACTION_PROFILE] = "profile",
		[ACTION_SAMPLE] = "sample",
	};

	return names[action];
}

const char *guest_state_name(enum guest_state state)
{
	static const char *const names[STATE_MAX_ID] = {
		[STATE_IDLE] = "idle",	       [STATE_OBSERVED] = "observed",
		[STATE_EXCLUDED] = "excluded", [STATE_GIVING] = "giving",
		[STATE_RELIEVED] = "relieved", [STATE_LOCKED] = "locked",
		[STATE_WAITING] = "waiting",   [STATE_BACKOFF] = "backoff",
		[STATE_BLIND] = "blind",
	};

	return names[state];
}

/* Appends to buf at *used; what doesn't fit is cut off. */
static void append(char *buf, size_t size, size_t *used, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void append(char *buf, size_t size, size_t *used, const char *format, ...)
{
	va_list ap;
	int n;

	if (*used >= size)
		return;
	va_start(ap, format);
	n = vsnprintf(buf + *used, size - *used, format, ap);
	va_end(ap);
	if (n > 0)
		*used += (size_t)n;
}

static void append_amount(char *buf, size_t size, size_t *used, const char *name, uint64_t value)
{
	if (text_ends_with(name, "_us"))
		append(buf, size, used, "%.*s %.1f s", (int)strlen(name) - 3, name,
		       (double)value / 1e6);
	else if (text_ends_with(name, "_pct"))
		append(buf, size, used, "%.*s %.2f %%", (int)strlen(name) - 4, name,
		       (double)value / 100);
	else if (text_ends_with(name, "_n"))
		append(buf, size, used, "%.*s %" PRIu64, (int)strlen(name) - 2, name, value);
	else
		append(buf, size, used, "%s %.1f MiB", name, (double)value / (1 << 20));
}

void decision_text(const struct decision *decision, char *buf, size_t size)
{
	const struct reason_info *info = &reason_infos[decision->reason];
	size_t used = 0;

	if (size == 0)
		return;
	buf[0] = '\0';
	if (decision->action == ACTION_BALLOON)
		append(buf, size, &used,
		       "balloon %.1f -> %.1f MiB: ", (double)decision->old_target / (1 << 20),
		       (double)decision->new_target / (1 << 20));
	else if (decision->action == ACTION_SHED)
		append(buf, size, &used, "shed %.1f MiB: ", (double)decision->bytes / (1 << 20));
	else if (decision->action == ACTION_PROFILE)
		append(buf, size, &used, "profile %s: ", level_name(decision->level));
	append(buf, size, &used, "%s", info->text);
	for (int i = 0; i < 4 && info->operand[i][0]; i++) {
		append(buf, size, &used, i == 0 ? " (" : ", ");
		append_amount(buf, size, &used, info->operand[i], decision->operand[i]);
	}
	if (info->operand[0][0])
		append(buf, size, &used, ")");
}
