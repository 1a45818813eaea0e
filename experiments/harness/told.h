/* The program's one way of saying what went wrong: once, on stderr, where the failure is given up on. */
#ifndef REMATCH_TOLD_H
#define REMATCH_TOLD_H

#include "status.h"

/* Unless status is ST_OK, prints "rematch: " and the message of fail(); returns status. */
enum status told(enum status status);

#endif
