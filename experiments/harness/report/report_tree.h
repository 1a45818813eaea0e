/* What a report shows, as one tree: the page holds it (results/README.md), drawings and trace are drawn from it. */
#pragma once

#include "analysis/json_tree.h"
#include "result/result_read.h"

/* The ops of a file's plan with their live bytes by category, its buffers, and of each node what is kept, what is
 * recomputed and why. ST_SPEC: the file has no plan, or it contradicts itself. */
enum status report_plan(struct result *result, json_t **plan);

/* Of each forward, recomputation and other op, by the number in the tree. */
extern const char *const report_phases[];

/* The plans of every policy for a file's network, and the lower bound over the live bytes. NULL: the network cannot be
 * prepared here, and notes says why. */
json_t *report_choices(const char *path, json_t *notes);

/* The expectations of a file's spec, as texts; "unlike": how this run differs from the one that the spec expects it of,
 * null: it does not. What a sweep sets is there, too: the file does not say which overrides are of a sweep. */
json_t *report_expectations(struct result *result);

/* "8", "40%" and "6GB", of bytes in MiB; NaN: it is no number. */
double report_number(const char *text);

/* The settings of a file's spec by their paths, such as "policy.segments"; a long text is cut, and its digest added. */
json_t *report_settings(struct result *result);

/* The keys in which runs differ, each with its value in every run: of those that determine each other, the first.
 * settings: report_settings() of each. */
json_t *report_axes(const json_t *settings, struct region *region);

/* The maps of a list of the file's spec, `expect` or `published`, as texts. */
json_t *report_list(struct result *result, const char *key);

/* report_thin.c: what a page takes of the tree, so that a run adds little to it, however large it is. */
json_t *report_thin(const json_t *tree);

/* Print a tree, for yaml_write_whole(), and how such a file begins, which may be replaced. */
void report_print_page(const void *tree, FILE *out);
void report_print_trace(const void *tree, FILE *out);
extern const char report_page_begins[], report_trace_begins[];

/* Draws the drawings, all or none, into a folder, which is made. The check before long work: ST_FAILED: it cannot be
 * written; ST_MISSING: the program that draws is not installed. */
enum status report_check_drawings(const char *folder);
enum status report_write_drawings(const json_t *tree, const char *folder, bool single_column);

/* Declares name, the text of a file of the source tree or of the system as it was when the program was built. */
#define EMBED(name, path)                                                                                              \
    __asm__(".section .rodata\n" #name ":\n.incbin \"" path "\"\n.byte 0\n.previous\n");                               \
    extern const char name[]
