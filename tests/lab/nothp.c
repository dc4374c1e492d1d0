/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nothp CMD...: run a command without transparent huge pages. QEMU asks for them for the guest's
 * memory, and then one touched page costs the host 2 MiB: what a test wants to see of single pages
 * drowns. The setting is inherited through libvirtd by every QEMU that it starts.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: nothp COMMAND [ARG]...\n");
		return 2;
	}
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) < 0) {
		fprintf(stderr, "nothp: cannot switch huge pages off: %s\n", strerror(errno));
		return 1;
	}
	execvp(argv[1], argv + 1);
	fprintf(stderr, "nothp: cannot run %s: %s\n", argv[1], strerror(errno));
	return 127;
}
