// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/bench/report/plot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/util/cleanup.h"

#define LEAST_LOG 0.5 /* where a plot with a logarithmic scale shows what is nothing */

static const char *const colours[] = { "#4c78a8", "#f2a65a", "#7fb77e", "#c97b84",
				       "#9d8ac7", "#8c8c8c", "#d4b44a", "#5fb0b7" };

#define COLOUR(i) colours[(i) % (sizeof(colours) / sizeof(colours[0]))]

struct names {
	char text[TABLE_MAX_ROWS][256];
	size_t n;
};

/* One plot: what is drawn of a table. */
struct plot {
	const struct table *table;
	const struct bench *bench;
	size_t columns[TABLE_MAX_COLUMNS], n_columns;
	char by[64], over[64]; /* settings: one series for each value, and the axis */
	bool log;
	size_t measured; /* medians that there are */
	struct names series;
	struct names places; /* what stands below the bars */
};

/* "COLUMN ... [by SETTING] [over SETTING] [log]" */
static int parse(struct plot *plot, const char *text)
{
	char words[256], *save = NULL, *word;

	snprintf(words, sizeof(words), "%s", text);
	for (word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *into = strcmp(word, "by") == 0	 ? plot->by
			     : strcmp(word, "over") == 0 ? plot->over
							 : NULL;

		if (into) {
			word = strtok_r(NULL, " ", &save);
			if (!word)
				return -EINVAL;
			snprintf(into, sizeof(plot->by), "%s", word);
		} else if (strcmp(word, "log") == 0) {
			plot->log = true;
		} else {
			size_t column = table_column(plot->table, word);

			if (column == plot->table->n_columns ||
			    plot->table->columns[column].given ||
			    plot->n_columns == TABLE_MAX_COLUMNS)
				return -EINVAL;
			plot->columns[plot->n_columns++] = column;
		}
	}
	return plot->n_columns > 0 ? 0 : -EINVAL;
}

/* The number of a text in a list, to which it is added when it is new. */
static size_t number_of(struct names *names, const char *text)
{
	size_t i = 0;

	while (i < names->n && strcmp(names->text[i], text) != 0)
		i++;
	if (i == TABLE_MAX_ROWS)
		return i - 1;
	if (i == names->n)
		snprintf(names->text[names->n++], sizeof(names->text[0]), "%s", text);
	return i;
}

/* Is a word of a cell's name the same in all rows? */
static bool is_common(const struct table *table, const char *word)
{
	for (size_t i = 0; i < table->n_rows; i++) {
		const char *name = table->rows[i].cell->name, *at = strstr(name, word);
		size_t n = strlen(word);

		if (!at || (at > name && at[-1] != ' ') || (at[n] && at[n] != ' '))
			return false;
	}
	return true;
}

/* What tells a row from others, but for one setting. */
static void others_of(const struct plot *plot, size_t row, const char *but, const char *between,
		      char *buf, size_t size)
{
	char words[256], *save = NULL, *word;
	size_t n = 0, key = strlen(but);

	snprintf(words, sizeof(words), "%s", plot->table->rows[row].cell->name);
	buf[0] = '\0';
	for (word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		if (is_common(plot->table, word) ||
		    (key && strncmp(word, but, key) == 0 && word[key] == '='))
			continue;
		n += (size_t)snprintf(buf + n, n < size ? size - n : 0, "%s%s", n ? between : "",
				      word);
	}
}

/* A point of a curve: the series is all that tells its row from others but for the axis. */
static void place_on_curve(struct plot *plot, size_t row, size_t column, size_t *ret_series)
{
	const char *header = plot->table->columns[column].header;
	char others[256], text[256];

	others_of(plot, row, plot->over, " ", others, sizeof(others));
	if (plot->n_columns == 1 && others[0])
		snprintf(text, sizeof(text), "%s", others);
	else
		snprintf(text, sizeof(text), "%.100s%s%.150s", header, others[0] ? " " : "",
			 others);
	*ret_series = number_of(&plot->series, text);
}

