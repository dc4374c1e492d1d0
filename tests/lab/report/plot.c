// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lab/report/plot.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

#define MIB    1048576.0
#define WIDTH  1000
#define HEIGHT 660
#define LEFT   70
#define RIGHT  830
#define EARLY  -12.0 /* seconds before the cut that are shown */

/* A panel: an area of the picture with its own scale of memory. */
struct panel {
	int top, bottom;
	double most; /* bytes at the top */
	double from, to; /* seconds at the left and right */
};

struct plot {
	FILE *to;
	const struct run *run, *control;
};

static const char *const colours[] = { "#4c78a8", "#f2a65a", "#7fb77e", "#c97b84",
				       "#9d8ac7", "#8c8c8c", "#d4b44a", "#5fb0b7" };

#define COLOUR(i) colours[(i) % (sizeof(colours) / sizeof(colours[0]))]

static double x_of(const struct panel *panel, double t)
{
	double share =
		(fmin(fmax(t, panel->from), panel->to) - panel->from) / (panel->to - panel->from);

	return LEFT + share * (RIGHT - LEFT);
}

static double y_of(const struct panel *panel, double bytes)
{
	double share = fmin(fmax(bytes, 0) / panel->most, 1);

	return panel->bottom - share * (panel->bottom - panel->top);
}

static void label(struct plot *plot, double x, double y, const char *anchor, const char *style,
		  const char *text)
{
	fprintf(plot->to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">%s</text>\n",
		x, y, anchor, style, text);
}

/* A round number of MiB between two lines of the grid. */
static double grid_step(double most)
{
	static const double steps[] = { 10, 25, 50, 100, 200, 250, 500, 1000, 2000, 4000 };

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (most / MIB / steps[i] <= 7)
			return steps[i] * MIB;
	return most / 5;
}

static void draw_grid(struct plot *plot, const struct panel *panel, const char *title)
{
	char text[64];

	label(plot, LEFT, panel->top - 10, "start", "title", title);
	for (double at = 0; at <= panel->most; at += grid_step(panel->most)) {
		double y = y_of(panel, at);

		fprintf(plot->to,
			"<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" class=\"grid\"/>\n",
			LEFT, y, RIGHT, y);
		snprintf(text, sizeof(text), "%.0f", at / MIB);
		label(plot, LEFT - 8, y + 4, "end", "axis", text);
	}
	for (double t = ceil(panel->from / 10) * 10; t <= panel->to; t += 10) {
		snprintf(text, sizeof(text), "%.0f", t);
		label(plot, x_of(panel, t), panel->bottom + 16, "middle", "axis", text);
	}
}

/* The moments when something was done to the host. */
static void draw_marks(struct plot *plot, const struct panel *panel, bool named)
{
	const struct {
		double t;
		const char *text;
	} marks[] = { { 0, "budget cut" },
		      { plot->run->kill, "kill -9" },
		      { plot->run->restart, "" },
		      { plot->run->restore, "budget back" } };

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		double x = x_of(panel, marks[i].t);

		if (isnan(marks[i].t))
			continue;
		fprintf(plot->to,
			"<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" class=\"mark\"/>\n", x,
			panel->top, x, panel->bottom);
		if (named)
			label(plot, x + 4, panel->top + 12, "start", "axis", marks[i].text);
	}
}

static bool is_shown(const struct panel *panel, const struct point *point)
{
	return point->t >= panel->from && point->t <= panel->to;
}

/* Footprint of the guests 0 ... n-1 of a sample. */
static double stacked(const struct point *point, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += isnan(point->guests[i].ram) ? 0 : point->guests[i].ram;
	return sum;
}

static void draw_area(struct plot *plot, const struct panel *panel, size_t guest)
{
	const struct run *run = plot->run;

	fprintf(plot->to, "<path class=\"area\" fill=\"%s\" d=\"M", COLOUR(guest));
	for (size_t i = 0; i < run->n_points; i++)
		if (is_shown(panel, &run->points[i]))
			fprintf(plot->to, "%.1f,%.1f ", x_of(panel, run->points[i].t),
				y_of(panel, stacked(&run->points[i], guest + 1)));
	for (size_t i = run->n_points; i-- > 0;)
		if (is_shown(panel, &run->points[i]))
			fprintf(plot->to, "%.1f,%.1f ", x_of(panel, run->points[i].t),
				y_of(panel, stacked(&run->points[i], guest)));
	fprintf(plot->to, "Z\"/>\n");
}

/* A line of one value over time. */
static void draw_line(struct plot *plot, const struct run *run, const struct panel *panel,
		      double (*value)(const struct run *, const struct point *), const char *style,
		      const char *colour)
{
	bool begun = false;

	fprintf(plot->to, "<path class=\"%s\" stroke=\"%s\" d=\"", style, colour);
	for (size_t i = 0; i < run->n_points; i++) {
		double now = value(run, &run->points[i]);

		if (!is_shown(panel, &run->points[i]) || isnan(now))
			continue;
		fprintf(plot->to, "%c%.1f,%.1f ", begun ? 'L' : 'M', x_of(panel, run->points[i].t),
			y_of(panel, now));
		begun = true;
	}
	fprintf(plot->to, "\"/>\n");
}

static double sum_lazyfree(const struct run *run, const struct point *point)
{
	double sum = 0;

	for (size_t i = 0; i < run->n_guests; i++)
		sum += point->guests[i].lazyfree;
	return sum;
}

