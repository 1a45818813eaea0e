/* A page in headless Chromium. */
#pragma once

#include "cli.h"

/* Skips the test where there is no Chromium. */
void browser_require(void);

/* Opens a page of the folder, width pixels wide, uses everything on it once, and returns what it then shows:
 *
 * error      the text of a script error, null: none
 * title, verdict, text    of the heading, of the verdict, of the whole page
 * charts     by id: {unit, labels, described, data: of each data set an array of [x, y]}
 * scrolls    whether the page is wider than the window */
json_t *browser_show(const struct cli *cli, const char *page, int width);
