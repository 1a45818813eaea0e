/* What a bundle says about itself, for people (README.md, from readme.md.in) and for repositories of research data
 * (RO-Crate 1.1: https://w3id.org/ro/crate/1.1). */
#include <string.h>

#include "analysis/json_tree.h"
#include "analysis/result_row.h"
#include "analysis/time_doubts.h"
#include "base/units.h"
#include "bundle/bundle.h"
#include "report/report_tree.h"

EMBED(readme, "experiments/harness/bundle/readme.md.in");

static const char *text_of(const json_t *run, const char *group, const char *name)
{
    const char *text = json_string_at(json_object_get(run, group), name);
    return text ? text : "";
}

static double number_of(const json_t *run, const char *group, const char *name)
{
    return json_number_at(json_object_get(run, group), name);
}

/* ---- ro-crate-metadata.json ---- */

/* The entity of that id: programs and data sets are shared by runs. */
static json_t *entity(json_t *graph, const char *id, const char *type, const char *name)
{
    EACH (graph, i, known)
        if (strcmp(json_string_at(known, "@id"), id) == 0) return known;
    json_t *one = json_pack("{s:s, s:s, s:s}", "@id", id, "@type", type, "name", name);
    ADD(graph, one);
    return one;
}

static json_t *reference(const char *id) { return json_pack("{s:s}", "@id", id); }

static const char *type_of(const char *name)
{
    static const char *const types[][2] = {{".h5", "application/x-hdf5"},
                                           {".yaml", "application/yaml"},
                                           {".json", "application/json"},
                                           {".md", "text/markdown"}};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof types / sizeof *types; i++)
        if (!strcmp(dot, types[i][0])) return types[i][1];
    return "text/plain";
}

static void add_run(const struct bundle *b, const json_t *run, json_t *graph)
{
    static const char libs[] = "/provenance/libs";
    const char *file = json_string_at(run, "path"), *digest = text_of(run, "/provenance/data", "digest_xxh3"),
               *program = text_of(run, "/provenance/build", "program_xxh3");
    const char *program_id = region_text(b->region, "#program-%s", program),
               *data_id = region_text(b->region, "#data-%s", digest),
               *spec = region_text(b->region, "%.*s.resolved.yaml", (int)strlen(file) - 3, file);
    json_t *one = entity(graph, program_id, "SoftwareApplication", "rematch");
    PUT_ALL(one, KEY("softwareVersion", text_of(run, "/", "software_version")),
            KEY("softwareRequirements", region_text(b->region, "%s, libc %s, HDF5 %s", text_of(run, libs, "kernels"),
                                                    text_of(run, libs, "libc"), text_of(run, libs, "hdf5"))),
            KEY("identifier", region_text(b->region, "xxh3-128:%s", program)));
    one = entity(graph, data_id, "CreativeWork", text_of(run, "/provenance/data", "name"));
    PUT(one, "identifier", region_text(b->region, "xxh3-128:%s", digest));
    one = entity(graph, region_text(b->region, "#run-%s", file), "CreateAction",
                 region_text(b->region, "%s of %s, policy %s", text_of(run, "/", "variant"),
                             text_of(run, "/", "experiment"), text_of(run, "/plan", "policy")));
    PUT_ALL(one, KEY("instrument", reference(program_id)),
            KEY("object", json_pack("[o, o]", reference(spec), reference(data_id))),
            KEY("result", json_pack("[o]", reference(file))), KEY("startTime", text_of(run, "/", "created")),
            KEY("actionStatus", reference("http://schema.org/CompletedActionStatus")));
}

static json_t *crate(const struct bundle *b)
{
    const char *newest = "";
    json_t *parts = json_array(), *graph = json_array();
    for (int i = 0; i < b->runs; i++) {
        const char *created = text_of(b->run[i], "/", "created");
        newest = strcmp(created, newest) > 0 ? created : newest;
    }
    json_t *one = entity(graph, "ro-crate-metadata.json", "CreativeWork", "RO-Crate metadata");
    PUT_ALL(one, KEY("conformsTo", reference("https://w3id.org/ro/crate/1.1")), KEY("about", reference("./")));
    one = entity(graph, "./", "Dataset", "Training runs of rematch");
    PUT_ALL(one,
            KEY("description", "Training with recomputed activations: result files, specs, plans and expected values."),
            KEY("datePublished", region_text(b->region, "%.10s", newest)),
            KEY("license", "not stated: the authors of the runs choose it"), KEY("hasPart", parts));
    for (int i = 0; i < b->files; i++) {
        const struct tar_file *f = &b->file[i];
        ADD(parts, reference(f->name));
        one = entity(graph, f->name, "File", f->name);
        PUT_ALL(one, KEY("contentSize", region_text(b->region, "%llu", (unsigned long long)f->bytes)),
                KEY("encodingFormat", type_of(f->name)), KEY("sha256", f->sha256));
    }
    for (int i = 0; i < b->runs; i++) add_run(b, b->run[i], graph);
    return json_pack("{s:[s, {s:s}], s:o}", "@context", "https://w3id.org/ro/crate/1.1/context", "sha256",
                     "https://w3id.org/ro/terms/workflow-run#sha256", "@graph", graph);
}

