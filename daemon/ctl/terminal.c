// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/ctl/terminal.h"

#include <langinfo.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "daemon/ctl/json.h"
#include "daemon/util/parse.h"
#include "daemon/util/text.h"
#include "daemon/util/time.h"

#define LABEL_WIDTH 12

static bool locale_is_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static size_t find_width(int fd)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	char *end;
	unsigned long n;

	if (columns && *columns) {
		n = strtoul(columns, &end, 10);
		if (*end == '\0' && n >= 20 && n <= 10000)
			return n;
	}
	if (isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0)
		return size.ws_col;
	return 0;
}

void terminal_init(struct terminal *ret_terminal)
{
	const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");

	*ret_terminal = (struct terminal){
		.out = stdout,
		.width = find_width(STDOUT_FILENO),
		.colours = isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0 &&
			   !(no_colour && *no_colour),
		.utf8 = locale_is_utf8(),
	};
}

const char *terminal_safe(const struct terminal *terminal, const char *text,
			  char buf[TERMINAL_TEXT])
{
	text_to_terminal(text, terminal->utf8, buf, TERMINAL_TEXT);
	return buf;
}

/* Columns of printable text, without escape sequences. */
static size_t columns_of(const char *text)
{
	wchar_t wide[TERMINAL_TEXT];
	size_t n = mbstowcs(wide, text, TERMINAL_TEXT);
	int columns = n == (size_t)-1 || n == TERMINAL_TEXT ? -1 : wcswidth(wide, n);

	return columns < 0 ? strlen(text) : (size_t)columns;
}

void terminal_cut(const struct terminal *terminal, char *text, size_t columns)
{
	const char *mark = terminal->utf8 ? "\xe2\x80\xa6" : "~";
	size_t at = 0, used = 0;
	mbstate_t state = { 0 };

	if (columns_of(text) <= columns)
		return;
	while (text[at]) {
		wchar_t wide;
		size_t n = mbrtowc(&wide, text + at, MB_CUR_MAX, &state);
		int width = n > MB_CUR_MAX ? -1 : wcwidth(wide);

		if (width < 0) { /* the locale doesn't know it: a byte, a column */
			state = (mbstate_t){ 0 };
			n = 1;
			width = 1;
		}
		if (used + (size_t)width > columns - 1)
			break;
		used += (size_t)width;
		at += n;
	}
	/* What is cut off is at least a character, but it may be shorter than the mark. */
	if (strlen(text + at) >= strlen(mark))
		memcpy(text + at, mark, strlen(mark) + 1);
	else
		text[at] = '\0';
}

const char *terminal_start(const struct terminal *terminal, enum colour colour)
{
	static const char *const sequences[] = {
		[COLOUR_NONE] = "",	      [COLOUR_GOOD] = "\033[32m",
		[COLOUR_NOTICE] = "\033[33m", [COLOUR_BAD] = "\033[1;31m",
		[COLOUR_DIM] = "\033[2m",     [COLOUR_BOLD] = "\033[1m",
	};

	return terminal->colours ? sequences[colour] : "";
}

const char *terminal_end(const struct terminal *terminal)
{
	return terminal->colours ? "\033[0m" : "";
}

const char *span_text(char *buf, size_t size, uint64_t us)
{
	double seconds = (double)us / (double)USEC_PER_SEC;

	if (seconds < 10)
		(void)snprintf(buf, size, "%.1f s", seconds);
	else if (seconds < 300)
		(void)snprintf(buf, size, "%.0f s", seconds);
	else if (seconds < 3.0 * 3600)
		(void)snprintf(buf, size, "%.0f min", seconds / 60);
	else if (seconds < 3.0 * 86400)
		(void)snprintf(buf, size, "%.0f h", seconds / 3600);
	else
		(void)snprintf(buf, size, "%.0f d", seconds / 86400);
	return buf;
}

void items_add(struct items *items, const char *format, ...)
{
	va_list args;

	if (items->n == ITEMS_MAX)
		return;
	va_start(args, format);
	(void)vsnprintf(items->text[items->n++], ITEM_SIZE, format, args);
	va_end(args);
}

void items_add_size(struct items *items, const char *name, struct json_object *object,
		    const char *key)
{
	char size[FORMAT_SIZE_MAX];
	uint64_t bytes;

	if (json_number(object, key, &bytes))
		items_add(items, "%s%s%s", name, *name ? " " : "",
			  format_size(size, FORMAT_SIZE_MAX, bytes));
}

void items_add_span(struct items *items, const char *name, struct json_object *object,
		    const char *key)
{
	char span[32];
	uint64_t us;

	if (json_number(object, key, &us))
		items_add(items, "%s %s", name, span_text(span, sizeof(span), us));
}

/* A line being filled. */
struct filling {
	const struct terminal *terminal;
	size_t used;
	bool empty;
};

static struct filling start_line(const struct terminal *terminal, const char *label)
{
	fprintf(terminal->out, "%s%-*s%s", terminal_start(terminal, COLOUR_DIM), LABEL_WIDTH, label,
		terminal_end(terminal));
	return (struct filling){ .terminal = terminal, .used = LABEL_WIDTH, .empty = true };
}

static void put_piece(struct filling *line, const char *piece, const char *separator)
{
	const struct terminal *terminal = line->terminal;
	size_t columns = columns_of(piece), gap = line->empty ? 0 : strlen(separator);

	if (!line->empty && terminal->width && line->used + gap + columns > terminal->width) {
		fprintf(terminal->out, "\n%*s", LABEL_WIDTH, "");
		line->used = LABEL_WIDTH;
		gap = 0;
	}
	fprintf(terminal->out, "%s%s", gap ? separator : "", piece);
	line->used += gap + columns;
	line->empty = false;
}

void terminal_items(const struct terminal *terminal, const char *label, const struct items *items)
{
	struct filling line;

	if (items->n == 0)
		return;
	line = start_line(terminal, label);
	for (size_t i = 0; i < items->n; i++)
		put_piece(&line, items->text[i], "   ");
	fputc('\n', terminal->out);
}

void terminal_text(const struct terminal *terminal, const char *label, const char *text)
{
	struct filling line = start_line(terminal, label);
	char words[TERMINAL_LINE], *rest = words;
	const char *word;

	(void)snprintf(words, sizeof(words), "%s", text);
	while ((word = strsep(&rest, " ")))
		put_piece(&line, word, " ");
	fputc('\n', terminal->out);
}

void complain(const char *format, ...)
{
	char text[1024], safe[2048];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	text_to_terminal(text, locale_is_utf8(), safe, sizeof(safe));
	fprintf(stderr, "ballastctl: %s\n", safe);
}
