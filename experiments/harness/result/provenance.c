/* Contract: never the whole environment, which may hold secrets. */
#include "result/provenance.h"

#include <gnu/libc-version.h>
#include <jansson.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <utf8proc.h>
#include <yaml.h>

#include "build.h"
#include "job/machine.h"
#include "job/run_id.h"
#include "job/thread_waiting.h"
#include "numerics/digest.h"
#include "result/h5_write.h"
#include "result/table.h"

/* ---- writing ---- */

enum { DIFF_MAX = 1 << 20 };

/* What a git command prints in the folder of this program; NULL: no git, no repository, or over DIFF_MAX bytes. */
static const char *git(const char *command, struct region *region)
{
    int code;
    freed_auto char *text =
        command_output(region_text(region, "git -C \"$REMATCH_FOLDER\" %s 2>/dev/null", command), DIFF_MAX, &code);
    return code == 0 ? region_text(region, "%s", text) : NULL;
}

static void write_git(struct h5 *h5)
{
    region_auto *region = region_create();
    const char *const group = "/provenance/git", *head = git("rev-parse HEAD", region),
                      *diff = head && *head ? git("diff HEAD", region) : NULL;
    const uint8_t dirty = *BUILD_DIRTY != 0;
    h5_group(h5, group);
    h5_attribute_text(h5, group, "commit", BUILD_COMMIT);
    h5_attribute(h5, group, "dirty", NUMBER_U8, &dirty);
    h5_attribute_text(h5, group, "dirty_sha1", BUILD_DIRTY);
    h5_attribute_text(h5, group, "tree_commit",
                      head && *head ? region_text(region, "%.*s", (int)strcspn(head, "\n"), head) : "unknown");
    h5_attribute_text(h5, group, "tree_diff_xxh3", diff ? DIGEST_TEXT(digest_bytes(diff, strlen(diff))) : "unknown");
    h5_text(h5, "/provenance/git/diff", diff ? diff : "");
}

int provenance_system(const struct backend *backend, struct region *region, struct provenance_text *text)
{
    static const char build[] = "/provenance/build", libs[] = "/provenance/libs", host[] = "/provenance/host",
                      gpu[] = "/provenance/gpu";
    static const struct backend none;
    const struct backend *b = backend ? backend : &none;
    unsigned major = 0, minor = 0, release = 0;
    char program[33], cpu[256], waiting[256];
    struct utsname system = {0};
    uname(&system);
    H5get_libversion(&major, &minor, &release);
    const struct provenance_text all[PROVENANCE_TEXTS] = {
        {build, "program_xxh3", program_digest(program) == ST_OK ? program : "unknown"},
        {build, "compiler", "gcc " __VERSION__},
        {build, "flags", BUILD_FLAGS},
        {build, "variant", BUILD_VARIANT},
        {build, "backends", BUILD_BACKENDS},
        {libs, "kernels", b->libraries},
        {libs, "hdf5", region_text(region, "%u.%u.%u", major, minor, release)},
        {libs, "libyaml", yaml_get_version_string()},
        {libs, "jansson", JANSSON_VERSION},
        {libs, "libc", gnu_get_libc_version()},
        {libs, "utf8proc", utf8proc_version()},
        {host, "cpu", machine_cpu(cpu)},
        {host, "kernel", system.release},
        {host, "machine", system.machine},
        {host, "isa", b->isa},
        {host, "waiting", waiting_text(waiting)},
        {gpu, "device", b->device}, /* as the backend describes it */
        {gpu, "isa", b->device ? b->isa : NULL},
        {gpu, "libraries", b->device ? b->libraries : NULL},
    };
    int count = 0;
    for (int i = 0; i < PROVENANCE_TEXTS; i++) {
        if (!all[i].text) continue;
        text[count] = all[i];
        text[count++].text = region_text(region, "%s", all[i].text);
    }
    return count;
}

static void write_system(struct h5 *h5, const struct backend *backend)
{
    static const char host[] = "/provenance/host";
    region_auto *region = region_create();
    struct provenance_text text[PROVENANCE_TEXTS];
    const int count = provenance_system(backend, region, text);
    for (int i = 0; i < count; i++) {
        if (!h5_exists(h5, text[i].group)) h5_group(h5, text[i].group);
        h5_attribute_text(h5, text[i].group, text[i].name, text[i].text);
    }
    h5_attribute_u64(h5, host, "cores", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    h5_attribute_u64(h5, host, "memory_bytes", machine_bytes());
    h5_attribute_u64(h5, host, "threads", (uint64_t)backend->options.threads);
}

static void write_data(struct h5 *h5, const struct dataset *dataset)
{
    const char *const group = "/provenance/data";
    static const struct field columns[] = {
        {"bytes", NUMBER_U64, 1, offsetof(struct dataset_file, bytes), "byte", "size of the file"},
        {"path", NUMBER_TEXT, 1, offsetof(struct dataset_file, path)},
        {0}};
    size_t files = (size_t)dataset->files;
    const uint8_t synthetic = dataset->synthetic;
    freed_auto const char **texts = allocate(files, sizeof *texts);
    table_write(h5, group, "file", columns, files, dataset->file, sizeof *dataset->file);
    h5_attribute_text(h5, group, "name", dataset->kind->name);
    h5_attribute(h5, group, "synthetic", NUMBER_U8, &synthetic);
    h5_attribute_text(h5, group, "digest_xxh3", DIGEST_TEXT(dataset->digest));
    h5_attribute_u64(h5, group, "training_samples", (uint64_t)dataset->count[SPLIT_TRAIN]);
    h5_attribute_u64(h5, group, "test_samples", (uint64_t)dataset->count[SPLIT_TEST]);
    h5_attribute_u64(h5, group, "tokens", (uint64_t)dataset->tokens);
    h5_attribute_text(h5, group, "vocabulary", dataset->vocabulary);
    h5_attribute_text(h5, group, "vocabulary_sha256", dataset->vocabulary ? dataset->vocabulary_sha256 : "");
    h5_attribute_text(h5, group, "notice", dataset->notice);
    for (size_t i = 0; i < files; i++) texts[i] = dataset->file[i].sha256;
    h5_texts(h5, "/provenance/data/sha256", files, texts);
}

/* The file of initial values, what it lacks, and its tensors that the model does not use. */
static void write_weights(struct h5 *h5, const struct weights *weights)
{
    const char *const group = "/provenance/weights";
    h5_group(h5, group);
    h5_attribute_text(h5, group, "path", weights->file->path);
    h5_attribute_text(h5, group, "sha256", weights->sha256);
    h5_attribute_u64(h5, group, "bytes", weights->file->bytes);
    h5_texts(h5, "/provenance/weights/initialised", (size_t)weights->initialised, weights->initialised_name);
    h5_texts(h5, "/provenance/weights/unused", (size_t)weights->unused, weights->unused_name);
}

void provenance_write(struct h5 *h5, const struct job *job)
{
    h5_group(h5, "/provenance");
    write_git(h5);
    write_system(h5, job_backend(job));
    write_data(h5, job_dataset(job));
    if (job->weights) write_weights(h5, job->weights);
}

/* ---- comparing ---- */

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
