/* Whether measured times can be what they seem: a busy machine delays one run more than another. */
#pragma once

#include "result/result_read.h"

/* Why the times of two runs, called by those names, may mislead; NULL: nothing speaks against them. The text is in a's
 * region. Looked at are best-case steps (the one that is planned to take longer must not be faster by more than 5 %,
 * nor slower than twice the planned ratio), and the time that the processors worked, beside that of all threads. */
const char *time_doubts(struct result *a, struct result *b, const char *const name[2]);

/* Whether the processors worked for a run clearly less than its threads ask for, most often because of others. */
bool time_was_disturbed(struct result *result);
