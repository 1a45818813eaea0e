/* The table of backends, made from the folders of kernels/ that were built (backends.def is written by make). */
#include "backend/backend.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A backend may be linked into another program only (rematch-cuda): its row is then NULL and ends the table. */
#define BACKEND(name) extern const struct backend_kind backend_##name __attribute__((weak));
#include "backends.def"
#undef BACKEND

#define BACKEND(name) &backend_##name,
const struct backend_kind *const backend_table[] = {
#include "backends.def"
    NULL};
#undef BACKEND

const char *const clock_names[CLOCK_CLASSES] = {"conv",      "linear",     "pool",    "norm",
                                                "attention", "activation", "reorder", "other"};

static enum status unknown(const char *name)
{
    char built[256] = "";
    if (!strcmp(name, "cuda"))
        return fail(ST_MISSING,
                    "backend 'cuda' is not built into this program: building it needs nvcc, cuDNN and cuBLAS");
    for (const struct backend_kind *const *k = backend_table; *k; k++) {
        size_t used = strlen(built);
        snprintf(built + used, sizeof built - used, "%s%s", used ? ", " : "", (*k)->name);
    }
    return fail(ST_SPEC, "no backend is called '%s'; there are %s", name, built);
}

const struct backend_kind *backend_find(const char *name)
{
    const struct backend_kind *const *kind = backend_table;
    while (*kind && strcmp((*kind)->name, name) != 0) kind++;
    return *kind;
}

/* With fewer threads than requested, the work differs from the plan, and libraries that count on them hang. */
static enum status check_threads(const struct backend *backend)
{
    const int asked = (int)backend->options.threads;
    int running = 0;
    omp_set_dynamic(0);
#pragma omp parallel num_threads(asked) reduction(+ : running)
    running++;
    omp_pause_resource_all(omp_pause_soft); /* else its threads would wait in this process while another trains */
    if (running == asked) return ST_OK;
    return fail(ST_MISSING,
                "backend %s: backend.threads asks for %d threads, but OpenMP runs %d; expected no lower limit in the "
                "environment (OMP_THREAD_LIMIT, OMP_MAX_ACTIVE_LEVELS), or backend.threads=%d",
                backend->kind->name, asked, running, running);
}

enum status backend_open(const char *name, const struct backend_options *options, struct backend **backend)
{
    *backend = NULL;
    const struct backend_kind *kind = backend_find(name);
    if (!kind) return unknown(name);
    struct backend *b = allocate(1, sizeof *b);
    b->kind = kind;
    b->options = *options;
    if (!b->options.threads) b->options.threads = omp_get_num_procs();
    enum status status = kind->device ? ST_OK : check_threads(b);
    if (status == ST_OK) status = kind->open(b);
    if (status == ST_OK) {
        *backend = b;
    } else {
        free(b);
    }
    return status;
}

void backend_close(struct backend *backend)
{
    if (!backend) return;
    backend->kind->close(backend);
    allocation_count_free(&backend->allocated);
    free(backend);
}

uint64_t clock_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
