#include "result/environment.h"

#include <string.h>

/* pin: an earlier row, whose digest determines this one; 0: none. */
enum { THREADS, PROGRAM, DATA };
static const struct {
    const char *group, *name;
    enum { TEXT, NUMBER, TEXTS } kind;
    int pin;
} environment[ENVIRONMENT_ROWS] = {
    [THREADS] = {"/provenance/host", "threads", NUMBER, 0},
    [PROGRAM] = {"/provenance/build", "program_xxh3", TEXT, 0},
    [DATA] = {"/provenance/data", "digest_xxh3", TEXT, 0},
    {"/provenance/git", "commit", TEXT, PROGRAM},
    {"/provenance/git", "dirty_sha1", TEXT, PROGRAM},
    {"/provenance/build", "compiler", TEXT, PROGRAM},
    {"/provenance/build", "flags", TEXT, PROGRAM},
    {"/provenance/build", "variant", TEXT, PROGRAM},
    {"/provenance/build", "backends", TEXT, PROGRAM},
    {"/provenance/libs", "kernels", TEXT, 0},
    {"/provenance/libs", "libc", TEXT, 0},
    {"/provenance/host", "isa", TEXT, 0},
    {"/provenance/host", "cpu", TEXT, 0},
    {"/provenance/gpu", "device", TEXT, 0},
    {"/provenance/data", "name", TEXT, DATA},
    {"/provenance/data", "training_samples", NUMBER, DATA},
    {"/provenance/data", "test_samples", NUMBER, DATA},
    {"/provenance/data", "tokens", NUMBER, DATA},
    {"/provenance/data", "vocabulary", TEXT, DATA},
    {"/provenance/data", "vocabulary_sha256", TEXT, DATA},
    {"/provenance/data", "sha256", TEXTS, DATA},
    {"/provenance/weights", "sha256", TEXT, 0},
    {"/provenance/weights", "bytes", NUMBER, 0},
};
static const char unknown[] = "unknown";

static const char *joined(struct result *r, const char *group, const char *name, struct region *region)
{
    size_t count;
    const char *path = region_text(region, "%s/%s", group, name), *all = "";
    const char **texts = h5_exists(&r->h5, path) ? h5_read_texts(&r->h5, path, region, &count) : NULL;
    for (size_t i = 0; texts && i < count; i++) all = region_text(region, "%s%s%s", all, i ? " " : "", texts[i]);
    return *all ? all : unknown;
}

static const char *text_of(struct result *r, int i, struct region *region)
{
    const char *group = environment[i].group, *name = environment[i].name;
    if (environment[i].kind == TEXTS) return joined(r, group, name, region);
    if (environment[i].kind == TEXT) return h5_read_attribute_text(&r->h5, group, name, unknown, region);
    return region_text(region, "%llu", (unsigned long long)h5_read_attribute_u64(&r->h5, group, name, 0));
}

int environment_differences(struct result *a, struct result *b, struct region *region,
                            struct environment_difference found[ENVIRONMENT_ROWS])
{
    int count = 0;
    bool differs[ENVIRONMENT_ROWS] = {false};
    for (int i = 0; i < ENVIRONMENT_ROWS; i++) {
        const int pin = environment[i].pin;
        const char *x = text_of(a, i, region), *y = b ? text_of(b, i, region) : NULL;
        differs[i] = strcmp(x, y ? y : unknown) != 0;
        if (!differs[i]) continue;
        const char *pinned = b && pin && !differs[pin] ? environment[pin].name : NULL;
        found[count++] = (struct environment_difference){environment[i].name, x, y, pinned};
    }
    return count;
}
