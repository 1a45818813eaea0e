/* Host memory that a test reads and writes, mirrored on a device where the backend's memory is a device's: each block
 * is uploaded before a pass and downloaded after it. */
#pragma once

#include "backend/backend.h"

enum { MIRROR_MOST = 24 };

struct mirror {
    struct backend *backend;
    int blocks, passes;
    struct {
        void *host, *there;
        size_t bytes;
    } block[MIRROR_MOST];
    void *moment; /* of the device: a draw's step and position */
};

/* Whether the tests run on a GPU (REMATCH_DEVICE=real in the environment) instead of the stand-in. */
bool device_is_real(void);

/* Whether backend_open() found the backend. Fails the test on any other error, and on a GPU if a backend is missing. */
bool backend_is_here(enum status opened);

/* Whether a backend of that name can be opened here. */
bool backend_opens(const char *name);

/* Whether the backend has a kernel for the layer; a device has none for some. */
bool backend_has(const char *name, const char *layer);

void mirror_open(struct mirror *mirror, struct backend *backend);
void mirror_close(struct mirror *mirror);

/* A block that arguments may point into; bytes may be 0. */
void mirror_add(struct mirror *mirror, void *host, size_t bytes);

/* A pass, waited for; arguments point into host blocks. On a device every other pass reads the draw's step and
 * position from there. */
enum status mirror_forward(struct mirror *mirror, const struct kernel *kernel, void *state,
                           const struct kernel_args *args);
enum status mirror_backward(struct mirror *mirror, const struct kernel *kernel, void *state,
                            const struct kernel_args *args, unsigned parts);