/* Which series a row's column belongs to, and where on the axis. */
static void place(struct plot *plot, size_t row, size_t column, size_t *ret_series, double *ret_x)
{
	const struct row *at = &plot->table->rows[row];
	char value[64] = "", text[256];

	if (!at->cell) {
		*ret_x = at->number;
		*ret_series = number_of(&plot->series, plot->table->columns[column].header);
		return;
	}
	if (plot->over[0] && cell_setting(at->cell, plot->over, value, sizeof(value))) {
		*ret_x = strtod(value, NULL);
		place_on_curve(plot, row, column, ret_series);
		return;
	}
	if (plot->by[0] && cell_setting(at->cell, plot->by, value, sizeof(value)))
		snprintf(text, sizeof(text), "%s=%s", plot->by, value);
	else
		snprintf(text, sizeof(text), "%s", plot->table->columns[column].header);
	*ret_series = number_of(&plot->series, text);
	others_of(plot, row, plot->by, "\\n", text, sizeof(text));
	*ret_x = (double)number_of(&plot->places, text);
}

/* A mark on the axis wherever a curve has a point. */
static void write_tics(const struct plot *plot, FILE *to)
{
	char value[64];

	fprintf(to, "set xtics (");
	for (size_t row = 0; row < plot->table->n_rows; row++) {
		const struct row *at = &plot->table->rows[row];

		if (!at->cell)
			snprintf(value, sizeof(value), "%d", at->number);
		else if (!cell_setting(at->cell, plot->over, value, sizeof(value)))
			continue;
		fprintf(to, "%s%g", row ? ", " : "", strtod(value, NULL));
	}
	fprintf(to, ")\n");
}

static double shown(const struct plot *plot, double value)
{
	return plot->log ? fmax(value, LEAST_LOG) : value;
}

/* The data of one series: "x median low high", then after a blank line "x value". */
static int write_series(struct plot *plot, size_t series, bool dots, FILE *to, char *problem,
			size_t size)
{
	int r = 0;

	fprintf(to, "$%s%zu << END\n", dots ? "dots" : "medians", series);
	for (size_t row = 0; row < plot->table->n_rows; row++)
		for (size_t i = 0; i < plot->n_columns && r == 0; i++) {
			struct entry entry = { .measured = false };
			size_t mine;
			double x;

			place(plot, row, plot->columns[i], &mine, &x);
			if (mine != series)
				continue;
			r = table_entry(plot->table, plot->bench, row, plot->columns[i], &entry,
					problem, size);
			if (r == 0 && entry.measured && !dots)
				fprintf(to, "%g %g %g %g\n", x, shown(plot, entry.summary.median),
					shown(plot, entry.summary.low),
					shown(plot, entry.summary.high));
			plot->measured += r == 0 && entry.measured;
			for (size_t k = 0; r == 0 && dots && k < entry.summary.n; k++)
				fprintf(to, "%g %g\n", x, shown(plot, entry.values[k]));
			entry_done(&entry);
		}
	fprintf(to, "END\n");
	return r;
}

static void write_axis(const struct plot *plot, FILE *to)
{
	if (plot->log)
		fprintf(to, "set logscale y\nset yrange [%g:*]\n", LEAST_LOG);
	else
		fprintf(to, "set yrange [0:*]\n");
	if (plot->over[0])
		fprintf(to, "set xlabel \"%s\"\n", plot->over);
	if (plot->places.n == 0) {
		write_tics(plot, to);
		return;
	}
	fprintf(to, "set xrange [-0.6:%g]\nset xtics scale 0 (", (double)plot->places.n - 0.4);
	for (size_t i = 0; i < plot->places.n; i++)
		fprintf(to, "%s\"%s\" %zu", i ? ", " : "", plot->places.text[i], i);
	fprintf(to, ")\n");
}

static void write_bars(const struct plot *plot, FILE *to)
{
	double width = 0.8 / (double)plot->series.n;

	fprintf(to, "set boxwidth %g\nset style fill solid 0.8\nplot ", width);
	for (size_t i = 0; i < plot->series.n; i++) {
		double shift = ((double)i - ((double)plot->series.n - 1) / 2) * width;

		fprintf(to,
			"%s$medians%zu using ($1+%g):2 with boxes lc rgb \"%s\" title \"%s\", "
			"$medians%zu using ($1+%g):3:(0):($4-$3) with vectors nohead lw 1.5 "
			"lc rgb \"#333333\" notitle, $dots%zu using ($1+%g):2 with points pt 6 "
			"ps 0.35 lc rgb \"#333333\" notitle",
			i ? ", " : "", i, shift, COLOUR(i), plot->series.text[i], i, shift, i,
			shift + width / 5);
	}
	fprintf(to, "\n");
}

