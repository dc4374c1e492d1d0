// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/config/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/config/apply.h"
#include "daemon/config/rules.h"
#include "daemon/config/tree.h"
#include "daemon/config/utf8.h"
#include "daemon/config/validate.h"
#include "daemon/util/text.h"

struct source {
	char *path;
	struct node *root;
};

/* The main file first, then the drop-ins by name. */
struct sources {
	struct source items[CONFIG_DROPINS_MAX + 1];
	size_t n;
	int error; /* of the first file that can't be read */
};

static void sources_free(struct sources *sources)
{
	for (size_t i = 0; i < sources->n; i++) {
		free(sources->items[i].path);
		tree_free(sources->items[i].root);
	}
	free(sources);
}
DEFINE_CLEANUP(struct sources *, sources_free);

static struct place whole(const char *path)
{
	return (struct place){ .file = path };
}

/* Up to one byte more than allowed, so that too much is noticed without reading it. */
static int read_all(int fd, char *buffer, size_t size, size_t *ret_size)
{
	size_t used = 0;

	while (used < size) {
		ssize_t n = read(fd, buffer + used, size - used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	*ret_size = used;
	return 0;
}

static int open_file(const char *path)
{
	struct stat st;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -ENXIO;
	return TAKE_FD(fd);
}

static const char *read_advice(int error)
{
	switch (error) {
	case -ENOENT:
		return "create it, or name another file";
	case -EACCES:
		return "make it readable";
	case -EISDIR:
	case -ENXIO:
		return "it must be a plain file";
	default:
		return "check the disk";
	}
}

static void say_unreadable(struct sources *sources, struct config_diag *diag, const char *path,
			   int error)
{
	diag_add(diag, CONFIG_ERROR, whole(path), NULL, "can't be read (%s): %s",
		 error == -ENXIO ? "not a file" : strerror(-error), read_advice(error));
	if (sources->error == 0)
		sources->error = error;
}

static int parse_source(struct source *source, const char *text, size_t size,
			struct config_diag *diag)
{
	struct place place = whole(source->path);
	const char *problem;

	if (size > CONFIG_FILE_MAX) {
		diag_add(diag, CONFIG_ERROR, place, NULL,
			 "larger than 1 MiB: split it into drop-ins");
		return 0;
	}
	problem = utf8_check(text, size, &place);
	if (problem) {
		diag_add(diag, CONFIG_ERROR, place, NULL, "%s", problem);
		return 0;
	}
	return tree_parse(source->path, text, size, diag, &source->root);
}

/* Takes over @path. A file that can't be read is a mistake among others; only memory ends all. */
static int add_source(struct sources *sources, char *path, struct config_diag *diag)
{
	struct source *source = &sources->items[sources->n++];
	_cleanup_free_ char *buffer = NULL;
	_cleanup_close_ int fd = -1;
	size_t size = 0;
	int r;

	*source = (struct source){ .path = path };
	fd = open_file(path);
	r = fd < 0 ? fd : 0;
	if (r == 0) {
		buffer = malloc(CONFIG_FILE_MAX + 1);
		if (!buffer)
			return -ENOMEM;
		r = read_all(fd, buffer, CONFIG_FILE_MAX + 1, &size);
	}
	if (r < 0) {
		say_unreadable(sources, diag, path, r);
		return 0;
	}
	return parse_source(source, buffer, size, diag);
}

/* /etc/ballast/ballast.yaml -> /etc/ballast/ballast.d */
static char *dropin_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	size_t stem = dot && dot != name ? (size_t)(dot - path) : strlen(path);
	char *folder = malloc(stem + sizeof(".d"));

	if (!folder)
		return NULL;
	memcpy(folder, path, stem);
	memcpy(folder + stem, ".d", sizeof(".d"));
	return folder;
}

static int is_dropin(const struct dirent *entry)
{
	return entry->d_name[0] != '.' &&
	       (text_ends_with(entry->d_name, ".yaml") || text_ends_with(entry->d_name, ".yml"));
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_dropin(struct sources *sources, const char *folder, const char *name,
		      struct config_diag *diag)
{
	char *path;

	if (asprintf(&path, "%s/%s", folder, name) < 0)
		return -ENOMEM;
	if (text_ends_with(name, ".yml")) {
		diag_add(diag, CONFIG_WARNING, whole(path), NULL,
			 "not read: the name of a drop-in ends in .yaml");
		free(path);
		return 0;
	}
	return add_source(sources, path, diag);
}

static int add_dropins(struct sources *sources, const char *main_path, struct config_diag *diag)
{
	_cleanup_free_ char *folder = dropin_folder(main_path);
	struct dirent **names = NULL;
	int n, r = 0;

	if (!folder)
		return -ENOMEM;
	n = scandir(folder, &names, is_dropin, by_bytes);
	if (n < 0) {
		if (errno == ENOMEM)
			return -ENOMEM;
		if (errno != ENOENT)
			say_unreadable(sources, diag, folder, -errno);
		return 0;
	}
	if (n > CONFIG_DROPINS_MAX)
		diag_add(diag, CONFIG_ERROR, whole(folder), NULL,
			 "%d drop-ins are too many: %d are the most", n, CONFIG_DROPINS_MAX);
	for (int i = 0; i < n; i++) {
		if (r == 0 && n <= CONFIG_DROPINS_MAX)
			r = add_dropin(sources, folder, names[i]->d_name, diag);
		free(names[i]);
	}
	free(names);
	return r;
}

static int add_main(struct sources *sources, const char *path, struct config_diag *diag)
{
	char *copy = strdup(path);

	return copy ? add_source(sources, copy, diag) : -ENOMEM;
}

/* Host and defaults from the first source to the last, rules from the last to the first. */
static int merge(struct loader *loader, const struct sources *sources)
{
	const struct key_path root_path = { "" };
	_cleanup_free_ struct place *places = NULL;
	int r = 0;

	for (size_t i = 0; i < sources->n; i++)
		if (sources->items[i].root)
			apply_map(loader, schema_root, loader->settings, sources->items[i].root,
				  &root_path);
	validate(loader);
	for (size_t i = sources->n; i > 0 && r == 0; i--)
		r = rules_apply(loader, sources->items[i - 1].root, &places);
	if (r == 0)
		rules_check(loader, places);
	return r;
}

static size_t source_index(const struct sources *sources, const char *file)
{
	size_t i = 0;

	while (i < sources->n && strcmp(sources->items[i].path, file) != 0)
		i++;
	return i;
}

static bool comes_before(const struct sources *sources, const struct config_message *a,
			 const struct config_message *b)
{
	size_t i = source_index(sources, a->file), j = source_index(sources, b->file);

	if (i != j)
		return i < j;
	return a->line != b->line ? a->line < b->line : a->column < b->column;
}

/* Sorts what was added from @first on; few enough for insertion, which keeps equal ones in order. */
static void sort_messages(struct config_diag *diag, size_t first, const struct sources *sources)
{
	for (size_t i = first + 1; i < diag->n_messages; i++) {
		struct config_message message = diag->messages[i];
		size_t j = i;

		for (; j > first && comes_before(sources, &message, &diag->messages[j - 1]); j--)
			diag->messages[j] = diag->messages[j - 1];
		diag->messages[j] = message;
	}
}

static int load(const char *path, struct settings *settings, struct sources *sources,
		struct config_diag *diag)
{
	struct loader loader = { .diag = diag, .settings = settings };
	size_t first = diag->n_messages, errors = diag->n_errors;
	int r;

	settings_init_defaults(settings);
	r = add_main(sources, path, diag);
	if (r == 0)
		r = add_dropins(sources, path, diag);
	if (r == 0)
		r = merge(&loader, sources);
	if (r < 0)
		return r;
	sort_messages(diag, first, sources);
	if (sources->error < 0)
		return sources->error;
	return diag->n_errors > errors ? -EINVAL : 0;
}

int config_load(const char *path, struct settings **ret_settings, struct config_diag *diag)
{
	_cleanup_(sources_freep) struct sources *sources = calloc(1, sizeof(*sources));
	_cleanup_(config_freep) struct settings *settings = calloc(1, sizeof(*settings));
	int r;

	if (!sources || !settings)
		return -ENOMEM;
	r = load(path, settings, sources, diag);
	if (r < 0)
		return r;
	*ret_settings = TAKE_PTR(settings);
	return 0;
}

void config_free(struct settings *settings)
{
	if (!settings)
		return;
	free(settings->rules);
	free(settings);
}
