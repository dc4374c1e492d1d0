// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/ipc/manager.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "daemon/ipc/message.h"
#include "daemon/util/cleanup.h"
#include "daemon/util/uuid.h"

/* An answer can be large: who doesn't read gets no more of them. */
#define UNREAD_ANSWERS_MAX 4

#define ERROR_NO_GUEST	   "org.ballast1.Error.NoSuchGuest"
#define ERROR_RELOAD	   "org.ballast1.Error.ReloadFailed"

static bool has_name(const struct guest_snapshot *guest, const char *what)
{
	return strcmp(guest->name, what) == 0;
}

static bool has_uuid(const struct guest_snapshot *guest, const char *what)
{
	char uuid[UUID_TEXT_SIZE];

	uuid_format(guest->uuid, uuid);
	return strcasecmp(uuid, what) == 0;
}

/* Names go before UUIDs, should somebody give a guest another one's UUID as its name. */
static int find_guest(const struct bus_view *view, sd_bus_message *call, sd_bus_error *error,
		      size_t *ret_i)
{
	static bool (*const is_it[])(const struct guest_snapshot *, const char *) = { has_name,
										      has_uuid };
	const struct snapshot *snapshot = view->snapshot;
	const char *what;
	int r;

	r = sd_bus_message_read(call, "s", &what);
	if (r < 0)
		return r;
	for (size_t k = 0; k < sizeof(is_it) / sizeof(is_it[0]); k++) {
		for (size_t i = 0; i < snapshot->n_guests; i++) {
			if (!is_it[k](&snapshot->guests[i], what))
				continue;
			*ret_i = i;
			return 0;
		}
	}
	return sd_bus_error_setf(error, ERROR_NO_GUEST, "no running guest has the name or UUID %s",
				 what);
}

/* Writes the values of a method's answer. @i: the guest that was asked for, if there is one. */
typedef int fill_fn(sd_bus_message *answer, const struct bus_view *view, size_t i);

static int send_answer(sd_bus_message *call, sd_bus_error *error, const struct bus_view *view,
		       fill_fn *fill, size_t i)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
	uint64_t unread;
	int r;

	r = sd_bus_get_n_queued_write(sd_bus_message_get_bus(call), &unread);
	if (r < 0)
		return r;
	if (unread >= UNREAD_ANSWERS_MAX)
		return sd_bus_error_set(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
					"too many answers are waiting to be read");
	r = sd_bus_message_new_method_return(call, &answer);
	if (r >= 0)
		r = fill(answer, view, i);
	if (r >= 0)
		r = sd_bus_send(NULL, answer, NULL);
	return r < 0 ? r : 1;
}

static int answer_of_host(sd_bus_message *call, void *userdata, sd_bus_error *error, fill_fn *fill)
{
	const struct manager *manager = userdata;

	return send_answer(call, error, manager->view, fill, 0);
}

static int answer_of_guest(sd_bus_message *call, void *userdata, sd_bus_error *error, fill_fn *fill)
{
	const struct manager *manager = userdata;
	size_t i = 0;
	int r;

	r = find_guest(manager->view, call, error, &i);
	return r < 0 ? r : send_answer(call, error, manager->view, fill, i);
}

static int fill_guests(sd_bus_message *answer, const struct bus_view *view, size_t i)
{
	(void)i;
	return message_append_guests(answer, view);
}

static int fill_status(sd_bus_message *answer, const struct bus_view *view, size_t i)
{
	int r;

	r = message_append_host(answer, view);
	return r < 0 ? r : fill_guests(answer, view, i);
}

static int fill_history(sd_bus_message *answer, const struct bus_view *view, size_t i)
{
	return message_append_history(answer, view, &view->snapshot->guests[i]);
}

static int fill_explanation(sd_bus_message *answer, const struct bus_view *view, size_t i)
{
	int r;

	r = message_append_host(answer, view);
	if (r >= 0)
		r = message_append_guest(answer, view, i);
	return r < 0 ? r : fill_history(answer, view, i);
}

static int get_status(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	return answer_of_host(call, userdata, error, fill_status);
}

static int list_guests(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	return answer_of_host(call, userdata, error, fill_guests);
}

static int get_guest(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	return answer_of_guest(call, userdata, error, message_append_guest);
}

static int get_history(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	return answer_of_guest(call, userdata, error, fill_history);
}

static int explain(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	return answer_of_guest(call, userdata, error, fill_explanation);
}

static int reload(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	struct manager *manager = userdata;
	char problem[512] = "";
	int r;

	if (!manager->config->reload)
		return sd_bus_error_set(error, SD_BUS_ERROR_NOT_SUPPORTED,
					"this daemon can't reload");
	r = manager->config->reload(manager->config->userdata, problem, sizeof(problem));
	if (r < 0)
		return sd_bus_error_set(error, ERROR_RELOAD,
					problem[0] ? problem : "the configuration has mistakes");
	return sd_bus_reply_method_return(call, NULL);
}

