// SPDX-License-Identifier: GPL-2.0-or-later
/* `ballastctl check`: all mistakes of a configuration at once, each under the line it is in. */
#include "daemon/ctl/ctl.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/config.h"
#include "daemon/config/utf8.h"
#include "daemon/util/cleanup.h"

#define LINE_SHOWN 160 /* columns of a source line */

/* Bytes of the UTF-8 character at @p, or 1. */
static size_t character(const char *p)
{
	size_t n = 1;

	while (((unsigned char)p[n] & 0xc0) == 0x80)
		n++;
	return n;
}

/* Tabs stay in the margin under the line, so that the caret stands where the eye expects it. */
static void print_caret(const char *line, unsigned int column)
{
	(void)fputs("        | ", stderr);
	for (const char *p = line; column > 1 && *p; p += character(p), column--)
		(void)fputc(*p == '\t' ? '\t' : ' ', stderr);
	(void)fputs("^\n", stderr);
}

/* A file with bad bytes must not write to the terminal what it likes. */
static void make_harmless(char *line)
{
	struct place place = { 0 };
	bool ascii;

	for (char *p = line; *p; p++)
		if (((unsigned char)*p < ' ' && *p != '\t') || *p == 0x7f)
			*p = '?';
	ascii = utf8_check(line, strlen(line), &place) != NULL;
	for (char *p = line; *p && ascii; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?';
}

static void print_source(const struct config_message *message)
{
	_cleanup_fclose_ FILE *file = NULL;
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	ssize_t length = -1;

	if (message->line == 0 || message->column > LINE_SHOWN)
		return;
	file = fopen(message->file, "re");
	if (!file)
		return;
	for (unsigned int i = 0; i < message->line; i++) {
		length = getline(&line, &size, file);
		if (length < 0)
			return;
	}
	line[strcspn(line, "\r\n")] = '\0';
	make_harmless(line);
	(void)fprintf(stderr, "%7u | %.*s\n", message->line, LINE_SHOWN, line);
	print_caret(line, message->column);
}

static void print_diag(const struct config_diag *diag)
{
	size_t more = diag->n_errors + diag->n_warnings - diag->n_messages;
	char text[1024];

	for (size_t i = 0; i < diag->n_messages; i++) {
		config_diag_format(&diag->messages[i], sizeof(text), text);
		(void)fprintf(stderr, "%s\n", text);
		print_source(&diag->messages[i]);
	}
	if (more > 0)
		(void)fprintf(stderr, "and %zu more\n", more);
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static int finish(const char *path, const struct settings *settings, const struct config_diag *diag,
		  int r, bool effective)
{
	FILE *summary = effective ? stderr : stdout;

	if (r < 0) {
		if (diag->n_errors == 0)
			(void)fprintf(stderr, "ballastctl: %s: %s\n", path, strerror(-r));
		else
			(void)fprintf(summary, "%s: bad, %zu mistake%s, %zu warning%s\n", path,
				      diag->n_errors, plural(diag->n_errors), diag->n_warnings,
				      plural(diag->n_warnings));
		return CTL_FAILED;
	}
	if (effective && config_dump(stdout, settings) < 0) {
		(void)fprintf(stderr, "ballastctl: the configuration can't be written to stdout\n");
		return CTL_FAILED;
	}
	(void)fprintf(summary, "%s: good, mode %s, %zu guest rule%s, %zu warning%s\n", path,
		      mode_name(settings->host.mode), settings->n_rules, plural(settings->n_rules),
		      diag->n_warnings, plural(diag->n_warnings));
	return CTL_OK;
}

static const char usage[] = "Usage: ballastctl check [--effective] [FILE]\n"
			    "  --effective  also print the configuration that results\n"
			    "FILE is " CONFIG_PATH " if none is named.\n";

int ctl_check(int argc, char **argv)
{
	static const struct option options[] = {
		{ "effective", no_argument, NULL, 'e' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	_cleanup_(config_freep) struct settings *settings = NULL;
	struct config_diag diag = CONFIG_DIAG_INIT;
	const char *path = CONFIG_PATH;
	bool effective = false;
	int option, r;

	optind = 0;
	while ((option = getopt_long(argc, argv, "eh", options, NULL)) != -1) {
		if (option == 'h')
			(void)fputs(usage, stdout);
		if (option != 'e')
			return option == 'h' ? CTL_OK : CTL_USAGE;
		effective = true;
	}
	if (argc - optind > 1) {
		(void)fprintf(stderr, "ballastctl check: one file at a time\n");
		return CTL_USAGE;
	}
	if (optind < argc)
		path = argv[optind];
	r = config_load(path, &settings, &diag);
	print_diag(&diag);
	r = finish(path, settings, &diag, r, effective);
	config_diag_clear(&diag);
	return r;
}
