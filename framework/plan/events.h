/* The events of a schedule: what runs at each node for each slice, and what is read of it later. */
#pragma once

#include "backend/network.h"
#include "plan/schedule.h"

/* A step of the schedule at one node, a split backward being two. */
struct event {
    enum step_kind kind;
    int node, slice;
    unsigned parts; /* BACKWARD; 0: only passes gradients on */
    bool first;     /* the first event of this kind of the node and slice */
    bool last;      /* BACKWARD: their last */
    int part;       /* BACKWARD: of the parameters' gradient, from 1; 0: all */
    bool updates;   /* no later event reads the node's parameters or adds to their gradients */
    bool dropped, save;
    bool joint; /* FORWARD of a slice: writes a part of a buffer that an op of the whole batch reads; */
    bool opens; /* it is the first to write there since the last such read, and all slices follow */
};

struct events {
    struct event *event;
    size_t count;
    int dropped; /* dead recomputations */
};

/* Of a schedule that passed schedule_check(); drop_dead: leaves out dead recomputations. In region. */
struct events events_list(const struct network *network, const struct schedule *schedule, bool drop_dead,
                          struct region *region);

/* What a backward reads (enum reads). One in parts keeps all that it reads to the last. */
unsigned event_reads(const struct network *network, const struct event *event);

/* The place of a slice, or of the first of all, in arrays by value or node and slice; and how many places follow. */
static inline int slice_place(int slices, int index, int slice) { return index * slices + (slice > 0 ? slice : 0); }
static inline int slice_places(int slices, int slice) { return slice == WHOLE_BATCH ? slices : 1; }
