/* What a bundle says about itself, for people (README.md), for their programs (expected.json) and for repositories of
 * research data (RO-Crate 1.1: https://w3id.org/ro/crate/1.1). */
#include <stdlib.h>
#include <string.h>

#include "analysis/figures.h"
#include "analysis/verify.h"
#include "base/units.h"
#include "bundle/bundle.h"

/* ---- figures of a run ---- */

static const json_t *group(const json_t *run, const char *path) { return json_object_get(run, path); }

static const char *text_of(const json_t *run, const char *path, const char *name)
{
    const char *text = figure_string(group(run, path), name);
    return text ? text : "";
}

static double number_of(const json_t *run, const char *path, const char *name)
{
    return figure_number(group(run, path), name);
}

static size_t steps_of(const json_t *run) { return json_array_size(json_object_get(group(run, "steps"), "loss")); }

/* Of the first step or the last. */
static json_t *loss_of(const json_t *run, bool last)
{
    const size_t steps = steps_of(run);
    return json_incref(steps ? json_array_get(json_object_get(group(run, "steps"), "loss"), last ? steps - 1 : 0)
                             : json_null());
}

/* ---- expected.json ---- */

static json_t *expected_run(const json_t *run)
{
    static const char *const kernels[][2] = {{"/provenance/build", "program_xxh3"}, {"/provenance/libs", "kernels"},
                                             {"/provenance/libs", "libc"},          {"/provenance/host", "isa"},
                                             {"/provenance/host", "threads"},       {"/provenance/gpu", "device"}};
    json_t *one = json_object(), *on = json_object();
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        json_t *value = json_object_get(group(run, kernels[i][0]), kernels[i][1]);
        if (value) PUT(on, kernels[i][1], json_incref(value));
    }
    PUT(one, "file", figure_string(run, "path"));
    PUT(one, "plan_hash", text_of(run, "/plan", "hash"));
    PUT(one, "live_peak_bytes", (int64_t)number_of(run, "/plan", "live_peak_bytes"));
    PUT(one, "steps", (int64_t)steps_of(run));
    PUT(one, "first_loss", loss_of(run, false));
    PUT(one, "last_loss", loss_of(run, true));
    PUT(one, "data_digest_xxh3", text_of(run, "/provenance/data", "digest_xxh3"));
    PUT(one, "kernels", on);
    return one;
}

static json_t *expected(const struct bundle *b)
{
    json_t *runs = json_array();
    for (int i = 0; i < b->runs; i++) json_array_append_new(runs, expected_run(b->run[i]));
    return json_pack("{s:{s:s, s:s, s:f, s:s}, s:o}", "allowed", "same kernels", "equal bits at every step", "data",
                     "the same digest", "other kernels: relative difference of first_loss", VERIFY_FIRST_LOSS,
                     "other kernels: a variant beside its baseline", "equal bits at every step", "runs", runs);
}

/* ---- ro-crate-metadata.json ---- */

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

/* A program, or a data set, that several runs may share. */
static void add_shared(json_t *graph, const char *id, json_t *entity)
{
    size_t i;
    json_t *other;
    json_array_foreach(graph, i, other)
    {
        if (strcmp(figure_string(other, "@id"), id) == 0) {
            json_decref(entity);
            return;
        }
    }
    json_array_append_new(graph, entity);
}

static void add_action(const struct bundle *b, const json_t *run, json_t *graph)
{
    const char *file = figure_string(run, "path"), *data = text_of(run, "/provenance/data", "name"),
               *digest = text_of(run, "/provenance/data", "digest_xxh3"),
               *program = text_of(run, "/provenance/build", "program_xxh3");
    const char *program_id = region_text(b->region, "#program-%s", program),
               *data_id = region_text(b->region, "#data-%s", digest);
    const char *spec = region_text(b->region, "%.*s.resolved.yaml", (int)strlen(file) - 3, file);
    const char *libraries =
        region_text(b->region, "%s, libc %s, HDF5 %s", text_of(run, "/provenance/libs", "kernels"),
                    text_of(run, "/provenance/libs", "libc"), text_of(run, "/provenance/libs", "hdf5"));
    add_shared(graph, program_id,
               json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "@id", program_id, "@type", "SoftwareApplication", "name",
                         "rematch", "softwareVersion", text_of(run, "/", "software_version"), "softwareRequirements",
                         libraries, "identifier", region_text(b->region, "xxh3-128:%s", program)));
    add_shared(graph, data_id,
               json_pack("{s:s, s:s, s:s, s:s}", "@id", data_id, "@type", "CreativeWork", "name", data, "identifier",
                         region_text(b->region, "xxh3-128:%s", digest)));
    json_array_append_new(graph,
                          json_pack("{s:s, s:s, s:s, s:o, s:[o, o], s:[o], s:s, s:o}", "@id",
                                    region_text(b->region, "#run-%s", file), "@type", "CreateAction", "name",
                                    region_text(b->region, "%s of %s, policy %s", text_of(run, "/", "variant"),
                                                text_of(run, "/", "experiment"), text_of(run, "/plan", "policy")),
                                    "instrument", reference(program_id), "object", reference(spec), reference(data_id),
                                    "result", reference(file), "startTime", text_of(run, "/", "created"),
                                    "actionStatus", reference("http://schema.org/CompletedActionStatus")));
}

