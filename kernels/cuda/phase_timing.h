/* Timing of a step's phases and classes on the device: an event in the queue wherever phase or class changes. */
#ifndef REMATCH_KERNELS_CUDA_PHASE_TIMING_H
#define REMATCH_KERNELS_CUDA_PHASE_TIMING_H

#include "cuda.h"

struct phase_timing *phase_timing_create(void);
void phase_timing_destroy(struct phase_timing *timeline);

/* Between begin and end every change records an event; captured events are recorded at each launch. begin drops earlier
 * marks. */
void phase_timing_begin(struct backend *backend, bool captured);
void phase_timing_end(struct backend *backend);

/* After all queued work is done: sets the backend's phase_ns and adds the time of passes to its clock_ns. */
enum status phase_timing_read(struct backend *backend);

#endif
