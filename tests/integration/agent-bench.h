/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The agent as a process, on a made-up guest and a Unix socket in place of the port. Each bench
 * belongs to one test.
 */
#ifndef BALLAST_TESTS_INTEGRATION_AGENT_BENCH_H
#define BALLAST_TESTS_INTEGRATION_AGENT_BENCH_H

#include <libgen.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/integration/peer.h"
#include "tests/unit/fake-root.h"
#include "tests/unit/harness.h"

#define SWAPPINESS FAKE_KNOB("swappiness")
#define RECLAIM	   "/sys/fs/cgroup/memory.reclaim"
#define STATE	   "/run/ballast-agent/own-values"
#define SOON_MS	   5000

struct bench {
	struct fake_root root;
	struct peer peer;
	char port[100], agent[512];
	pid_t pid;
};

static inline void find_agent(char *ret, size_t size)
{
	char self[512];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	(void)snprintf(ret, size, "%s/../../ballast-agent", dirname(self));
}

static inline void start(struct bench *b)
{
	b->pid = fork();
	if (b->pid == 0) {
		const char *config = fake_path(&b->root, "/agent.conf");

		execl(b->agent, b->agent, "--root", b->root.dir, "--port", b->port, "--config",
		      config, (char *)NULL);
		_exit(127);
	}
	CU_ASSERT_FATAL(b->pid > 0);
}

static inline int stop(struct bench *b, int signal)
{
	int status = -1;

	if (b->pid > 0 && kill(b->pid, signal) == 0)
		(void)waitpid(b->pid, &status, 0);
	b->pid = 0;
	return status;
}

/* A guest, a host that listens, and no agent yet. */
static inline void prepare(struct bench *b)
{
	*b = (struct bench){ .pid = 0 };
	fake_root_make(&b->root);
	fake_write(&b->root, "/agent.conf", "# everything\n");
	(void)snprintf(b->port, sizeof(b->port), "%s/port", b->root.dir);
	find_agent(b->agent, sizeof(b->agent));
	CU_ASSERT_EQUAL_FATAL(peer_listen(&b->peer, b->port), 0);
}

static inline void meet(struct bench *b)
{
	struct wire_message msg;

	CU_ASSERT_FATAL(peer_accept(&b->peer, SOON_MS));
	CU_ASSERT_FATAL(peer_next(&b->peer, &msg, SOON_MS));
	CU_ASSERT_EQUAL_FATAL(msg.type, WIRE_HELLO);
}

static inline void setup(struct bench *b)
{
	prepare(b);
	start(b);
	meet(b);
}

static inline void teardown(struct bench *b)
{
	(void)stop(b, SIGKILL);
	peer_close(&b->peer);
	fake_root_remove(&b->root);
}

static inline uint64_t status_of(struct bench *b, const struct wire_message *command)
{
	struct wire_message answer;

	if (!peer_ask(&b->peer, command, &answer, SOON_MS))
		return UINT64_MAX;
	CU_ASSERT_EQUAL(answer.result.command_type, command->type);
	return answer.result.status;
}

static inline struct wire_message profile(struct bench *b, uint64_t swappiness)
{
	struct wire_message msg = peer_command(&b->peer, WIRE_PROFILE);

	knob_put(&msg.profile, KNOB_SWAPPINESS, swappiness);
	return msg;
}

#endif
