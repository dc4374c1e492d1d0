// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the agents say, into the snapshot. Their numbers are taken as they are: the core compares
 * them with what the host knows.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/app/manager.h"
#include "daemon/guest/channel.h"
#include "daemon/util/log.h"

static struct agent_part *agent_of(struct guest *guest)
{
	return &guest_snap(&guest->manager->guests, guest)->agent;
}

static const char *name_of(struct guest *guest)
{
	return guest_snap(&guest->manager->guests, guest)->name;
}

static void on_link(struct channel *channel, enum agent_link link, const char *reason,
		    void *userdata)
{
	struct guest *guest = userdata;
	struct agent_part *agent = agent_of(guest);

	(void)channel;
	agent->link = link;
	if (link != AGENT_UP) {
		/* Nobody says any more what is in force, nor holds it. */
		agent->profile_set = false;
		agent->in_force = (struct profile){ 0 };
	}
	if (link == AGENT_BROKEN || link == AGENT_BUSY)
		log_warning("%s: agent channel %s: %s", name_of(guest), agent_link_name(link),
			    reason);
	else
		log_debug("%s: agent channel %s: %s", name_of(guest), agent_link_name(link),
			  reason);
	manager_kick(guest->manager);
}

/* What a guest's kernel without the bundled patches lacks, in words: "" for one that has all. */
static const char *kernel_lacks(const struct wire_hello *hello, char *buf, size_t size)
{
	static const struct {
		uint64_t capability;
		const char *name;
	} parts[] = {
		{ WIRE_CAP_LAZYFREE, "count of lazyfree memory" },
		{ WIRE_CAP_EXEC, "count of text" },
		{ WIRE_CAP_PSI, "pressure" },
		{ WIRE_CAP_RECLAIM, "memory.reclaim" },
	};
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && used < size; i++)
		if (!(hello->capabilities & parts[i].capability))
			used += (size_t)snprintf(buf + used, size - used, "%s%s",
						 used ? ", " : ", without ", parts[i].name);
	return buf;
}

static void on_hello(struct channel *channel, const struct wire_hello *hello, bool new_session,
		     void *userdata)
{
	struct guest *guest = userdata;
	struct agent_part *agent = agent_of(guest);
	char lacks[128];

	(void)channel;
	if (new_session) {
		*agent = (struct agent_part){ .link = AGENT_UP };
		guest->profile_warned = false;
		log_info("%s: agent %s on kernel %s%s", name_of(guest), hello->agent,
			 hello->release, kernel_lacks(hello, lacks, sizeof(lacks)));
	}
	agent->capabilities = channel_capabilities(hello);
	agent->own = hello->own;
	agent->in_force = hello->now;
	agent->settable = channel_settable(hello);
	manager_kick(guest->manager);
}

static void on_sample(struct channel *channel, const struct wire_sample *sample, uint64_t at_us,
		      void *userdata)
{
	struct guest *guest = userdata;
	struct agent_part *agent = agent_of(guest);

	(void)channel;
	agent->previous = agent->stats;
	agent->previous_at_us = agent->at_us;
	agent->stats = sample->stats;
	agent->approximate = sample->approximate;
	agent->at_us = at_us;
	agent->swap_entries_age_us = sample->slow_age_us;
	if (sample->cause != WIRE_CAUSE_TIMER)
		manager_kick(guest->manager);
}

static void on_pressure(struct channel *channel, const struct wire_pressure *pressure,
			uint64_t at_us, void *userdata)
{
	struct guest *guest = userdata;

	(void)channel;
	(void)pressure;
	agent_of(guest)->pressure_at_us = at_us;
	manager_kick(guest->manager);
}

/*
 * Whether all was set that can be: a kernel that lacks or refuses some of the settings, or an owner
 * who keeps some, has got the others, and to ask again brings no more. Without room for the note of
 * its own values the guest sets nothing, and may later.
 */
static bool profile_answered(const struct wire_result *result, int status)
{
	return status == 0 || (result->asked && status != -ENOSPC);
}

/*
 * What lies in the guest's kernel or its owner's will is shown by the settings in force, and what
 * came late is asked for again; the rest somebody should look at, once a session.
 */
static void warn_of_profile(struct guest *guest, int status)
{
	if (status >= 0 || status == -ENOENT || status == -EPERM || status == -EINVAL ||
	    status == -EBADMSG || status == -ESTALE || status == -ETIME || guest->profile_warned)
		return;
	guest->profile_warned = true;
	log_warning("%s: the agent can't set all of the profile: %s%s", name_of(guest),
		    strerror(-status),
		    status == -ENOSPC ? " for the note of the guest's own values in its /run" : "");
}

static void on_result(struct channel *channel, const struct wire_result *result, int status,
		      uint64_t at_us, void *userdata)
{
	struct guest *guest = userdata;
	struct agent_part *agent = agent_of(guest);

	(void)channel;
	if (result->command_type == WIRE_SHED && result->command_seq == guest->shed_sequence) {
		agent->shed_done_at_us = at_us;
		agent->shed_status = status;
		agent->shed_freed = result->done;
	} else if (result->command_type == WIRE_PROFILE &&
		   result->command_seq == guest->profile_sequence) {
		agent->profile_level = guest->profile_level;
		agent->asked = guest->profile_sent;
		agent->profile_set = profile_answered(result, status);
		agent->profile_void = status < 0 && !result->done;
		warn_of_profile(guest, status);
	}
	if (status < 0)
		log_debug("%s: agent answers %s with %s", name_of(guest),
			  wire_type_name((unsigned int)result->command_type), strerror(-status));
	manager_kick(guest->manager);
}

static const struct channel_callbacks callbacks = {
	.link_changed = on_link,
	.hello = on_hello,
	.sample = on_sample,
	.pressure = on_pressure,
	.result = on_result,
};

int agent_open(struct manager *m, struct guest *guest, const char *path)
{
	struct guest_snapshot *snap = guest_snap(&m->guests, guest);
	int r;

	if (strcmp(guest->channel_path, path) == 0)
		return 0;
	guest->channel = channel_free(guest->channel);
	snap->agent = (struct agent_part){ .link = AGENT_NONE };
	guest->channel_path[0] = '\0';
	if (!path[0])
		return 0;
	r = channel_new(&guest->channel, m->event, path, &callbacks, guest);
	if (r < 0)
		return r;
	(void)snprintf(guest->channel_path, sizeof(guest->channel_path), "%s", path);
	channel_lease(guest->channel, guest->acted_on);
	snap->agent.link = channel_link(guest->channel);
	return 0;
}
