/* How much memory a run may still take on this machine, and what this process takes. */
#ifndef REMATCH_JOB_MACHINE_H
#define REMATCH_JOB_MACHINE_H

#include <stdint.h>

struct machine_memory {
    uint64_t bytes;    /* UINT64_MAX: nothing limits it */
    const char *limit; /* which limit is the least: "MemAvailable", "the control group's limit", "RLIMIT_AS" */
};

/* The least of MemAvailable, every enclosing cgroup's limit less its use (v1 and v2; page cache that can be dropped is
 * not use), and RLIMIT_AS less this process's address space. root is "" but in tests: a folder that holds proc/ and
 * sys/. */
struct machine_memory machine_memory(const char *root);

/* VmRSS and VmHWM of this process, in bytes; 0 where the system does not say. */
uint64_t process_rss(void);
uint64_t process_high_water(void);

/* The processor's name, "unknown" where the system does not tell; returns text. */
const char *machine_cpu(char text[256]);

/* The processor's name, "unknown" where the system does not name it; returns text. */
const char *machine_cpu(char text[256]);

#endif
