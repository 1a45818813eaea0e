/* Where a step's time goes on the device: events in the queue wherever phase or class change. */
#ifndef REMATCH_KERNELS_CUDA_PHASE_TIMING_H
#define REMATCH_KERNELS_CUDA_PHASE_TIMING_H

#include "cuda.h"

enum status clocks_create(struct timeline **timeline);
void clocks_destroy(struct timeline *timeline);

/* Between begin and end, changes are marked; in a recording, each time that it runs. What was marked before is
 * forgotten. */
void clocks_begin(struct backend *backend, bool recorded);
void clocks_end(struct backend *backend);

/* Once the queue is done: sets the backend's phase_ns and adds what passes took to its clock_ns. */
enum status clocks_read(struct backend *backend);

#endif
