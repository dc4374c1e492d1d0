// SPDX-License-Identifier: GPL-2.0-or-later
/* Its own object, so that programs that don't call log_use_journal() need no libsystemd. */
#include "daemon/util/log.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#define FIELDS_MAX 24

static void journal_sink(int priority, const char *const *fields, const char *text)
{
	char message[sizeof("MESSAGE=") + 1024], level[sizeof("PRIORITY=0")];
	struct iovec iov[FIELDS_MAX + 2];
	int n = 0;

	(void)snprintf(message, sizeof(message), "MESSAGE=%s", text);
	(void)snprintf(level, sizeof(level), "PRIORITY=%d", priority & LOG_PRIMASK);
	iov[n++] = (struct iovec){ message, strlen(message) };
	iov[n++] = (struct iovec){ level, strlen(level) };
	for (; fields && *fields && n < FIELDS_MAX + 2; fields++) {
		/* The journal only reads; iov_base has no const form. */
		iov[n].iov_base = (void *)(uintptr_t)*fields;
		iov[n++].iov_len = strlen(*fields);
	}
	if (sd_journal_sendv(iov, n) < 0)
		(void)fprintf(stderr, "<%d>%s\n", priority & LOG_PRIMASK, text);
}

int log_use_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uintmax_t device, inode;
	struct stat st;

	if (!stream || sscanf(stream, "%ju:%ju", &device, &inode) != 2)
		return 0;
	if (fstat(STDERR_FILENO, &st) < 0 || st.st_dev != device || st.st_ino != inode)
		return 0;
	log_set_sink(journal_sink);
	return 1;
}
