/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What ballastctl prints on: its width, whether it takes colours and UTF-8, and amounts, times and
 * foreign text as they are shown there. Nothing from elsewhere reaches the terminal but through
 * here. One thread.
 */
#ifndef BALLAST_CTL_TERMINAL_H
#define BALLAST_CTL_TERMINAL_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct terminal {
	FILE *out;
	size_t width; /* columns, 0: as wide as it gets */
	bool colours, utf8;
};

enum colour { COLOUR_NONE, COLOUR_GOOD, COLOUR_NOTICE, COLOUR_BAD, COLOUR_DIM, COLOUR_BOLD };

#define TERMINAL_TEXT 512 /* bytes that any text from the daemon fits in, made safe */

/** terminal_init() - look at stdout and the environment (COLUMNS, NO_COLOR, TERM, locale). */
void terminal_init(struct terminal *ret_terminal);

/** terminal_safe() - text from elsewhere as it may be printed. Return: @buf. */
const char *terminal_safe(const struct terminal *terminal, const char *text,
			  char buf[TERMINAL_TEXT]);

/**
 * terminal_cut() - shorten safe text in place to so many columns, the last of them a mark that it
 * was longer.
 */
void terminal_cut(const struct terminal *terminal, char *text, size_t columns);

/* Escape sequence that starts a colour or ends all, "" where there are none. */
const char *terminal_start(const struct terminal *terminal, enum colour colour);
const char *terminal_end(const struct terminal *terminal);

/** span_text() - a time of @us as "0.3 s", "12 s", "5 min", "3 h" or "2 d". Return: @buf. */
const char *span_text(char *buf, size_t size, uint64_t us);

#define ITEMS_MAX     16
#define ITEM_SIZE     128
#define TERMINAL_LINE 1024 /* bytes of a text for terminal_text() */

/* Items of a line to be printed with terminal_items(). Start with all zero. */
struct items {
	char text[ITEMS_MAX][ITEM_SIZE];
	size_t n;
};

/** items_add() - add an item; one too many is dropped. */
void items_add(struct items *items, const char *format, ...) __attribute__((format(printf, 2, 3)));

/**
 * items_add_size(), items_add_span() - "NAME 150 MiB" or "NAME 12 s" from an object's number, nothing
 * where there is none.
 */
void items_add_size(struct items *items, const char *name, struct json_object *object,
		    const char *key);
void items_add_span(struct items *items, const char *name, struct json_object *object,
		    const char *key);

/**
 * terminal_items(), terminal_text() - print a label and after it items, or the words of a text,
 * broken into lines that fit, and indented under the first. All has to be safe already. Nothing is
 * printed where there are no items.
 */
void terminal_items(const struct terminal *terminal, const char *label, const struct items *items);
void terminal_text(const struct terminal *terminal, const char *label, const char *text);

/** complain() - one line on stderr: "ballastctl: ...", with control characters written out. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