static json_t *crate(const struct bundle *b)
{
    const char *newest = "";
    json_t *parts = json_array(), *graph = json_array();
    for (int i = 0; i < b->runs; i++) {
        const char *created = text_of(b->run[i], "/", "created");
        newest = strcmp(created, newest) > 0 ? created : newest;
    }
    json_array_append_new(graph, json_pack("{s:s, s:s, s:o, s:o}", "@id", "ro-crate-metadata.json", "@type",
                                           "CreativeWork", "conformsTo", reference("https://w3id.org/ro/crate/1.1"),
                                           "about", reference("./")));
    json_array_append_new(
        graph, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "@id", "./", "@type", "Dataset", "name",
                         "Training runs of rematch", "description",
                         "Training with recomputed activations: result files, specs, plans and expected values.",
                         "datePublished", region_text(b->region, "%.10s", newest), "license",
                         "not stated: the authors of the runs choose it", "hasPart", parts));
    for (int i = 0; i < b->files; i++) {
        const struct tar_file *f = &b->file[i];
        json_array_append_new(parts, reference(f->name));
        json_array_append_new(graph, json_pack("{s:s, s:s, s:s, s:o, s:s, s:s}", "@id", f->name, "@type", "File",
                                               "name", f->name, "contentSize",
                                               FIGURE(region_text(b->region, "%llu", (unsigned long long)f->bytes)),
                                               "encodingFormat", type_of(f->name), "sha256", f->sha256));
    }
    for (int i = 0; i < b->runs; i++) add_action(b, b->run[i], graph);
    return json_pack("{s:[s, {s:s}], s:o}", "@context", "https://w3id.org/ro/crate/1.1/context", "sha256",
                     "https://w3id.org/ro/terms/workflow-run#sha256", "@graph", graph);
}

/* ---- README.md ---- */

/* One line about a run. */
static const char *software_of(const struct bundle *b, const json_t *run)
{
    return region_text(b->region, "commit %s%s, %s, kernels %s, libc %s, HDF5 %s; XXH3-128 of the program %s",
                       text_of(run, "/provenance/git", "commit"),
                       number_of(run, "/provenance/git", "dirty") != 0 ? " with changes" : "",
                       text_of(run, "/provenance/build", "compiler"), text_of(run, "/provenance/libs", "kernels"),
                       text_of(run, "/provenance/libs", "libc"), text_of(run, "/provenance/libs", "hdf5"),
                       text_of(run, "/provenance/build", "program_xxh3"));
}

static const char *machine_of(const struct bundle *b, const json_t *run)
{
    char memory[UNIT_TEXT];
    const char *device = text_of(run, "/provenance/gpu", "device");
    return region_text(b->region, "%s, ISA %s, %.0f threads on %.0f cores, %s of memory%s%s",
                       text_of(run, "/provenance/host", "cpu"), text_of(run, "/provenance/host", "isa"),
                       number_of(run, "/provenance/host", "threads"), number_of(run, "/provenance/host", "cores"),
                       bytes_text(number_of(run, "/provenance/host", "memory_bytes"), memory), *device ? "; " : "",
                       device);
}

static const char *data_of(const struct bundle *b, const json_t *run)
{
    const bool made = number_of(run, "/provenance/data", "synthetic") != 0;
    return region_text(
        b->region, "%s, %.0f training and %.0f test samples, XXH3-128 %s%s", text_of(run, "/provenance/data", "name"),
        number_of(run, "/provenance/data", "training_samples"), number_of(run, "/provenance/data", "test_samples"),
        text_of(run, "/provenance/data", "digest_xxh3"),
        made ? "; generated by the program" : "; not in this bundle: `rematch doctor` says where to get it");
}

/* The lines about all runs, each once. */
static void print_lines(const struct bundle *b, const char *(*line_of)(const struct bundle *, const json_t *),
                        const char *what, FILE *out)
{
    for (int i = 0; i < b->runs; i++) {
        const char *line = line_of(b, b->run[i]);
        bool known = false;
        for (int k = 0; k < i && !known; k++) known = !strcmp(line, line_of(b, b->run[k]));
        if (!known) fprintf(out, "- %s: %s.\n", what, line);
    }
}