static void write_curves(const struct plot *plot, FILE *to)
{
	fprintf(to, "set offsets graph 0.03, graph 0.03, 0, 0\nplot ");
	for (size_t i = 0; i < plot->series.n; i++)
		fprintf(to,
			"%s$medians%zu using 1:2:3:4 with yerrorbars pt 7 ps 0.6 lc rgb \"%s\" "
			"notitle, $medians%zu using 1:2 with lines lw 2 lc rgb \"%s\" title "
			"\"%s\", "
			"$dots%zu with points pt 6 ps 0.35 lc rgb \"%s\" notitle",
			i ? ", " : "", i, COLOUR(i), i, COLOUR(i), plot->series.text[i], i,
			COLOUR(i));
	fprintf(to, "\n");
}

/* Text in gnuplot's single quotes. */
static void write_text(const char *text, FILE *to)
{
	fputc('\'', to);
	for (; *text; text++)
		fputs(*text == '\'' ? "\'\'" : (char[2]){ *text }, to);
	fputc('\'', to);
}

static void write_head(const struct plot *plot, const char *folder, size_t number, FILE *to)
{
	const size_t places = plot->places.n > 5 ? plot->places.n : 5;

	fprintf(to,
		"set terminal svg size %zu,460 dynamic font \"sans-serif,13\" background "
		"\"white\"\n"
		"set output \"%s/%s-%zu.svg\"\nset title ",
		350 + places * 110, folder, plot->table->name, number);
	write_text(plot->table->title, to);
	fprintf(to, " noenhanced\nset key outside right top noenhanced\n"
		    "set grid ytics lc rgb \"#dddddd\"\nset border 3\n"
		    "set tics nomirror noenhanced\nset ylabel \"");
	for (size_t i = 0; i < plot->n_columns; i++)
		fprintf(to, "%s%s", i ? ", " : "", plot->table->columns[plot->columns[i]].header);
	fprintf(to, "\" noenhanced\n");
}

/* Lines of the longest label. */
static size_t label_lines(const struct plot *plot)
{
	size_t most = 1;

	for (size_t i = 0; i < plot->places.n; i++) {
		size_t lines = 1;

		for (const char *at = plot->places.text[i]; (at = strstr(at, "\\n")); at += 2)
			lines++;
		most = lines > most ? lines : most;
	}
	return most;
}

/* In the order of their values. */
static int compare(const void *a, const void *b)
{
	return strverscmp(a, b);
}

static int write_plot(struct plot *plot, const char *folder, size_t number, FILE *to, char *problem,
		      size_t size)
{
	size_t series;
	double x;
	int r;

	/* Series and places get their numbers in the order of the rows. */
	for (size_t row = 0; row < plot->table->n_rows; row++)
		for (size_t i = 0; i < plot->n_columns; i++)
			place(plot, row, plot->columns[i], &series, &x);
	if (plot->by[0])
		qsort(plot->series.text, plot->series.n, sizeof(plot->series.text[0]), compare);
	write_head(plot, folder, number, to);
	if (plot->places.n > 0)
		fprintf(to, "set bmargin %zu\n", label_lines(plot) + 1);
	write_axis(plot, to);
	for (series = 0; series < plot->series.n; series++) {
		r = write_series(plot, series, false, to, problem, size);
		r = r < 0 ? r : write_series(plot, series, true, to, problem, size);
		if (r < 0)
			return r;
	}
	if (plot->places.n > 0)
		write_bars(plot, to);
	else
		write_curves(plot, to);
	return 0;
}

int plot_table(const struct table *table, const struct bench *bench, const char *folder,
	       char *problem, size_t size)
{
	for (size_t i = 0; i < table->n_plots; i++) {
		_cleanup_free_ struct plot *plot = calloc(1, sizeof(*plot));
		char path[512];
		FILE *to;
		int r;

		if (!plot)
			return -ENOMEM;
		plot->table = table;
		plot->bench = bench;
		if (parse(plot, table->plots[i]) < 0) {
			snprintf(problem, size, "%s: what is 'plot %s'?", table->name,
				 table->plots[i]);
			return -EINVAL;
		}
		snprintf(path, sizeof(path), "%s/%s-%zu.gp", folder, table->name, i + 1);
		problem[0] = '\0';
		to = fopen(path, "we");
		r = to ? write_plot(plot, folder, i + 1, to, problem, size) : -errno;
		if (to && fclose(to) != 0 && r == 0)
			r = -errno;
		if (r < 0 && !problem[0])
			snprintf(problem, size, "%s: %s", path, strerror(-r));
		if (r < 0)
			return r;
		/* gnuplot takes nothing to draw for an error. */
		if (plot->measured == 0)
			(void)unlink(path);
	}
	return 0;
}
