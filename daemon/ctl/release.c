// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `ballastctl release --direct`: every running domain gets its maximum back, without the daemon.
 * It is for when the daemon is gone, so it shares nothing with it but libvirt itself.
 *
 * A guest whose QEMU stands still would block the call for good, so each domain is the business of
 * a child with a connection of its own and a deadline, some of them side by side. The deadline is
 * a little longer than libvirt waits for a domain's job (30 s), so that its own message comes
 * first.
 */
#include <getopt.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "daemon/ctl/ctl.h"
#include "daemon/ctl/terminal.h"
#include "daemon/util/cleanup.h"
#include "daemon/util/parse.h"

#define DEADLINE_S   35
#define SIDE_BY_SIDE 8

static void ignore_error(void *userdata, virErrorPtr error)
{
	(void)userdata;
	(void)error;
}

DEFINE_CLEANUP(virConnectPtr, virConnectClose);
DEFINE_CLEANUP(virDomainPtr, virDomainFree);
DEFINE_CLEANUP(virErrorPtr, virFreeError);

/* A domain that has gone or stopped meanwhile has nothing to be released. */
static int not_released(virDomainPtr domain, const char *name)
{
	/* Saved, as the next call begins with none. */
	_cleanup_(virFreeErrorp) virErrorPtr error = virSaveLastError();

	if ((error && error->code == VIR_ERR_NO_DOMAIN) ||
	    (domain && virDomainIsActive(domain) == 0))
		return CTL_OK;
	complain("%s: not released: %s", name,
		 error && error->message ? error->message : "libvirt doesn't say why");
	return CTL_FAILED;
}

static int release_domain(const char *uri, const unsigned char *uuid, const char *name)
{
	_cleanup_(virConnectClosep) virConnectPtr connection = virConnectOpen(uri);
	_cleanup_(virDomainFreep) virDomainPtr domain = NULL;
	char size[FORMAT_SIZE_MAX];
	virDomainInfo info;

	if (connection)
		domain = virDomainLookupByUUID(connection, uuid);
	if (domain && virDomainGetInfo(domain, &info) == 0) {
		format_size(size, FORMAT_SIZE_MAX, KIB((uint64_t)info.maxMem));
		if (info.memory == info.maxMem) {
			printf("%s: has all of its %s\n", name, size);
			return CTL_OK;
		}
		/* LIVE only: what the domain is configured to start with stays. */
		if (virDomainSetMemoryFlags(domain, info.maxMem, VIR_DOMAIN_AFFECT_LIVE) == 0) {
			printf("%s: balloon set to %s\n", name, size);
			return CTL_OK;
		}
	}
	return not_released(domain, name);
}

/* The children under way. */
struct children {
	struct child {
		pid_t pid; /* 0: this place is free */
		char name[TERMINAL_TEXT];
	} child[SIDE_BY_SIDE];
	size_t n;
	int status; /* CTL_FAILED as soon as one has failed */
};

static void reap_one(struct children *children)
{
	int status;
	pid_t pid = wait(&status);

	for (size_t i = 0; i < SIDE_BY_SIDE; i++) {
		struct child *child = &children->child[i];

		if (child->pid != pid)
			continue;
		if (!WIFEXITED(status))
			complain("%s: not released: no answer within %d s", child->name,
				 DEADLINE_S);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != CTL_OK)
			children->status = CTL_FAILED;
		child->pid = 0;
		children->n--;
	}
}

static struct child *free_child(struct children *children)
{
	if (children->n == SIDE_BY_SIDE)
		reap_one(children);
	for (size_t i = 0; i < SIDE_BY_SIDE; i++)
		if (children->child[i].pid == 0)
			return &children->child[i];
	return NULL;
}

static void start_child(struct children *children, const char *uri, virDomainPtr domain)
{
	struct child *child = free_child(children);
	unsigned char uuid[VIR_UUID_BUFLEN];
	struct terminal terminal;
	int status;

	terminal_init(&terminal);
	if (child && virDomainGetUUID(domain, uuid) == 0) {
		terminal_safe(&terminal, virDomainGetName(domain), child->name);
		child->pid = fork();
	}
	if (!child || child->pid < 0) {
		complain("%s: not released: %m", virDomainGetName(domain));
		children->status = CTL_FAILED;
		if (child)
			child->pid = 0;
		return;
	}
	if (child->pid > 0) {
		children->n++;
		return;
	}
	(void)alarm(DEADLINE_S);
	status = release_domain(uri, uuid, child->name);
	(void)fflush(stdout);
	_exit(status);
}

static int release_all(const char *uri)
{
	_cleanup_(virConnectClosep) virConnectPtr connection = NULL;
	struct children children = { .status = CTL_OK };
	virDomainPtr *domains = NULL;
	int n = -1;

	virSetErrorFunc(NULL, ignore_error);
	connection = virConnectOpen(uri);
	if (connection)
		n = virConnectListAllDomains(connection, &domains, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
	if (n < 0) {
		complain("%s: %s", uri, virGetLastErrorMessage());
		return CTL_FAILED;
	}
	if (n == 0)
		printf("no domain is running at %s\n", uri);
	(void)fflush(stdout); /* or each child would print it again */
	for (int i = 0; i < n; i++) {
		start_child(&children, uri, domains[i]);
		virDomainFree(domains[i]);
	}
	free(domains);
	while (children.n > 0)
		reap_one(&children);
	return children.status;
}

/* The daemon's own URI, as far as its configuration can be read; else the built-in one. */
static void default_uri(char *uri, size_t size)
{
	_cleanup_(config_freep) struct settings *settings = NULL;
	struct config_diag diag = CONFIG_DIAG_INIT;
	struct settings defaults;

	settings_init_defaults(&defaults);
	(void)config_load(CONFIG_PATH, &settings, &diag);
	config_diag_clear(&diag);
	(void)snprintf(uri, size, "%s", settings ? settings->host.uri : defaults.host.uri);
}

int ctl_release(int argc, char **argv)
{
	static const struct option options[] = {
		{ "direct", no_argument, NULL, 'd' },
		{ "uri", required_argument, NULL, 'u' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	char uri[SETTINGS_PATH_MAX] = "";
	bool direct = false;
	int c;

	opterr = 0;
	optind = 0;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'd') {
			direct = true;
		} else if (c == 'u') {
			(void)snprintf(uri, sizeof(uri), "%s", optarg);
		} else if (c == 'h') {
			printf("Usage: ballastctl release --direct [--uri URI]\n"
			       "  --direct   through libvirt, without the daemon\n"
			       "  --uri URI  instead of the configuration's\n");
			return CTL_OK;
		} else {
			complain("release: can't understand %s: `ballastctl release --help` shows "
				 "how",
				 argv[optind - 1]);
			return CTL_USAGE;
		}
	}
	if (!direct || optind < argc) {
		complain("release: it takes --direct and nothing else: all guests are released");
		return CTL_USAGE;
	}
	if (!*uri)
		default_uri(uri, sizeof(uri));
	return release_all(uri);
}
