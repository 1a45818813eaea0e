/* What a bundle says about itself, for people (README.md) and for repositories of research data (RO-Crate 1.1:
 * https://w3id.org/ro/crate/1.1). */
#include <stdlib.h>
#include <string.h>

#include "analysis/figures.h"
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

/* Answers to checklists that are in the files, by the name of the fact and of the attribute. */
static const struct {
    const char *fact, *group, *name;
} facts[] = {
    {"Software: commit of rematch", "/provenance/git", "commit"},
    {"Software: changes to it (0: none; ID.json)", "/provenance/git", "dirty"},
    {"Software: XXH3-128 of the program", "/provenance/build", "program_xxh3"},
    {"Software: compiler", "/provenance/build", "compiler"},
    {"Software: kernels", "/provenance/libs", "kernels"},
    {"Software: C library", "/provenance/libs", "libc"},
    {"Software: HDF5", "/provenance/libs", "hdf5"},
    {"Hardware: processor", "/provenance/host", "cpu"},
    {"Hardware: ISA of the kernels", "/provenance/host", "isa"},
    {"Hardware: threads", "/provenance/host", "threads"},
    {"Hardware: bytes of memory", "/provenance/host", "memory_bytes"},
    {"Hardware: device", "/provenance/gpu", "device"},
    {"Data: name", "/provenance/data", "name"},
    {"Data: generated by the program (0: get the files; `rematch doctor` says where)", "/provenance/data", "synthetic"},
    {"Data: XXH3-128 (SHA-256 of every file: ID.json)", "/provenance/data", "digest_xxh3"}};

/* A line a fact, with its value of each run, equal ones once. */
static void print_facts(const struct bundle *b, FILE *out)
{
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        json_t *values = json_object();
        const char *value, *between = ": ";
        json_t *one;
        for (int k = 0; k < b->runs; k++) {
            char *text = json_dumps(json_object_get(group(b->run[k], facts[i].group), facts[i].name), JSON_ENCODE_ANY);
            if (text) json_object_set_new(values, text, json_true());
            free(text);
        }
        if (json_object_size(values)) fprintf(out, "- %s", facts[i].fact);
        json_object_foreach(values, value, one)
        {
            fprintf(out, "%s%s", between, value);
            between = " · ";
        }
        if (json_object_size(values)) fputc('\n', out);
        json_decref(values);
    }
}

static double loss_of(const json_t *run, bool last)
{
    const json_t *loss = json_object_get(group(run, "steps"), "loss");
    const size_t steps = json_array_size(loss);
    return json_number_value(json_array_get(loss, last && steps ? steps - 1 : 0));
}

static void print_runs(const struct bundle *b, FILE *out)
{
    fprintf(out, "\n| run | side | policy | steps | first loss | last loss | peak | time |\n"
                 "|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < b->runs; i++) {
        const json_t *run = b->run[i];
        char peak[UNIT_TEXT], time[UNIT_TEXT];
        fprintf(out, "| %s | %s | %s | %.0f | %.9g | %.9g | %s | %s |\n", figure_string(run, "path"),
                text_of(run, "/", "variant"), text_of(run, "/plan", "policy"), number_of(run, "/summary", "steps"),
                loss_of(run, false), loss_of(run, true), bytes_text(number_of(run, "/plan", "peak_bytes"), peak),
                duration_text((uint64_t)number_of(run, "/summary", "wall_ns"), time));
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
    "| ro-crate-metadata.json | the same things as an RO-Crate; SHA256SUMS: the digest of every file |\n";

static const char after_runs[] =
    "\nThese values are expected again; how much they may vary elsewhere is stated below.\n\n## Repeating them\n\n"
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
    print_facts(b, out);
    fputs(after_facts, out);
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
    json_t *tree = crate(bundle);
    text = json_dumps(tree, JSON_INDENT(1));
    status = bundle_add(bundle, "ro-crate-metadata.json", NULL, text);
    free(text);
    json_decref(tree);
    return status;
}
