/* The run id. Contract: a pure function of what it lists, in this order; times do not enter, nor places but the paths
 * of files that the spec reads. */
#include "identity.h"

#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The line starts a top-level block of the canonical YAML whose key says nothing about the numbers. */
static bool is_left_out(const char *line)
{
    static const char *const keys[] = {"name:", "title:", "expect:", "sweep:", "results:", "costs:", "plan:"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strncmp(line, keys[i], strlen(keys[i])) == 0) return true;
    return false;
}

/* resolved without those blocks: a block goes on until the next line that starts with a key. */
static const char *numerics_of(const char *resolved, struct region *region)
{
    char *text = region_array(region, strlen(resolved) + 1, 1), *end = text;
    bool left_out = false;
    for (const char *line = resolved; text && *line;) {
        size_t length = strcspn(line, "\n");
        length += line[length] == '\n';
        if (!strchr(" \t\n-#", *line)) left_out = is_left_out(line);
        if (!left_out) memcpy(end, line, length), end += length;
        line += length;
    }
    return text;
}

/* Digest of the program file: sources, compiler and flags in one, however they were changed. */
static enum status program_digest(struct digest *digest)
{
    struct stat file;
    int descriptor = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &file) < 0 || file.st_size <= 0) {
        if (descriptor >= 0) close(descriptor);
        return fail(ST_FAILED, "/proc/self/exe: %s; a run is known by its program", strerror(errno));
    }
    void *bytes = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
    if (bytes == MAP_FAILED)
        return fail(ST_FAILED, "/proc/self/exe: %s; a run is known by its program", strerror(errno));
    *digest = digest_bytes(bytes, (size_t)file.st_size);
    munmap(bytes, (size_t)file.st_size);
    return ST_OK;
}

static enum status identify(const struct job *job, struct region *region, char id[RUN_ID_TEXT])
{
    struct digest program = {0};
    char program_text[33], data_text[33], plan_text[33], all_text[33];
    TRY(program_digest(&program));
    if (job->weights) TRY(weights_digest(job->weights));
    const char *numerics = numerics_of(job->spec->resolved, region), *costs = "", *weights = "", *device = "",
               *wisdom = "";
    char costs_text[33], wisdom_text[33];
    if (job->weights) weights = region_text(region, "weights %s\n", job->weights->sha256);
    if (job->backend->device) device = region_text(region, "device %s\n", job->backend->device);
    if (job->costs) costs = region_text(region, "costs %s\n", digest_print(job->costs->digest, costs_text));
    if (job->wisdom) wisdom = region_text(region, "wisdom %s\n", digest_print(job->wisdom->digest, wisdom_text));
    const char *all = region_text(
        region, "%s\nprogram %s\ndata %s\nlibraries %s, libc %s\nisa %s\nthreads %lld\nplan %s\n%s%s%s%s",
        numerics ? numerics : "", digest_print(program, program_text), digest_print(job->dataset->digest, data_text),
        job->backend->libraries, gnu_get_libc_version(), job->backend->isa, (long long)job->backend->options.threads,
        digest_print(job->plan->hash, plan_text), costs ? costs : "", weights ? weights : "", device ? device : "",
        wisdom ? wisdom : "");
    if (!numerics || !costs || !weights || !device || !wisdom || !all) return ST_FAILED;
    digest_print(digest_bytes(all, strlen(all)), all_text);
    snprintf(id, RUN_ID_TEXT, "%.16s", all_text);
    return ST_OK;
}

enum status run_identity(const struct job *job, char id[RUN_ID_TEXT])
{
    struct region *region = region_create();
    if (!region) return fail(ST_FAILED, "out of memory for the run's id");
    enum status status = identify(job, region, id);
    region_destroy(region);
    return status;
}
