/* Contract: the file is distrusted; what is wrong with it is told with its place, and nothing of it is guessed. */
#include "job/wisdom_file.h"

#include <string.h>

#include "spec/spec_settings.h"
#include "yaml/yaml_read.h"
#include "yaml/yaml_write.h"

enum { VERSION = 1 };
static const double longest = 1e15; /* ns: eleven days */
static const char remedy[] = "make the file with rematch bench --convolutions SPEC --out FILE";

#define HEAD(member) offsetof(struct wisdom_file, member)
#define LINE(member) offsetof(struct wisdom_line, member)

static const struct setting head_keys[] = {
    {"device", SETTING_TEXT, HEAD(device), 0, 0, NULL, NULL, "that worked"},
    {"backend", SETTING_TEXT, HEAD(backend), 0, 0, NULL, NULL, "whose kernels they are"},
    {"libraries", SETTING_TEXT, HEAD(libraries), 0, 0, NULL, NULL, "of the backend, with their versions"},
    {"precision", SETTING_CHOICE, HEAD(precision), 0, 0, NULL, precision_words, "of convolutions' operands"},
    {"scratch_limit", SETTING_BYTES, HEAD(scratch_limit), 0, 0x1p62, NULL, NULL, "that every way was to keep"},
    {"batch", SETTING_INT, HEAD(batch), 1, 1 << 24, NULL, NULL, "samples a step"},
    {"rounds", SETTING_INT, HEAD(rounds), 1, 1 << 20, NULL, NULL, "how often each way was timed"},
    {.key = NULL}};

static const struct setting line_keys[] = {
    {"key", SETTING_TEXT, LINE(key), 0, 0, NULL, NULL, "what the choice hangs on"},
    {"pass", SETTING_CHOICE, LINE(pass), 0, 0, NULL, pass_names, "what is done"},
    {"algorithm", SETTING_TEXT, LINE(way.algorithm), 0, 0, NULL, NULL, "the fastest, as the library calls it"},
    {"chunk", SETTING_INT, LINE(way.chunk), 1, 1 << 24, NULL, NULL, "samples at a time"},
    {"ns", SETTING_INT, LINE(ns), 0, longest, NULL, NULL, "what it takes"},
    {"rule_algorithm", SETTING_TEXT, LINE(rule.algorithm), 0, 0, NULL, NULL, "the rule's choice"},
    {"rule_chunk", SETTING_INT, LINE(rule.chunk), 1, 1 << 24, NULL, NULL, "samples at a time"},
    {"rule_ns", SETTING_INT, LINE(rule_ns), 0, longest, NULL, NULL, "what that takes"},
    {.key = NULL}};

/* ---- reading ---- */

static bool is_there(const struct wisdom_file *file, int lines, const struct wisdom_line *line)
{
    for (int i = 0; line->key && i < lines; i++)
        if (file->line[i].key && file->line[i].pass == line->pass && !strcmp(file->line[i].key, line->key)) return true;
    return false;
}

static enum status read_lines(struct yaml_reader *r, const struct yaml_tree *root, struct wisdom_file *file)
{
    const struct yaml_tree *list = yaml_tree_get(root, "convolutions");
    struct wisdom_row *rows;
    if (!list || list->kind != YAML_LIST || !list->count) {
        yaml_read_error(r, list ? list : root, NULL, "convolutions", "expected a list of what was chosen");
        return ST_OK;
    }
    NEW(r->region, file->line, (size_t)list->count);
    NEW(r->region, rows, (size_t)list->count);
    file->wisdom.row = rows;
    file->lines = file->wisdom.rows = list->count;
    for (int i = 0; i < list->count; i++) {
        struct wisdom_line *line = &file->line[i];
        const char *path = region_text(r->region, "convolutions[%d]", i);
        yaml_read_map(r, list->item[i], path, "a choice", line_keys, NULL, line);
        if (is_there(file, i, line))
            yaml_read_error(r, list->item[i], path, "key", "this pass of this key was there before");
        rows[i] = (struct wisdom_row){line->key, line->pass, line->way,
                                      region_text(r->region, "%s:%d", file->path, list->item[i]->mark.line)};
        if (!rows[i].place) return ST_FAILED;
    }
    return ST_OK;
}

static enum status read_root(struct yaml_reader *r, const struct yaml_tree *root, struct wisdom_file *file)
{
    static const char *const also[] = {"rematch_wisdom", "convolutions", NULL};
    yaml_read_map(r, root, NULL, "a file of wisdom", head_keys, also, file);
    if (root->kind != YAML_MAP) return ST_OK;
    yaml_read_version(r, root, "rematch_wisdom", VERSION, "a file of wisdom");
    return read_lines(r, root, file);
}

/* The head but for rounds must be what one made here would have. */
static enum status check_owner(const struct wisdom_file *file, const struct spec *spec, const struct backend *backend,
                               struct region *region)
{
    struct wisdom_file here = {.rounds = file->rounds};
    wisdom_file_describe(spec, backend, &here);
    for (const struct setting *f = head_keys; f->key; f++) {
        const char *theirs = setting_print(f, file, region), *ours = setting_print(f, &here, region);
        if (!theirs || !ours) return ST_FAILED;
        if (strcmp(theirs, ours) != 0)
            return fail(ST_SPEC, "%s: %s: measured with %s, here it is %s; %s", file->path, f->key, theirs, ours,
                        remedy);
    }
    return ST_OK;
}

enum status wisdom_file_read(const struct spec *spec, const struct backend *backend, struct region *region,
                             struct wisdom_file **file)
{
    struct yaml_reader r = {region, errors_create(region), NULL};
    struct source *source;
    struct wisdom_file *f;
    if (!r.errors) return ST_FAILED;
    NEW(region, f, 1);
    f->path = f->wisdom.path = spec->wisdom_file;
    f->wisdom.remedy = remedy;
    if (source_read(f->path, region, &source) != ST_OK)
        return fail(ST_SPEC, "conv.wisdom: %s; %s", status_message(), remedy);
    const struct yaml_tree *root = yaml_tree_parse(source, 0, region, r.errors);
    if (root) TRY(read_root(&r, root, f));
    TRY(errors_report(r.errors, stderr));
    f->text = source->text;
    f->digest = digest_bytes(source->text, strlen(source->text));
    TRY(check_owner(f, spec, backend, region));
    *file = f;
    return ST_OK;
}

/* ---- writing ---- */

void wisdom_file_describe(const struct spec *spec, const struct backend *backend, struct wisdom_file *file)
{
    file->device = backend->device ? backend->device : "none";
    file->backend = backend->kind->name;
    file->libraries = backend->libraries ? backend->libraries : "none";
    file->precision = backend->options.precision;
    file->scratch_limit = backend->options.scratch_limit;
    file->batch = spec->batch;
}

bool wisdom_file_write(const struct wisdom_file *file, const char *const *names, FILE *out)
{
    struct region *region = region_create();
    if (!region) return false;
    fprintf(out,
            "# the fastest way to do each pass, and what conv.algorithm: auto takes; times in ns, the least of all "
            "rounds\nrematch_wisdom: %d\n",
            VERSION);
    yaml_write_settings(head_keys, file, "\n", region, out);
    fprintf(out, "\nconvolutions:\n");
    for (int i = 0; i < file->lines; i++) {
        fprintf(out, "  # %s\n  - {", names[i]);
        yaml_write_settings(line_keys, &file->line[i], ", ", region, out);
        fprintf(out, "}\n");
    }
    region_destroy(region);
    return fflush(out) == 0 && !ferror(out);
}
