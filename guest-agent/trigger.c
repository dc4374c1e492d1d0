// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest-agent/trigger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guest-agent/util.h"

/* 15 % of the window; the kernel's shortest, then the shortest for those without privilege. */
static const struct {
	unsigned int threshold_us, window_us;
} windows[] = {
	{ 75000, 500000 },
	{ 300000, 2000000 },
};

int trigger_arm(struct trigger *trigger, const char *root)
{
	*trigger = (struct trigger){ .fd = -1, .error = -EOPNOTSUPP };
	/* A file in a made-up root would be overwritten and never fire. */
	if (*root)
		return trigger->error;
	for (size_t i = 0; i < sizeof(windows) / sizeof(*windows); i++) {
		char text[64];
		int fd = root_open(root, "/proc/pressure/memory", O_RDWR | O_NONBLOCK);

		if (fd < 0) {
			trigger->error = fd;
			return fd;
		}
		(void)snprintf(text, sizeof(text), "some %u %u", windows[i].threshold_us,
			       windows[i].window_us);
		/* The kernel wants the NUL too. */
		if (write(fd, text, strlen(text) + 1) > 0) {
			*trigger = (struct trigger){ .fd = fd,
						     .threshold_us = windows[i].threshold_us,
						     .window_us = windows[i].window_us };
			return 0;
		}
		trigger->error = -errno;
		(void)close(fd);
	}
	return trigger->error;
}

void trigger_close(struct trigger *trigger)
{
	if (trigger->fd >= 0)
		(void)close(trigger->fd);
	trigger->fd = -1;
}
