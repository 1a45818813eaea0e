/* Contract: the run id is a pure function of its parts. Neither times enter it nor paths, except those in the spec. */
#include "job/run_id.h"

#include <gnu/libc-version.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

/* Whether the line starts a top-level block of the canonical YAML whose key does not affect the numbers. */
static bool is_left_out(const char *line)
{
    static const char *const keys[] = {
        "name:", "title:", "expect:", "published:", "sweep:", "results:", "costs:", "plan:", "state_every:"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strncmp(line, keys[i], strlen(keys[i])) == 0) return true;
    return false;
}

/* resolved without those blocks; a block ends at the next line that starts with a key. */
static const char *numerics_of(const char *resolved, struct region *region)
{
    char *text = region_array(region, strlen(resolved) + 1, 1), *end = text;
    bool left_out = false;
    for (const char *line = resolved; *line;) {
        size_t length = strcspn(line, "\n");
        length += line[length] == '\n';
        if (!strchr(" \t\n-#", *line)) left_out = is_left_out(line);
        if (!left_out) memcpy(end, line, length), end += length;
        line += length;
    }
    return text;
}

enum status program_digest(char text[33])
{
    static const char path[] = "/proc/self/exe";
    descriptor_auto int descriptor = -1;
    uint64_t bytes;
    TRY(file_open(path, &descriptor, &bytes));
    freed_auto void *program = allocate((size_t)bytes, 1);
    TRY(file_read(descriptor, path, 0, (size_t)bytes, program));
    digest_print(digest_bytes(program, (size_t)bytes), text);
    return ST_OK;
}

static const char *digest_text(struct digest digest, struct region *region)
{
    return region_text(region, "%s", DIGEST_TEXT(digest));
}

enum status run_id_of_job(const struct job *job, struct region *region, struct run_id_parts *parts)
{
    char program[33];
    const struct backend *backend = job_backend(job);
    TRY(program_digest(program));
    if (job->weights) TRY(weights_digest(job->weights));
    *parts = (struct run_id_parts){
        .resolved = job->spec->resolved,
        .program = region_text(region, "%s", program),
        .data = digest_text(job_dataset(job)->digest, region),
        .libraries = backend->libraries,
        .libc = gnu_get_libc_version(),
        .isa = backend->isa,
        .plan = job->plan ? digest_text(job->plan->hash, region) : "",
        .costs = job->costs ? digest_text(job->costs->digest, region) : "",
        .weights = job->weights ? job->weights->sha256 : "",
        .device = backend->device ? backend->device : "",
        .threads = (uint64_t)backend->options.threads,
    };
    return ST_OK;
}

void run_id_print(const struct run_id_parts *parts, struct region *region, char id[RUN_ID_TEXT])
{
    const struct run_id_parts *i = parts;
    const struct {
        const char *name, *value;
    } optional[] = {{"costs", i->costs}, {"weights", i->weights}, {"device", i->device}};
    char text[33];
    const char *all =
        region_text(region, "%s\nprogram %s\ndata %s\nlibraries %s, libc %s\nisa %s\nthreads %llu\nplan %s\n",
                    numerics_of(i->resolved, region), i->program, i->data, i->libraries, i->libc, i->isa,
                    (unsigned long long)i->threads, i->plan);
    for (size_t k = 0; k < sizeof optional / sizeof *optional; k++)
        if (*optional[k].value) all = region_text(region, "%s%s %s\n", all, optional[k].name, optional[k].value);
    digest_print(digest_bytes(all, strlen(all)), text);
    snprintf(id, RUN_ID_TEXT, "%.16s", text);
}

enum status run_id_compute(const struct job *job, char id[RUN_ID_TEXT])
{
    region_auto *region = region_create();
    struct run_id_parts parts;
    TRY(run_id_of_job(job, region, &parts));
    run_id_print(&parts, region, id);
    return ST_OK;
}
