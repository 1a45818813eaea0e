/* A training step as an integer programme, the formulation of Jain et al., "Checkmate: breaking the memory wall with
 * optimal tensor rematerialization", 2020, over the events of a step: which values and saved tensors are kept after
 * each event, and which nodes are recomputed before it.
 *
 * Its least time bounds that of every schedule. Where it is ordered, rows for each recomputation are added: then it has
 * the schedules that recompute a node at most once between two events, in the order of the nodes, and no others. */
#pragma once

#include <stdio.h>

#include "search/step_model.h"

struct step_program {
    const struct step_model *model;
    size_t limit; /* live bytes */
    bool ordered;
    int columns; /* x0, x1, ... */
    int *keep;   /* by event and thing (of a node its value, then its saved tensors): column, -1: never live */
    int *make;   /* by event and node: column, -1: of no use there */
    int *last;   /* by thing: the last event that reads it, or what a recomputation makes of it; 0: none */
    double unit; /* bytes that the programme counts as 1 */
    int64_t rows;
    FILE *file;
};

/* Its objective is the time of all recomputations, of which the step's floor is this many. */
extern const double step_program_floor;

/* Writes it in the format LP. *fits: false: an event alone takes more than limit bytes, and nothing is written.
 * ST_FAILED: the file cannot be written. The model must outlive the programme. */
enum status step_program_write(const struct step_model *model, size_t limit, bool ordered, const char *path,
                               struct region *region, struct step_program *program, bool *fits);

/* The sequence of a solution: lines with a column's name and its value, which are not trusted; columns that are not
 * named are 0. In region. */
struct sequence step_program_read(const struct step_program *program, const char *solution, struct region *region);
