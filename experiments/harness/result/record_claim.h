/* A lock file: one process at a time holds it, and its name says which. */
#pragma once

#include "result/record_file.h"

struct record_claim {
    int lock; /* descriptor */
    char path[RECORD_PATH];
};

/* Waits until no other process holds path. After a second, stderr says which process is waited for; ST_FAILED if it has
 * been stopped (SIGSTOP) for CLAIM_PATIENCE, or if path cannot be locked. The system releases a claim however its
 * process ends. */
enum { CLAIM_PATIENCE = 20 }; /* seconds */
enum status record_claim_take(struct record_claim *claim, const char *path);
void record_claim_release(struct record_claim *claim);