/* ---- README.md ---- */

static double loss_of(const json_t *run, bool last)
{
    const json_t *loss = json_object_get(json_object_get(run, "steps"), "loss");
    const size_t steps = json_array_size(loss);
    return json_number_value(json_array_get(loss, last && steps ? steps - 1 : 0));
}

static void print_runs(const struct bundle *b, FILE *out)
{
    for (int i = 0; i < b->runs; i++) {
        const json_t *run = b->run[i];
        fprintf(out, "| %s | %s | %s | %.0f | %.9g | %.9g | %s | %s |\n", json_string_at(run, "path"),
                text_of(run, "/", "variant"), text_of(run, "/plan", "policy"), number_of(run, "/summary", "steps"),
                loss_of(run, false), loss_of(run, true), BYTES_TEXT(number_of(run, "/plan", "peak_bytes")),
                DURATION_TEXT((uint64_t)number_of(run, "/summary", "wall_ns")));
    }
}

/* Why the measured times of a variant and its baseline may mislead. */
static enum status print_doubt(const json_t *baseline, const json_t *variant, FILE *out)
{
    static const char *const sides[] = {"the baseline", "the variant"};
    result_auto *a = NULL, *b = NULL;
    TRY(result_open(json_string_at(baseline, "file"), &a));
    TRY(result_open(json_string_at(variant, "file"), &b));
    const char *doubts = time_doubts(a, b, sides);
    if (doubts) fprintf(out, "- %s: %s.\n", json_string_at(variant, "name"), doubts);
    return ST_OK;
}

/* As variants and baselines are matched by. */
static json_t *rows_of(const struct bundle *b)
{
    json_t *rows = json_array();
    for (int i = 0; i < b->files; i++) {
        const char *name = b->file[i].name, *slash = strrchr(name, '/');
        json_t *row = b->file[i].path && slash ? result_row(b->file[i].path) : NULL;
        if (!row) continue;
        PUT_ALL(row, KEY("experiment", region_text(b->region, "%.*s", (int)(slash - name), name)), KEY("name", name),
                KEY("file", b->file[i].path));
        ADD(rows, row);
    }
    return rows;
}

static enum status print_doubts(const struct bundle *b, FILE *out)
{
    json_auto_t *rows = rows_of(b), *baselines = result_baselines(rows);
    EACH (rows, i, run) {
        const bool variant = result_row_is_whole(run) && !strcmp(json_string_at(run, "side"), "variant");
        const json_t *baseline = variant ? result_row_baseline(baselines, run) : NULL;
        if (baseline) TRY(print_doubt(baseline, run, out));
    }
    return ST_OK;
}

/* The values that the runs have of an attribute, equal ones once; "": no run has it. */
static const char *values_of(const struct bundle *b, const char *group, const char *name)
{
    json_auto_t *seen = json_object();
    const char *all = "";
    for (int i = 0; i < b->runs; i++) {
        freed_auto char *value = json_dumps(json_object_get(json_object_get(b->run[i], group), name), JSON_ENCODE_ANY);
        if (value && !json_object_get(seen, value))
            all = region_text(b->region, "%s%s%s", all, *all ? " · " : "", value);
        if (value) json_object_set_new(seen, value, json_true());
    }
    return all;
}

/* {runs} stands for a row a run, {doubts} for a line a variant whose times may mislead, {GROUP NAME} for the values of
 * an attribute; a line without any is left out. */
static enum status print_readme(const struct bundle *b, FILE *out)
{
    for (const char *line = readme, *end; *line; line = end + 1) {
        char group[64], name[64];
        int before = 0;
        end = strchr(line, '\n');
        if (strncmp(line, "{runs}", 6) == 0) {
            print_runs(b, out);
        } else if (strncmp(line, "{doubts}", 8) == 0) {
            TRY(print_doubts(b, out));
        } else if (sscanf(line, "- %*[^{\n]%n{%63s %63[^}]", &before, group, name) == 2) {
            const char *values = values_of(b, group, name);
            if (*values) fprintf(out, "%.*s%s\n", before, line, values);
        } else {
            fprintf(out, "%.*s\n", (int)(end - line), line);
        }
    }
    return ST_OK;
}

enum status bundle_describe(struct bundle *bundle)
{
    freed_auto char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    const enum status status = print_readme(bundle, out);
    fclose(out);
    TRY(status);
    TRY(bundle_add(bundle, "README.md", NULL, text));
    json_auto_t *tree = crate(bundle);
    freed_auto char *metadata = json_dumps(tree, JSON_INDENT(1));
    return bundle_add(bundle, "ro-crate-metadata.json", NULL, metadata);
}
