/* What the program prints for its commands: lists, answers of planning, live runs, reports, what is missing,
 * keys, completion.
 */
#pragma once

#include "analysis/json_tree.h"
#include "console/arguments.h"
#include "job/job.h"

/* ---- list.c: the experiments in a folder, or the runs in a folder of results ---- */

/* The command: of the folder that is its operand, else of the experiments. Of one with specs one line each: name,
 * title, and the status of its newest result file, where there is one. Of one without specs but with result files,
 * itself or in its folders, one row each, by folder and time of creation; a variant's verdict is that of its file
 * beside its baseline's: of the files in the folder that train the same, one of the same invocation before others, then
 * one computed alike, then the newest. What cannot be read is a row with the reason. ST_SPEC: the folder cannot be
 * read, a spec in it is wrong (reported on stderr; the others are listed). */
enum status list_folder(struct arguments *arguments);

/* The rows of its runs as JSON has them, and in "match" what they were matched by; an array. */
json_t *list_runs(const char *folder);

/* The verdict of a result file beside its baseline in the same folder, as a sentence. */
const char *list_verdict(const char *path, struct region *region);

/* ---- plan_query.c: questions about a spec that planning answers: the memory and time of every policy's plans, the
 * largest batch that fits, the least memory at a slowdown, what sets the peak; nothing runs ---- */

/* As in struct command. */
enum {
    QUERY_OPTIONS =
        BIT(PARETO) | BIT(CSV) | BIT(MAX_BATCH) | BIT(MIN_MEMORY) | BIT(EXPLAIN) | BIT(MEMORY) | BIT(SLOWDOWN)
};

struct plan_query {
    const struct question *question; /* NULL: none was asked */
    bool json, csv;                  /* neither: text */
    uint64_t memory;                 /* bytes; 0: not given */
    double slowdown;                 /* INFINITY: not given */
};

/* Reads the options of the command line. ST_SPEC: they exclude each other, or a value is wrong. */
enum status plan_query_read(const struct arguments *arguments, struct plan_query *query);

/* Answers on out. */
enum status plan_query_answer(const struct plan_query *query, const struct job *job, FILE *out);

/* ---- follow.c: steps of a run that another process does, printed as they are committed ---- */

/* Prints the steps of a result file, and goes on until its run has ended. path: as it is named now or will be named
 * when it is complete. A terminal gets at most one line a second and a bar, anything else every step. ST_FAILED: the
 * run did not complete, and the message says how it ended; or the file cannot be read. */
enum status follow_file(const char *path, FILE *out);

/* The same for every run of the spec's experiment that is going on, one after the other, until none has begun within
 * ten seconds. ST_SPEC: none is going on. */
enum status follow_experiment(const struct spec *spec, FILE *out);

/* ---- report.c: result and plan files as one page, as drawings for papers, and as a trace ---- */

/* The files are operands, --out, --figures and --trace name what is made of them: a page, report.html where none of
 * them is given; --pareto: with the plans of all policies, however large the network. Reads every file before anything
 * is written. ST_SPEC, ST_FAILED: a file is no result file, is damaged, or cannot be written, or the page or trace
 * would replace another kind of file; ST_MISSING: drawings need a program that is not installed. Prints what was
 * written. */
enum status report_make(struct arguments *arguments);

/* ---- doctor.c: what this machine has for building and running, what is missing, and the command that mends it ---- */

/* The command: prints one row a thing, or one object. The exit code is ST_OK, or ST_MISSING where one is missing that
 * building and testing here or running the default backend needs, or where a data set's files are damaged. Backends
 * other than the default and data sets that are not here are listed, but not needed. */
enum status doctor(struct arguments *arguments);

/* The internal sub-command that doctor() starts: opens a backend, and prints one line about it. A library that cannot
 * be loaded, or crashes, ends only this process. */
extern const char doctor_command[];
enum status doctor_backend(const char *name);

/* ---- schema.c: the keys of a spec and a model, printed from the tables by which they are read ---- */

/* The command: every key with its values, default and meaning, by section, as text or as one object; of an operand,
 * only the section, policy, layer or key of that name. ST_SPEC: nothing has that name. */
enum status schema_print(struct arguments *arguments);

/* ---- complete.c: completion of a command line in a shell: a script of the shell asks the program itself, whose tables
 * parse the line ---- */

/* Prints the script for "bash" or "zsh". */
void complete_script(const char *shell, FILE *out);

/* The internal sub-command that it calls with the words after the program, the last of them incomplete: prints what
 * that may be, one a line, each with a tab and its meaning; nothing where a file is expected. */
extern const char complete_command[];
void complete_words(const struct command *commands, int count, int words, char **word, FILE *out);
