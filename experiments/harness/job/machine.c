#include "job/machine.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/region.h"

enum { PATH_ROOM = 1024, LINE_ROOM = 1024 };

/* What follows key on the first line of the file that begins with it; false: no such file or line. */
static bool read_line(const char *path, const char *key, char line[LINE_ROOM])
{
    FILE *file = fopen(path, "re");
    const size_t length = strlen(key);
    bool found = false;
    if (!file) return false;
    while (!found && fgets(line, LINE_ROOM, file)) found = strncmp(line, key, length) == 0;
    fclose(file);
    if (found) memmove(line, line + length, strlen(line + length) + 1);
    return found;
}

/* The same as a number; false also where it is none. */
static bool read_field(const char *path, const char *key, uint64_t *value)
{
    char line[LINE_ROOM];
    return read_line(path, key, line) && sscanf(line, "%" SCNu64, value) == 1;
}

static void lower_to(struct machine_memory *least, uint64_t bytes, const char *limit)
{
    if (bytes < least->bytes) *least = (struct machine_memory){bytes, limit};
}

/* Files of a version of control groups: the limit, the use, and the page cache within that use. */
struct cgroup_version {
    const char *mount, *limit, *use, *cache;
};
static const struct cgroup_version version_1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                                "memory.usage_in_bytes", "total_inactive_file "};
static const struct cgroup_version version_2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "};

static void look_at_group(const char *root, const struct cgroup_version *version, const char *group,
                          struct machine_memory *least)
{
    char path[PATH_ROOM];
    uint64_t limit, use, cache = 0;
    snprintf(path, sizeof path, "%s%s%s/%s", root, version->mount, group, version->limit);
    if (!read_field(path, "", &limit)) return; /* absent, or "max" */
    snprintf(path, sizeof path, "%s%s%s/%s", root, version->mount, group, version->use);
    if (!read_field(path, "", &use)) return;
    snprintf(path, sizeof path, "%s%s%s/memory.stat", root, version->mount, group);
    if (!read_field(path, version->cache, &cache) || cache > use) cache = 0;
    use -= cache;
    lower_to(least, limit > use ? limit - use : 0, "the control group's limit");
}

/* A group and its parents: each may set a limit. In a container the path may not be visible; the root of the mount,
 * which comes last, is then the container's own group. */
static void look_at_groups(const char *root, const struct cgroup_version *version, char *group,
                           struct machine_memory *least)
{
    group[strcspn(group, "\n")] = '\0';
    while (*group) {
        if (strcmp(group, "/") != 0) look_at_group(root, version, group, least);
        char *slash = strrchr(group, '/');
        if (!slash) break;
        *slash = '\0';
    }
    look_at_group(root, version, "", least);
}

/* Lines "0::/path" (v2) and "5:memory:/path" or "5:cpu,memory:/path" (v1). */
static void look_at_cgroups(const char *root, struct machine_memory *least)
{
    char path[PATH_ROOM], line[LINE_ROOM];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    if (!file) return;
    while (fgets(line, sizeof line, file)) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = '\0';
        controllers++;
        if (!*controllers) {
            look_at_groups(root, &version_2, group, least);
            continue;
        }
        for (char *rest = controllers, *one; (one = strsep(&rest, ","));)
            if (strcmp(one, "memory") == 0) look_at_groups(root, &version_1, group, least);
    }
    fclose(file);
}

static void look_at_address_space(struct machine_memory *least)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    uint64_t kib = 0;
    read_field("/proc/self/status", "VmSize:", &kib);
    lower_to(least, limit.rlim_cur > kib * 1024 ? limit.rlim_cur - kib * 1024 : 0, "RLIMIT_AS");
}

struct machine_memory machine_memory(const char *root)
{
    struct machine_memory least = {UINT64_MAX, "nothing"};
    char path[PATH_ROOM];
    uint64_t kib;
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (read_field(path, "MemAvailable:", &kib)) lower_to(&least, kib * 1024, "MemAvailable");
    look_at_cgroups(root, &least);
    look_at_address_space(&least);
    return least;
}

uint64_t machine_bytes(void) { return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE); }

struct machine_memory memory_left(struct backend *backend)
{
    if (!backend->kind->device) return machine_memory("");
    return (struct machine_memory){backend->kind->device->available(backend), "the device"};
}

static uint64_t status_bytes(const char *key)
{
    uint64_t kib = 0;
    return read_field("/proc/self/status", key, &kib) ? kib * 1024 : 0;
}

uint64_t process_rss(void) { return status_bytes("VmRSS:"); }

uint64_t process_high_water(void) { return status_bytes("VmHWM:"); }

uint64_t process_worked_ns(void)
{
    struct timespec worked = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &worked);
    return (uint64_t)worked.tv_sec * 1000000000 + (uint64_t)worked.tv_nsec;
}

char *command_output(const char *command, size_t most, int *code)
{
    char *text = allocate(most + 1, 1), folder[PATH_MAX] = "";
    if (realpath("/proc/self/exe", folder)) *strrchr(folder, '/') = '\0';
    setenv("REMATCH_FOLDER", folder, true);
    FILE *output = popen(command, "re");
    unsetenv("REMATCH_FOLDER");
    if (output) text[fread(text, 1, most, output)] = '\0';
    const int state = output ? pclose(output) : -1; /* a longer output ends the command by SIGPIPE */
    *code = state >= 0 && WIFEXITED(state) ? WEXITSTATUS(state) : -1;
    return text;
}

const char *machine_cpu(char text[256])
{
    char line[LINE_ROOM];
    const char *name = read_line("/proc/cpuinfo", "model name", line) ? line + strspn(line, " \t:") : "unknown";
    snprintf(text, 256, "%.*s", (int)strcspn(name, "\n"), name);
    return text;
}