static double sum_file(const struct run *run, const struct point *point)
{
	double sum = 0;

	for (size_t i = 0; i < run->n_guests; i++)
		sum += point->guests[i].file;
	return sum;
}

static double sum_text(const struct run *run, const struct point *point)
{
	double sum = 0;

	for (size_t i = 0; i < run->n_guests; i++)
		sum += point->guests[i].text;
	return sum;
}

static double sum_swapped(const struct run *run, const struct point *point)
{
	double sum = 0;

	for (size_t i = 0; i < run->n_guests; i++)
		sum += point->guests[i].swap_entries;
	return sum;
}

static void draw_budget(struct plot *plot, const struct panel *panel)
{
	double y = y_of(panel, plot->run->budget);

	fprintf(plot->to,
		"<path class=\"budget\" d=\"M%.1f,%d L%.1f,%.1f L%.1f,%.1f L%.1f,%d\"/>\n",
		x_of(panel, 0), panel->top, x_of(panel, 0), y, x_of(panel, plot->run->restore), y,
		x_of(panel, plot->run->restore), panel->top);
}

static void legend(struct plot *plot, int row, int top, const char *colour, const char *text)
{
	int y = top + 20 * row;

	fprintf(plot->to, "<rect x=\"%d\" y=\"%d\" width=\"14\" height=\"10\" fill=\"%s\"/>\n",
		RIGHT + 18, y, colour);
	label(plot, RIGHT + 38, y + 9, "start", "axis", text);
}

static void draw_footprint(struct plot *plot, const struct panel *panel)
{
	int row = 0;

	draw_grid(plot, panel, "What the guests' memory costs the host, MiB");
	for (size_t i = 0; i < plot->run->n_guests; i++)
		draw_area(plot, panel, i);
	if (plot->control)
		draw_line(plot, plot->control, panel, run_ram, "control", "#555");
	draw_budget(plot, panel);
	draw_marks(plot, panel, true);
	for (size_t i = plot->run->n_guests; i-- > 0; row++)
		legend(plot, row, panel->top, COLOUR(i), plot->run->names[i]);
	legend(plot, row++, panel->top, "#c1121f", "budget");
	if (plot->control)
		legend(plot, row, panel->top, "#555", "only observed");
}

static void draw_tiers(struct plot *plot, const struct panel *panel)
{
	draw_grid(plot, panel, "What they hold, MiB");
	draw_marks(plot, panel, false);
	draw_line(plot, plot->run, panel, sum_file, "line", "#4c78a8");
	draw_line(plot, plot->run, panel, sum_lazyfree, "line", "#f2a65a");
	draw_line(plot, plot->run, panel, sum_text, "line", "#2f7d32");
	draw_line(plot, plot->run, panel, sum_swapped, "line", "#9d8ac7");
	legend(plot, 0, panel->top, "#4c78a8", "page cache");
	legend(plot, 1, panel->top, "#f2a65a", "lazyfree");
	legend(plot, 2, panel->top, "#2f7d32", "text in use");
	legend(plot, 3, panel->top, "#9d8ac7", "swapped out");
	label(plot, (LEFT + RIGHT) / 2.0, panel->bottom + 34, "middle", "axis",
	      "seconds after the cut");
}

static double most_of(const struct run *run, const struct panel *panel,
		      double (*value)(const struct run *, const struct point *))
{
	double most = 0;

	for (size_t i = 0; run && i < run->n_points; i++)
		if (is_shown(panel, &run->points[i]))
			most = fmax(most, value(run, &run->points[i]));
	return most;
}

static void draw_head(struct plot *plot)
{
	fprintf(plot->to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		"height=\"%d\">\n<style>text{font-family:sans-serif;fill:#333}.title{font-size:"
		"15px;"
		"font-weight:bold}.axis{font-size:12px}.grid{stroke:#ddd;stroke-width:1}"
		".mark{stroke:#999;stroke-width:1;stroke-dasharray:3 3}.area{opacity:0.85}"
		".line{fill:none;stroke-width:2.2}.control{fill:none;stroke-width:1.6;"
		"stroke-dasharray:6 4}.budget{fill:none;stroke:#c1121f;stroke-width:2.5}</style>\n"
		"<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT);
}

int plot_write(FILE *to, const struct run *run, const struct run *control)
{
	struct plot plot = { .to = to, .run = run, .control = control };
	const struct point *first = &run->points[0], *last = &run->points[run->n_points - 1];
	struct panel footprint = {
		.top = 40, .bottom = 350, .from = fmax(EARLY, first->t), .to = last->t
	};
	struct panel tiers = {
		.top = 410, .bottom = 600, .from = footprint.from, .to = footprint.to
	};

	footprint.most = 1.1 * fmax(most_of(run, &footprint, run_ram),
				    most_of(control, &footprint, run_ram));
	tiers.most = 1.1 * fmax(most_of(run, &tiers, sum_file), most_of(run, &tiers, sum_lazyfree));
	if (!(footprint.most > 0))
		footprint.most = MIB;
	if (!(tiers.most > 0))
		tiers.most = MIB;
	draw_head(&plot);
	draw_footprint(&plot, &footprint);
	draw_tiers(&plot, &tiers);
	fprintf(to, "</svg>\n");
	if (fflush(to) != 0 || ferror(to))
		return errno ? -errno : -EIO;
	return 0;
}
