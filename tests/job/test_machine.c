/* The machine's memory, read from invented files: the least of its limits. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/machine.h"
#include "tests/support/made_runs.h"

static const uint64_t gib = UINT64_C(1) << 30;

/* Writes ROOT/path, with the folders above it. */
static void put(const char *root, const char *path, const char *text)
{
    char command[1024], file[512];
    snprintf(file, sizeof file, "%s/%s", root, path);
    snprintf(command, sizeof command, "mkdir -p \"$(dirname '%s')\"", file);
    cr_assert(system(command) == 0);
    FILE *out = fopen(file, "w");
    cr_assert(out != NULL && fputs(text, out) >= 0 && fclose(out) == 0);
}

struct machine {
    const char *doc;
    const char *file[8][2]; /* path, text; NULL ends */
    uint64_t bytes;
    const char *limit;
};

static const struct machine machines[] = {
    {"nothing but memory",
     {{"proc/meminfo", "MemTotal:  33554432 kB\nMemFree: 1 kB\nMemAvailable:   4194304 kB\n"}},
     4,
     "MemAvailable"},
    {"a v2 group above the own one limits",
     {{"proc/meminfo", "MemAvailable: 16777216 kB\n"},
      {"proc/self/cgroup", "0::/outer/inner\n"},
      {"sys/fs/cgroup/outer/memory.max", "4294967296\n"},
      {"sys/fs/cgroup/outer/memory.current", "2147483648\n"},
      {"sys/fs/cgroup/outer/inner/memory.max", "max\n"},
      {"sys/fs/cgroup/outer/inner/memory.current", "1\n"}},
     2,
     "the control group's limit"},
    {"page cache within a group's use can be had back",
     {{"proc/meminfo", "MemAvailable: 16777216 kB\n"},
      {"proc/self/cgroup", "0::/\n"},
      {"sys/fs/cgroup/memory.max", "4294967296\n"},
      {"sys/fs/cgroup/memory.current", "3221225472\n"},
      {"sys/fs/cgroup/memory.stat", "anon 5\nfile 9\ninactive_file 2147483648\n"}},
     3,
     "the control group's limit"},
    {"v1, seen from within a container: its path is not there, its own group is the mount's root",
     {{"proc/meminfo", "MemAvailable: 16777216 kB\n"},
      {"proc/self/cgroup", "5:cpu,cpuacct:/x\n4:blkio,memory:/docker/abc\n0::/docker/abc\n"},
      {"sys/fs/cgroup/memory/memory.limit_in_bytes", "5368709120\n"},
      {"sys/fs/cgroup/memory/memory.usage_in_bytes", "1073741824\n"},
      {"sys/fs/cgroup/memory/memory.stat", "inactive_file 536870912\ntotal_inactive_file 0\n"}},
     4,
     "the control group's limit"},
    {"a v1 group without a limit says a huge number",
     {{"proc/meminfo", "MemAvailable: 1048576 kB\n"},
      {"proc/self/cgroup", "4:memory:/x\n"},
      {"sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n"},
      {"sys/fs/cgroup/memory/x/memory.usage_in_bytes", "1073741824\n"}},
     1,
     "MemAvailable"},
    {"a group that is full leaves nothing",
     {{"proc/meminfo", "MemAvailable: 1048576 kB\n"},
      {"proc/self/cgroup", "0::/x\n"},
      {"sys/fs/cgroup/x/memory.max", "1000\n"},
      {"sys/fs/cgroup/x/memory.current", "1001\n"}},
     0,
     "the control group's limit"},
};

Test(machine, memory_is_the_least_limit)
{
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        const struct machine *m = &machines[i];
        char root[256];
        folder_make(root);
        for (int f = 0; m->file[f][0]; f++) put(root, m->file[f][0], m->file[f][1]);
        struct machine_memory memory = machine_memory(root);
        cr_assert(memory.bytes == m->bytes * gib && strcmp(memory.limit, m->limit) == 0, "%s: %llu by %s", m->doc,
                  (unsigned long long)memory.bytes, memory.limit);
        folder_remove(root);
    }
}

Test(machine, resident_memory_is_what_was_touched)
{
    enum { BYTES = 64 << 20 };
    uint64_t before = process_rss(), high = process_high_water();
    char *block = malloc(BYTES);
    cr_assert(block != NULL);
    memset(block, 1, BYTES);
    cr_assert(before > 0 && high >= before && process_rss() > before + BYTES / 2);
    volatile char *touched = block;
    cr_assert(touched[BYTES - 1] == 1);
    free(block);
    cr_assert(process_high_water() > high + BYTES / 2, "what was given back stays in the high water");
}
