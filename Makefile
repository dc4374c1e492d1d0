# SPDX-License-Identifier: GPL-2.0-or-later
# Ballast: one Makefile for everything. `make help` lists the targets.
#
# Sources are found by folder: a new .c file in daemon/*/, guest-agent/ or tests/unit/ needs no
# line here. VARIANT=asan|valgrind|clang builds beside the normal build, in its own folder.

VERSION := 0.1
VARIANT ?=
B := build$(if $(VARIANT),/$(VARIANT))
CC := gcc
PREFIX ?= /usr
SYSCONFDIR ?= /etc
DESTDIR ?=

SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

DEPS_BUILD := gcc make pkg-config libvirt-dev libxml2-dev libsystemd-dev libyaml-dev libjson-c-dev uthash-dev \
	libsmartcols-dev libcunit1-dev
DEPS_KERNEL := linux-source-6.12 flex bison bc libelf-dev libssl-dev cpio kmod rsync xz-utils \
	ccache patch perl
DEPS_LAB := qemu-system-x86 libvirt-daemon libvirt-daemon-system \
	libvirt-daemon-driver-qemu libvirt-clients busybox-static e2fsprogs util-linux \
	jq dbus dbus-daemon polkitd
DEPS_BENCH := gnuplot-nox
DEPS_CHECK := clang clang-format clang-tidy libclang-rt-14-dev cppcheck shellcheck valgrind \
	systemd mandoc scdoc libxml2-utils

WARNINGS := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wold-style-definition -Wpointer-arith -Wcast-qual -Wwrite-strings -Wundef \
	-Wformat=2 -Wvla -Wimplicit-fallthrough -Wnull-dereference
HARDEN := -fstack-protector-strong -D_FORTIFY_SOURCE=2
OPT := -O2 -g
LDFLAGS_VARIANT :=
ifeq ($(VARIANT),asan)
OPT := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
HARDEN :=
LDFLAGS_VARIANT := -fsanitize=address,undefined
else ifeq ($(VARIANT),valgrind)
OPT := -O1 -g
HARDEN :=
else ifeq ($(VARIANT),clang)
CC := clang
else ifeq ($(VARIANT),fuzz)
CC := clang
OPT := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=all
HARDEN :=
LDFLAGS_VARIANT := -fsanitize=address,undefined
endif
# clang doesn't read the comments that mark a fall through in uthash's macros; gcc checks it.
ifeq ($(CC),clang)
WARNINGS += -Wno-implicit-fallthrough
endif
CPPFLAGS := -I. -D_GNU_SOURCE -DBALLAST_VERSION='"$(VERSION)"'
CFLAGS := -std=gnu17 $(OPT) $(HARDEN) $(WARNINGS) -MMD -MP
LDFLAGS := -Wl,--as-needed $(LDFLAGS_VARIANT)

# What each layer may use from outside. core, util and proto use nothing but libc.
PKGS := libvirt libxml-2.0 libsystemd yaml-0.1 json-c smartcols
PKG_CFLAGS = $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
LIBS = $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lpthread