static void print_runs(const struct bundle *b, FILE *out)
{
    fprintf(out, "\n| run | side | policy | steps | first loss | last loss | peak | time "
                 "|\n|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < b->runs; i++) {
        const json_t *run = b->run[i];
        json_t *first = loss_of(run, false), *last = loss_of(run, true);
        char peak[UNIT_TEXT], time[UNIT_TEXT];
        fprintf(out, "| %s | %s | %s | %zu | %.9g | %.9g | %s | %s |\n", figure_string(run, "path"),
                text_of(run, "/", "variant"), text_of(run, "/plan", "policy"), steps_of(run), json_number_value(first),
                json_number_value(last), bytes_text(number_of(run, "/plan", "peak_bytes"), peak),
                duration_text((uint64_t)number_of(run, "/summary", "wall_ns"), time));
        json_decref(first);
        json_decref(last);
    }
}

static const char before_runs[] =
    "# Training runs of rematch\n\n"
    "These runs train with recomputed activations (gradient checkpointing). The claim: a variant that recomputes has "
    "the same\n"
    "bits as its baseline, which stores everything (losses, gradients, parameters, optimizer state), in less "
    "memory.\n\n"
    "| file | contents |\n|---|---|\n"
    "| runs/NAME/ID.h5 | a run: its spec, plan, every step's figures and digests, and what it depends on (HDF5) |\n"
    "| runs/NAME/ID.yaml | its spec as it was written; ID.resolved.yaml: with its model and every default, to run as "
    "it is |\n"
    "| runs/NAME/ID.json | the figures of ID.h5, the plan's schedule and provenance, to read without HDF5 |\n"
    "| expected.json | expected values and their allowed variation |\n"
    "| ro-crate-metadata.json | the same things as an RO-Crate; SHA256SUMS: the digest of every file |\n";

static const char after_runs[] =
    "\n## Repeating them\n\n"
    "    rematch doctor                         # what this machine lacks, and the command that mends it\n"
    "    rematch verify BUNDLE.tar.zst          # all of the following; needs the memory and about twice the time "
    "above\n"
    "    sha256sum -c SHA256SUMS                # the files are unchanged\n"
    "    rematch verify runs/NAME/ID.h5         # the plan, checked independently; the run, repeated and compared\n"
    "    rematch compare BASELINE.h5 VARIANT.h5 # the claim\n"
    "    rematch run runs/NAME/ID.resolved.yaml # trains both again, and judges the figures that the spec expects\n\n"
    "With the same program, libraries, ISA, threads and device every bit of every step must be equal. Other kernels "
    "round\n"
    "differently, and training amplifies that from step to step. With them the first loss may differ by 1e-5 of "
    "itself,\n"
    "later losses are not judged, and the variant must again have every bit of the baseline that ran on them. Times "
    "are not\n"
    "judged. Bytes are exact for the plan of the same kernels.\n\n"
    "## Questions of artifact checklists\n\n";

static const char after_facts[] =
    "- Training details: ID.resolved.yaml has every setting: model, optimizer, learning rate, batch, steps, seed, "
    "splits.\n"
    "- Randomness: Philox4x32-10 by position, from the spec's seed, for initial values, order, data and dropout. No "
    "other.\n"
    "- Error bars: none. A repetition has the same bits, so it has no variance; other seeds are other specs.\n"
    "- Compute: the table has time and peak memory of every run; nothing else was needed for these files.\n"
    "- Software licence: rematch is under the MIT licence. The licence of the runs is for their authors to state.\n";

static void print_readme(const struct bundle *b, FILE *out)
{
    fputs(before_runs, out);
    print_runs(b, out);
    fputs(after_runs, out);
    print_lines(b, software_of, "Software", out);
    print_lines(b, machine_of, "Machine", out);
    print_lines(b, data_of, "Data", out);
    fputs(after_facts, out);
}

/* ---- all ---- */

static enum status add_json(struct bundle *b, const char *name, json_t *tree)
{
    char *text = json_dumps(tree, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    const enum status status = bundle_add(b, name, NULL, text);
    free(text);
    json_decref(tree);
    return status;
}

enum status bundle_describe(struct bundle *bundle)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    print_readme(bundle, out);
    fclose(out);
    enum status status = bundle_add(bundle, "README.md", NULL, text);
    free(text);
    TRY(status);
    TRY(add_json(bundle, "expected.json", expected(bundle)));
    return add_json(bundle, "ro-crate-metadata.json", crate(bundle));
}
