/* Where a step's time goes on the device: events in the queue wherever phase or class change. */
#ifndef REMATCH_KERNELS_CUDA_PHASE_TIMING_H
#define REMATCH_KERNELS_CUDA_PHASE_TIMING_H

#include "cuda.h"

struct phase_timing *phase_timing_create(void);
void phase_timing_destroy(struct phase_timing *timeline);

/* Between begin and end, changes are marked; in a recording, each time that it runs. What was marked before is
 * forgotten. */
void phase_timing_begin(struct backend *backend, bool recorded);
void phase_timing_end(struct backend *backend);

/* Once the queue is done: sets the backend's phase_ns and adds what passes took to its clock_ns. */
enum status phase_timing_read(struct backend *backend);

#endif