LAYERS := util core config host hyp guest ipc
objects = $(patsubst %.c,$(B)/%.o,$(wildcard $(1)/*.c))
LIB_PROTO := $(B)/lib/proto.a
LIB_PURE := $(B)/lib/core.a $(B)/lib/util.a $(LIB_PROTO)
LIB_DAEMON := $(B)/lib/ipc.a $(B)/lib/guest.a $(B)/lib/hyp.a $(B)/lib/host.a $(B)/lib/config.a \
	$(LIB_PURE)
# The application without its main, so that tests can link it.
APP_OBJECTS := $(filter-out %/main.o,$(call objects,daemon/app))
AGENT_OBJECTS := $(filter-out %/main.o,$(call objects,guest-agent))

PROGRAMS := $(if $(wildcard daemon/app/main.c),$(B)/ballastd) \
	$(if $(wildcard daemon/ctl/main.c),$(B)/ballastctl) \
	$(if $(wildcard guest-agent/main.c),$(B)/ballast-agent)
UNIT_TESTS := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(wildcard tests/unit/test-*.c))
PURE_TESTS := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/unit/core/test-*.c) \
	$(wildcard tests/sim/test-*.c))
SIM_OBJECTS := $(filter-out $(B)/tests/sim/test-%,$(call objects,tests/sim))
INTEGRATION_PROGRAMS := $(patsubst tests/integration/%.c,$(B)/tests/integration/%,\
	$(wildcard tests/integration/*.c))
FUZZERS := $(patsubst tests/fuzz/%.c,$(B)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz-*.c))
WORKLOADS := $(patsubst tests/workloads/%.c,$(B)/workloads/%,$(wildcard tests/workloads/*.c))
LAB_TOOLS := $(patsubst %.c,$(B)/%,$(wildcard tests/lab/*.c)) $(B)/tests/lab/demo-report
BENCH_TOOLS := $(patsubst %.c,$(B)/%,$(wildcard tests/bench/*.c)) $(B)/tests/bench/bench-report
MAN_PAGES := $(patsubst daemon/man/%.scd,$(B)/man/%,$(wildcard daemon/man/*.scd))
C_FILES = $(shell git ls-files '*.c' '*.h')

.DELETE_ON_ERROR:
.SECONDARY:

all: $(PROGRAMS) $(LAYERS:%=$(B)/lib/%.a) ## build the daemon, the command line and the guest agent

help: ## list the targets
	@awk -F':.*## ' '/^[a-z][a-z -]*:.*## /{ n = split($$1, name, " "); \
		for (i = 1; i <= n; i++) printf "  %-18s %s\n", name[i], $$2 }' $(firstword $(MAKEFILE_LIST))

deps: ## install what is missing from Debian's archive
	@tests/lab/deps.sh $(DEPS_BUILD) $(DEPS_KERNEL) $(DEPS_LAB) $(DEPS_BENCH) $(DEPS_CHECK)

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(PKG_CFLAGS) -c $< -o $@

$(LIB_PROTO): $(call objects,guest-agent/proto)
	@mkdir -p $(@D)
	@rm -f $@
	ar rcs $@ $^

define layer
$(B)/lib/$(1).a: $(call objects,daemon/$(1))
	@mkdir -p $$(@D)
	@rm -f $$@
	ar rcs $$@ $$^
endef
$(foreach l,$(LAYERS),$(eval $(call layer,$(l))))

$(B)/ballastd: $(call objects,daemon/app) $(LIB_DAEMON)
	$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS)

$(B)/ballastctl: $(call objects,daemon/ctl) $(LIB_DAEMON)
	$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS)

# Static: it has to run in any guest. The sanitizers need the shared libc.
$(B)/ballast-agent: $(call objects,guest-agent) $(LIB_PROTO)
	$(CC) $(LDFLAGS) $(if $(LDFLAGS_VARIANT),,-static) -o $@ $^

$(UNIT_TESTS): $(B)/tests/unit/%: $(B)/tests/unit/%.o $(LIB_DAEMON) $(APP_OBJECTS) $(AGENT_OBJECTS)
	$(CC) $(LDFLAGS) -o $@ $< -Wl,--start-group $(filter %.a,$^) $(B)/lib/app.a $(B)/lib/agent.a \
		-Wl,--end-group $(LIBS) -lcunit

$(UNIT_TESTS) $(INTEGRATION_PROGRAMS) $(FUZZERS): $(B)/lib/app.a $(B)/lib/agent.a

$(B)/lib/app.a: $(APP_OBJECTS)
	@mkdir -p $(@D)
	@rm -f $@
	ar rcs $@ $^

$(B)/lib/agent.a: $(AGENT_OBJECTS)
	@mkdir -p $(@D)
	@rm -f $@
	ar rcs $@ $^

# The proof that the core is pure: these link with nothing else.
$(PURE_TESTS): $(B)/tests/%: $(B)/tests/%.o $(SIM_OBJECTS) $(LIB_PURE)
	$(CC) $(LDFLAGS) -o $@ $< $(filter-out $(B)/tests/sim/main.o,$(SIM_OBJECTS)) $(LIB_PURE) -lcunit -lm

$(INTEGRATION_PROGRAMS): $(B)/tests/integration/%: $(B)/tests/integration/%.o $(LIB_DAEMON)
	$(CC) $(LDFLAGS) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS) -lcunit

$(FUZZERS): $(B)/tests/fuzz/%: $(B)/tests/fuzz/%.o $(LIB_DAEMON)
	$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS)

$(B)/workloads/%: tests/workloads/%.c $(wildcard tests/workloads/*.h) $(LIB_PROTO)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -std=gnu17 -O2 -g $(WARNINGS) -static -pthread -o $@ $< $(LIB_PROTO)

$(B)/tests/lab/%: $(B)/tests/lab/%.o
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/tests/lab/demo-report: $(call objects,tests/lab/report)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) -lm

$(B)/tests/bench/bench-report: $(call objects,tests/bench/report)
	$(CC) $(LDFLAGS) -o $@ $^ -lm

$(B)/tests/bench/%: $(B)/tests/bench/%.o
	$(CC) $(LDFLAGS) -o $@ $^

# The root disk of the lab's guests, shared by all of them.
$(B)/lab/guest.img: tests/lab/image.sh tests/lab/init $(WORKLOADS) \
		$(filter %/ballast-agent,$(PROGRAMS))
	tests/lab/image.sh $(B)

.PHONY: all help deps workloads lab test-programs kernel demo test lint lint-fast print-flags format \
	check-unit check-sim check-integration check-vm check-asan check-valgrind fuzz bench-kernel \
	soak-kernel man install clean

workloads: $(WORKLOADS) ## build the programs that run in test guests

lab: $(B)/lab/guest.img $(LAB_TOOLS) ## build the guests' disk and the tools of the lab

test-programs: all $(LAB_TOOLS) $(BENCH_TOOLS) $(UNIT_TESTS) $(PURE_TESTS) $(INTEGRATION_PROGRAMS)

kernel: ## build the guest kernel, cached by the hash of its inputs
	@kernel-patches/build.sh

demo: ## the main job on real guests: cut a host's budget and watch it being balanced
	@tests/lab/demo.sh

test: deps ## everything that CI runs; ends with "N passed, N failed"
	@tests/run lint unit sim asan integration vm

check-unit check-sim check-integration check-vm: check-%: ## run one group of tests
	@tests/run $*

check-asan check-valgrind: check-%: ## unit tests and simulation under the sanitizers, or valgrind
	@tests/run $*

fuzz: ## run each fuzz target for FUZZ_SECONDS (20)
	@tests/fuzz/run.sh $${FUZZ_SECONDS:-20}

fuzzers: $(FUZZERS)

# BENCH="TEST GROUP ..." for some of it, REPEAT=N, JOBS=N guests at a time, SEED=N of the order;
# "tests/bench/kernel.sh --resume" goes on with a run that was stopped, --report shows it again.
bench-kernel: workloads $(LAB_TOOLS) $(BENCH_TOOLS) ## measure the kernel's levers off against on, as the seeds did
	@tests/bench/kernel.sh

# Two kernels of their own, and not part of CI.
soak-kernel: workloads ## 20 minutes of mixed load with all levers, on kernels with lockdep and KASAN
	@[ -n "$$BALLAST_KERNEL" ] || for kind in $${SOAK_KERNELS:-lockdep kasan}; do \
		kernel-patches/build.sh --debug $$kind || exit 1; done
	@tests/vm/soak.sh

lint: ## formats, warnings of other compilers, layers, scripts, units
	@tests/run lint

# A flag a line, for what reads the sources without building them.
print-flags:
	@printf '%s\n' $(CPPFLAGS) -std=gnu17 $(WARNINGS) $(PKG_CFLAGS)

lint-fast:
	@tests/lint/format.sh && tests/lint/layers.sh

format: ## format every C file
	clang-format -i $(C_FILES)

$(B)/man/%: daemon/man/%.scd
	@mkdir -p $(@D)
	scdoc <$< >$@

man: $(MAN_PAGES) ## build the manual pages into build/man/

INSTALL_TO = $(DESTDIR)$(PREFIX)
# A configuration that is there already stays.
install: all man ## install below PREFIX (/usr) and /etc; DESTDIR= for packages
	install -d $(addprefix $(INSTALL_TO)/,bin sbin lib/systemd/system lib/sysusers.d \
		share/dbus-1/system.d share/polkit-1/rules.d share/doc/ballast/examples \
		share/doc/ballast/libvirt) $(DESTDIR)$(SYSCONFDIR)/ballast/ballast.d
	install -m 755 $(B)/ballastctl $(INSTALL_TO)/bin/
	install -m 755 $(B)/ballastd $(B)/ballast-agent $(INSTALL_TO)/sbin/
	for unit in conf/systemd/*.service; do \
		sed 's#/usr/\(s\?bin\)/#$(PREFIX)/\1/#; s#--config /etc/#--config $(SYSCONFDIR)/#' $$unit \
			>$(INSTALL_TO)/lib/systemd/system/$${unit##*/} || exit 1; \
	done
	install -m 644 conf/sysusers/ballast.conf $(INSTALL_TO)/lib/sysusers.d/
	install -m 644 conf/dbus/org.ballast1.conf $(INSTALL_TO)/share/dbus-1/system.d/
	install -m 644 conf/polkit/50-ballast.rules $(INSTALL_TO)/share/polkit-1/rules.d/
	install -m 644 conf/examples/*.yaml $(INSTALL_TO)/share/doc/ballast/examples/
	install -m 644 conf/libvirt/*.xml $(INSTALL_TO)/share/doc/ballast/libvirt/
	for page in $(MAN_PAGES); do \
		install -D -m 644 -t $(INSTALL_TO)/share/man/man$${page##*.} $$page || exit 1; \
	done
	for file in ballast.yaml agent.conf; do \
		[ -e $(DESTDIR)$(SYSCONFDIR)/ballast/$$file ] || \
		install -m 644 conf/$$file $(DESTDIR)$(SYSCONFDIR)/ballast/ || exit 1; \
	done
	@[ -n "$(DESTDIR)" ] || echo "Next: systemd-sysusers && systemctl daemon-reload," \
		"edit $(SYSCONFDIR)/ballast/ballast.yaml, then systemctl enable --now ballastd"

clean: ## remove what was built here; the kernel cache stays
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)