static int get_property(sd_bus *connection, const char *path, const char *interface,
			const char *property, sd_bus_message *reply, void *userdata,
			sd_bus_error *error)
{
	static const struct plan no_plan;
	const struct manager *manager = userdata;
	const struct bus_view *view = manager->view;
	const struct plan *plan = view->plan ? view->plan : &no_plan;
	const int decided = plan->at_us != 0, frozen = view->snapshot->frozen;
	const int connected = view->snapshot->hypervisor_ready;
	const struct {
		const char *name;
		char type;
		const void *value;
	} values[] = {
		{ "Version", 's', BALLAST_VERSION },
		{ "Mode", 's', mode_name(view->settings->host.mode) },
		{ "Decided", 'b', &decided },
		{ "Level", 's', level_name(plan->level) },
		{ "Budget", 't', &plan->budget },
		{ "Footprint", 't', &plan->footprint },
		{ "Headroom", 't', &plan->headroom },
		{ "GrantPool", 't', &plan->grant_pool },
		{ "InFlight", 't', &plan->in_flight },
		{ "Need", 't', &plan->need },
		{ "Shortfall", 't', &plan->shortfall },
		{ "Slack", 't', &plan->slack },
		{ "DeadTime", 't', &plan->dead_time_us },
		{ "HypervisorConnected", 'b', &connected },
		{ "Frozen", 'b', &frozen },
	};

	(void)connection;
	(void)path;
	(void)interface;
	(void)error;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (strcmp(values[i].name, property) == 0)
			return sd_bus_message_append_basic(reply, values[i].type, values[i].value);
	return -ENOENT;
}

#define READ SD_BUS_VTABLE_UNPRIVILEGED

static const sd_bus_vtable manager_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_PROPERTY("Version", "s", get_property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("Mode", "s", get_property, 0, 0),
	/* Until a round was decided, the level and the amounts mean nothing. */
	SD_BUS_PROPERTY("Decided", "b", get_property, 0, 0),
	SD_BUS_PROPERTY("Level", "s", get_property, 0, 0),
	/* Bytes; DeadTime is microseconds. */
	SD_BUS_PROPERTY("Budget", "t", get_property, 0, 0),
	SD_BUS_PROPERTY("Footprint", "t", get_property, 0, 0),
	SD_BUS_PROPERTY("Headroom", "t", get_property, 0, 0),
	SD_BUS_PROPERTY("GrantPool", "t", get_property, 0, 0),
	SD_BUS_PROPERTY("InFlight", "t", get_property, 0, 0),
	SD_BUS_PROPERTY("Need", "t", get_property, 0, 0),
	SD_BUS_PROPERTY("Shortfall", "t", get_property, 0, 0),
	SD_BUS_PROPERTY("Slack", "t", get_property, 0, 0),
	SD_BUS_PROPERTY("DeadTime", "t", get_property, 0, 0),
	SD_BUS_PROPERTY("HypervisorConnected", "b", get_property, 0, 0),
	SD_BUS_PROPERTY("Frozen", "b", get_property, 0, 0),
	SD_BUS_METHOD_WITH_ARGS("GetStatus", SD_BUS_NO_ARGS,
				SD_BUS_RESULT("a{sv}", host, "aa{sv}", guests), get_status, READ),
	SD_BUS_METHOD_WITH_ARGS("ListGuests", SD_BUS_NO_ARGS, SD_BUS_RESULT("aa{sv}", guests),
				list_guests, READ),
	SD_BUS_METHOD_WITH_ARGS("GetGuest", SD_BUS_ARGS("s", name_or_uuid),
				SD_BUS_RESULT("a{sv}", guest), get_guest, READ),
	SD_BUS_METHOD_WITH_ARGS("Explain", SD_BUS_ARGS("s", name_or_uuid),
				SD_BUS_RESULT("a{sv}", host, "a{sv}", guest, "aa{sv}", decisions),
				explain, READ),
	SD_BUS_METHOD_WITH_ARGS("History", SD_BUS_ARGS("s", name_or_uuid),
				SD_BUS_RESULT("aa{sv}", decisions), get_history, READ),
	/* sd-bus lets root and the daemon's own user through, and nobody else. */
	SD_BUS_METHOD("Reload", NULL, NULL, reload, 0),
	SD_BUS_SIGNAL_WITH_ARGS("Decision", SD_BUS_ARGS("a{sv}", decision), 0),
	SD_BUS_VTABLE_END,
};

int manager_serve(struct manager *manager, sd_bus *connection)
{
	return sd_bus_add_object_vtable(connection, NULL, BUS_PATH, BUS_INTERFACE, manager_vtable,
					manager);
}

int manager_emit_decision(const struct manager *manager, sd_bus *connection,
			  const struct guest_snapshot *guest, const struct history_entry *entry)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *signal = NULL;
	int r;

	r = sd_bus_message_new_signal(connection, &signal, BUS_PATH, BUS_INTERFACE, "Decision");
	if (r < 0)
		return r;
	r = message_append_decision(signal, guest, entry, manager->view->realtime_offset_us);
	if (r < 0)
		return r;
	r = sd_bus_send(connection, signal, NULL);
	return r < 0 ? r : 0;
}
