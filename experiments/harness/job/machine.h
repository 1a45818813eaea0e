/* The machine's memory that a run may still use, and the memory of this process. */
#pragma once

#include "backend/backend.h"

struct machine_memory {
    uint64_t bytes;    /* UINT64_MAX: nothing limits it */
    const char *limit; /* what limits it: "MemAvailable", "the control group's limit", "RLIMIT_AS", "the device" */
};

/* The least of MemAvailable, every enclosing cgroup's limit less its use (v1 and v2; reclaimable page cache is not
 * counted), and RLIMIT_AS less this process's address space. root: "", or in tests a folder that holds proc/ and sys/.
 */
struct machine_memory machine_memory(const char *root);

/* The machine's memory, used or not. */
uint64_t machine_bytes(void);

/* The memory left where the backend works: the device's, or the machine's. */
struct machine_memory memory_left(struct backend *backend);

/* VmRSS and VmHWM of this process, in bytes; 0: unknown. */
uint64_t process_rss(void);
uint64_t process_high_water(void);

/* The time that processors worked for this process, all its threads together. */
uint64_t process_worked_ns(void);

/* What a shell command prints, at most so many bytes, to be freed; $REMATCH_FOLDER is this program's folder in it.
 * *code: its exit code, -1: it could not be run, or printed more. */
char *command_output(const char *command, size_t most, int *code);

/* The processor's name, "unknown" where the system does not name it; returns text. */
const char *machine_cpu(char text[256]);
