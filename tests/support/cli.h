/* The built program as a user runs it, in a folder of its own. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct cli {
    char folder[256];
    int code;        /* exit code of the last call; 128 + n where a signal ended it */
    char *out, *err; /* what it printed, to be freed by the next call */
};

/* Creates a folder with small.yaml: a small MLP with dropout on synthetic data, policy manual. */
void cli_open(struct cli *cli);
void cli_close(struct cli *cli);

/* The same with a program that has a device: the one with the emulated device (tests/device/), or, if the tests run on
 * a GPU, the program itself. device: the value of REMATCH_HOST_DEVICE; NULL: any device. Skips the test without such a
 * device; a GPU can only be made absent. */
void cli_open_on_device(struct cli *cli, const char *device);

/* Writes a file of the folder; text is printed as by printf. */
void cli_file(const struct cli *cli, const char *name, const char *text);

/* Runs "rematch ARGUMENTS" by the shell, in the folder; before: a shell command to run first ("ulimit -f 10"). */
void cli_run(struct cli *cli, const char *before, const char *arguments);

/* The same on a terminal of so many columns, 0: one of unknown width; out is what the screen shows of both streams, err
 * is empty. Returns how many lines were longer (tests/support/terminal_screen.h). */
int cli_on_screen(struct cli *cli, int columns, const char *before, const char *arguments);

/* Asserts the exit code; the message has the output. */
void cli_expect(struct cli *cli, int code, const char *arguments);

/* The same, and returns the output as JSON, to be freed by json_decref. */
json_t *cli_json(struct cli *cli, int code, const char *arguments);

/* Asserts that stdout, or stderr, contains the text. */
void cli_says(const struct cli *cli, const char *text);
void cli_complains(const struct cli *cli, const char *text);

/* The number of lines on stderr, and of occurrences of the text. */
int cli_complaints(const struct cli *cli);
int cli_repeats(const struct cli *cli, const char *text);

/* The program's path. */
const char *cli_program(void);
