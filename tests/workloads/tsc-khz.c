/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rate of this processor's time stamp counter in kHz, to be run on the host. Under TCG it is the
 * guest's counter, too, and the guest's kernel must be told, for it compares it with an emulated
 * timer while it boots: on a busy host that gave 122 MHz instead of 2594, and a guest whose clock
 * ran 21 times too fast.
 */
#include "tests/workloads/work.h"

#ifndef __x86_64__
#error "tsc-khz reads an x86-64 counter"
#endif

struct moment {
	uint64_t ns, ticks;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

/* Both clocks at one time: the try of many that was disturbed least. */
static struct moment read_both(void)
{
	struct moment best = { 0 };
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 100; i++) {
		uint64_t before = now_ns(), ticks = __builtin_ia32_rdtsc(), after = now_ns();

		if (after - before < least) {
			least = after - before;
			best = (struct moment){ before + least / 2, ticks };
		}
	}
	return best;
}

int main(void)
{
	struct moment begin = read_both(), end;

	usleep(50000);
	end = read_both();
	work_say("%llu",
		 (unsigned long long)((end.ticks - begin.ticks) * 1000000 / (end.ns - begin.ns)));
	return 0;
}
