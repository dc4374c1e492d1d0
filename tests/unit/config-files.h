/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A folder of configuration files for one test, and what comes of loading them. For tests; dies
 * when the file system doesn't do as asked.
 */
#ifndef BALLAST_TESTS_CONFIG_FILES_H
#define BALLAST_TESTS_CONFIG_FILES_H

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config/config.h"

struct files {
	char folder[64];
	char path[96]; /* of the main file */
	struct settings *settings;
	struct config_diag diag;
	int r;
};

static inline void files_write(struct files *files, const char *name, const void *data, size_t size)
{
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", files->folder, name);
	f = fopen(path, "we");
	if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0)
		abort();
}

static inline void files_text(struct files *files, const char *name, const char *text)
{
	files_write(files, name, text, strlen(text));
}

/* A new folder with a main file of that text, and an empty folder for drop-ins. */
static inline void files_make(struct files *files, const char *text)
{
	char folder[96];

	*files = (struct files){ .diag = CONFIG_DIAG_INIT };
	strcpy(files->folder, "/tmp/ballast-config-XXXXXX");
	if (!mkdtemp(files->folder))
		abort();
	(void)snprintf(files->path, sizeof(files->path), "%s/ballast.yaml", files->folder);
	(void)snprintf(folder, sizeof(folder), "%s/ballast.d", files->folder);
	if (mkdir(folder, 0755) < 0)
		abort();
	files_text(files, "ballast.yaml", text);
}

static inline int files_load(struct files *files)
{
	config_free(files->settings);
	files->settings = NULL;
	config_diag_clear(&files->diag);
	files->r = config_load(files->path, &files->settings, &files->diag);
	return files->r;
}

static inline int files_remove_one(const char *path, const struct stat *st, int flag,
				   struct FTW *where)
{
	(void)st;
	(void)flag;
	(void)where;
	return remove(path);
}

static inline void files_end(struct files *files)
{
	config_free(files->settings);
	config_diag_clear(&files->diag);
	(void)nftw(files->folder, files_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* The n-th message without the folder in front of file names. */
static inline const char *files_message(const struct files *files, size_t n)
{
	static char text[1024];
	size_t length = strlen(files->folder) + 1;
	char *at;

	if (n >= files->diag.n_messages)
		return "(none)";
	config_diag_format(&files->diag.messages[n], sizeof(text), text);
	while ((at = strstr(text, files->folder)))
		memmove(at, at + length, strlen(at + length) + 1);
	return text;
}

/* A file of the tree as text, to be freed. */
static inline char *slurp(const char *path)
{
	char *text = calloc(1, 65536);
	FILE *f = fopen(path, "re");

	if (!text || !f)
		abort();
	text[fread(text, 1, 65535, f)] = '\0';
	(void)fclose(f);
	return text;
}

/* The effective configuration as text, to be freed. */
static inline char *files_dump(const struct settings *settings)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f || config_dump(f, settings) < 0 || fclose(f) != 0)
		abort();
	return text;
}

#endif
