// SPDX-License-Identifier: GPL-2.0-or-later
/* host-cost PID MAXIMUM: what daemon/host says that a guest costs, in KiB, and how long it took. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/host/host.h"
#include "daemon/util/time.h"

int main(int argc, char **argv)
{
	struct host_guest *guest = NULL;
	struct cost_part cost = { 0 };
	struct host *host = NULL;
	uint64_t begin_us, first_us, next_us;
	int r;

	if (argc != 3)
		return EXIT_FAILURE;
	r = host_new(&host, &(struct host_options){ 0 });
	if (r == 0)
		r = host_guest_open(host, atoi(argv[1]), strtoull(argv[2], NULL, 10), true, &guest);
	begin_us = now_us();
	if (r == 0)
		r = host_guest_read(guest, begin_us, &cost);
	first_us = now_us() - begin_us;
	begin_us = now_us();
	if (r == 0)
		r = host_guest_read(guest, begin_us, &cost);
	next_us = now_us() - begin_us;
	if (r == 0)
		printf("footprint=%" PRIu64 " overhead=%" PRIu64 " measured=%d first=%" PRIu64
		       "us next=%" PRIu64 "us\n",
		       cost.footprint / 1024, cost.overhead / 1024,
		       host_guest_overhead_measured(guest), first_us, next_us);
	else
		fprintf(stderr, "host-cost: %s\n", strerror(-r));
	(void)host_guest_close(guest);
	(void)host_free(host);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
