// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/bench/report/stat.h"

#include <math.h>
#include <stdlib.h>

#define CONFIDENCE 0.9

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void stat_summary(double *values, size_t n, struct summary *ret)
{
	double term = pow(0.5, (double)n), tail = term; /* P(at most i of n on one side), i = 0 */
	size_t k = 1;

	qsort(values, n, sizeof(*values), compare);
	ret->coverage = 1 - 2 * tail;
	for (size_t i = 1; 2 * i < n; i++) {
		term *= (double)(n - i + 1) / (double)i;
		tail += term;
		if (1 - 2 * tail < CONFIDENCE)
			break;
		k = i + 1;
		ret->coverage = 1 - 2 * tail;
	}
	ret->n = n;
	ret->median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
	ret->low = values[k - 1];
	ret->high = values[n - k];
}
