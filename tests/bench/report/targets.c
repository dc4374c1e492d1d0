// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/bench/report/targets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/cleanup.h"
#include "tests/bench/report/expr.h"
#include "tests/bench/report/lines.h"
#include "tests/bench/report/table.h"

#define ENOUGH 5

struct target {
	const char *name, *expression;
	char op; /* '<', '>' or '=' */
	double bound;
};

static int parse(char *line, struct target *ret)
{
	char *colon = strstr(line, ": "), *op, *end;

	if (!colon)
		return -EINVAL;
	*colon = '\0';
	/* The relation is the last word but one. */
	op = strrchr(colon + 2, ' ');
	if (!op || op == colon + 2)
		return -EINVAL;
	ret->bound = strtod(op + 1, &end);
	if (end == op + 1 || *end)
		return -EINVAL;
	*op = '\0';
	op = strrchr(colon + 2, ' ');
	if (!op || (strcmp(op, " <=") != 0 && strcmp(op, " >=") != 0 && strcmp(op, " =") != 0))
		return -EINVAL;
	ret->op = op[1];
	*op = '\0';
	ret->name = line;
	ret->expression = colon + 2;
	return 0;
}

static bool holds(const struct target *target, double value)
{
	return target->op == '<'   ? value <= target->bound
	       : target->op == '>' ? value >= target->bound
				   : value == target->bound;
}

/* Met or not; what was measured or why it was not is in @said. */
static bool judge(const struct target *target, const struct summary *summary, char *said,
		  size_t size)
{
	char median[32], low[32], high[32];
	const char *more = "";
	bool met = holds(target, summary->median);

	format_number(summary->median, median, sizeof(median));
	format_number(summary->low, low, sizeof(low));
	format_number(summary->high, high, sizeof(high));
	if (summary->n < ENOUGH) {
		met = false;
		more = ", too few repetitions";
	} else if (holds(target, summary->low) != holds(target, summary->high)) {
		more = ", and the interval reaches over the bound";
	}
	snprintf(said, size, "%s (%s..%s, n=%zu, %.1f %%)%s", median, low, high, summary->n,
		 summary->coverage * 100, more);
	return met;
}

struct checking {
	const struct bench *bench;
	FILE *to;
	struct verdicts *verdicts;
};

static int check(void *arg, char *line, char *problem, size_t size)
{
	const struct checking *c = arg;
	struct target target;
	struct summary summary;
	char said[256], bound[32];
	bool met = false;
	int r;

	if (parse(line, &target) < 0) {
		snprintf(problem, size, "it isn't 'name: expression <= bound'");
		return -EINVAL;
	}
	r = expr_summary(c->bench, NULL, target.expression, &summary, NULL, problem, size);
	if (r < 0 && r != -ENODATA)
		return r;
	if (!expr_is_wanted(c->bench, target.expression)) {
		c->verdicts->unasked++;
		return 0;
	}
	if (r == 0)
		met = judge(&target, &summary, said, sizeof(said));
	else
		snprintf(said, sizeof(said), "no result: %.200s", problem);
	c->verdicts->met += met;
	c->verdicts->missed += !met;
	format_number(target.bound, bound, sizeof(bound));
	fprintf(c->to, "%s  %s: %s, target %s%s %s\n", met ? "PASS" : "MISS", target.name, said,
		target.op == '='   ? ""
		: target.op == '<' ? "<"
				   : ">",
		"=", bound);
	return 0;
}

int targets_check(const struct bench *bench, const char *path, FILE *to, struct verdicts *ret,
		  char *problem, size_t size)
{
	struct checking checking = { .bench = bench, .to = to, .verdicts = ret };

	*ret = (struct verdicts){ .met = 0 };
	return lines_each(path, check, &checking, problem, size);
}
