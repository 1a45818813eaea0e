/* Files that can be read only once: standard input and pipes, as specs. */
#pragma once

#include "base/status.h"

/* The path of standard input. */
extern const char standard_input[];

/* Where *word is -, a pipe or a terminal: reads all of it into memory that becomes the standard input of this process
 * and of those that it starts, and sets *word to standard_input, which can then be read as often as any file. Other
 * words are left alone. ST_SPEC: it cannot be read, is a pipe that no program
 * writes to, or is too large for a spec. */
enum status standard_input_hold(char **word);
