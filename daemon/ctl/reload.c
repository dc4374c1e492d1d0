// SPDX-License-Identifier: GPL-2.0-or-later
/* `ballastctl reload`: have the daemon read its configuration again, and learn whether it could. */
#include "daemon/ctl/client.h"
#include "daemon/util/cleanup.h"

int ctl_reload(int argc, char **argv)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
	struct client_options options;
	int status;

	if (!client_parse(argc, argv, "reload", CLIENT_NO_GUEST, &options, &status))
		return status;
	return client_call(&options, "Reload", false, &answer);
}
