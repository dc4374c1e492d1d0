/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A run as a picture: the footprint of the guests, stacked, against the budget, and below it what
 * became of lazyfree memory, cold cache and text.
 */
#ifndef BALLAST_LAB_REPORT_PLOT_H
#define BALLAST_LAB_REPORT_PLOT_H

#include <stdio.h>

#include "tests/lab/report/run.h"

/**
 * plot_write() - write the picture as SVG.
 * @control: drawn as a line, or NULL.
 *
 * Return: 0 or a negative errno of the file.
 */
int plot_write(FILE *to, const struct run *run, const struct run *control);

#endif
