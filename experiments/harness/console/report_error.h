/* The program's one way of saying on stderr what went wrong, where the failure is given up on, and what else the person
 * who asked must know. */
#ifndef REMATCH_CONSOLE_REPORT_ERROR_H
#define REMATCH_CONSOLE_REPORT_ERROR_H

#include "datasets/dataset.h"

/* Unless status is ST_OK, prints "rematch: " and the message of fail(); returns status. */
enum status told(enum status status);

/* Prints the data set's notice, where it has one, as a warning; once, though a sweep opens it for every point. */
void told_notice(const struct dataset *dataset);

#endif
