/* Memory that a test looks at and a kernel works on: the host's; and where a backend's memory is a device's, a twin of
 * each block there, which is sent before each pass and fetched after it. */
#ifndef REMATCH_TESTS_SUPPORT_DEVICE_MIRROR_H
#define REMATCH_TESTS_SUPPORT_DEVICE_MIRROR_H

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

/* Whether the environment says that the tests are on a GPU (REMATCH_DEVICE=real), as opposed to on a stand-in. */
bool device_is_real(void);

/* Whether backend_open() found the backend; what it returned is judged: on a GPU none may be missing. */
bool backend_is_here(enum status opened);

/* Whether a backend of that name can be opened here. */
bool backend_opens(const char *name);

void mirror_open(struct mirror *mirror, struct backend *backend);
void mirror_close(struct mirror *mirror);

/* A block that arguments may point into; bytes may be 0. */
void mirror_add(struct mirror *mirror, void *host, size_t bytes);

/* A pass, waited for; arguments point into blocks of the host's. On a device every other pass reads the draw's step and
 * position from there. */
enum status mirror_forward(struct mirror *mirror, const struct kernel *kernel, void *state,
                           const struct kernel_args *args);
enum status mirror_backward(struct mirror *mirror, const struct kernel *kernel, void *state,
                            const struct kernel_args *args, unsigned parts);

#endif
