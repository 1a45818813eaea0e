/* Convolutions that are chosen by timing, through the program, on the stand-in for a device: the
 * file is written, read and obeyed; what is wrong with it is told. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "result/result.h"
#include "tests/support/cli.h"
#include "tests/support/made_runs.h"
#include "tests/support/single_layer.h"

#define DEVICE  "memory=1000000000"
#define FORWARD ", pass: forward, algorithm: "

/* Passes of convolutions of different keys: three of the blocks', the first of which has no gradient of its input, and
 * three of the last one's. */
enum { LINES = 6, ROOM = 8192 };

static const char convs[] = "rematch: 1\n"
                            "name: convs\n"
                            "model:\n"
                            "  layers:\n"
                            "    - repeat:\n"
                            "        times: 2\n"
                            "        name: block\n"
                            "        layers:\n"
                            "          - conv: {channels: 4, kernel: 3, padding: 1, activation: relu}\n"
                            "    - conv: {channels: 8, kernel: 5}\n"
                            "    - flatten\n"
                            "    - linear: {units: classes}\n"
                            "data: {name: synthetic, shape: [6, 6, 4], classes: 4}\n"
                            "batch: 6\n"
                            "steps: 3\n"
                            "backend: cuda\n"
                            "optimizer: {name: sgd, lr: 0.1}\n"
                            "policy: {name: segments, segments: 2}\n";

/* A folder with the spec and its file of wisdom, whose text is returned. */
static char *begin(struct cli *cli)
{
    static char text[ROOM];
    cli_open_on_device(cli, DEVICE);
    cli_file(cli, "convs.yaml", convs);
    cli_expect(cli, 0, "bench --convolutions convs.yaml");
    cr_assert(strlen(cli->out) < sizeof text);
    return strcpy(text, cli->out);
}

/* The file with the first from after the place where at begins made to. */
static void alter(const struct cli *cli, const char *text, const char *at, const char *from, const char *to)
{
    char altered[ROOM];
    const char *start = strstr(text, at), *found = start ? strstr(start, from) : NULL;
    cr_assert(found, "'%s' after '%s' is not in\n%s", from, at, text);
    snprintf(altered, sizeof altered, "%.*s%s%s", (int)(found - text), text, to, found + strlen(from));
    cli_file(cli, "w.yaml", altered);
}

static int64_t number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    cr_assert(at);
    return strtoll(at + strlen(key), NULL, 10);
}

Test(wisdom, is_written_for_every_pass_of_every_kind)
{
    struct cli cli;
    const char *text = begin(&cli);
    int lines = 0;
    for (const char *line = text; (line = strstr(line, "  - {key: ")); line++, lines++)
        cr_expect(number_after(line, ", ns: ") > 0 && number_after(line, ", ns: ") <= number_after(line, "rule_ns: "));
    cr_expect(lines == LINES, "%s", text);
    cr_expect(strstr(text, "\n  # block[0].conv1 block[1].conv1\n") && strstr(text, "\n  # block[1].conv1\n"));
    cr_expect(strstr(text, "device: \"host device, ") &&
              strstr(text, "precision: fp32\nscratch_limit: 128MiB\nbatch: 6"));
    /* what the library recommends where it is asked for such a convolution */
    cr_expect(strstr(text, "rule_algorithm: winograd_nonfused, rule_chunk: 6, "));
    cli_complains(&cli, "6 passes, ");
    /* in TF32, too, where it is offered with other arithmetic than was asked for */
    cli_expect(&cli, 0, "bench --convolutions convs.yaml precision=tf32 backend.layout=channels_first");
    cli_says(&cli, "rule_algorithm: winograd_nonfused, rule_chunk: 6, ");
    cli_expect(&cli, 0, "bench --convolutions convs.yaml 'conv={algorithm: measured, wisdom: none.yaml}' --out w.yaml");
    cr_expect(*cli.out == '\0' && folder_count(cli.folder, ".part") == 0);
    cli_close(&cli);
}

/* The line of the n-th node in what a file says of nodes' implementations. */
static const char *implementation(const struct result *r, size_t node)
{
    size_t count;
    const char **texts = h5_read_texts((struct h5 *)(uintptr_t)&r->h5, "/plan/nodes/implementation", r->region, &count);
    cr_assert(texts && node < count);
    return texts[node];
}

/* Each pass is what its line says, in both runs, and the content of the file makes the run. */
Test(wisdom, is_obeyed_by_baseline_and_variant)
{
    static const char *const ways[] = {"winograd_nonfused", "implicit_precomp_gemm", "implicit_gemm"};
    struct cli cli;
    const char *text = begin(&cli);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char old[64], path[600], expected[80], name[128];
        struct result *r;
        const char *at = strstr(text, FORWARD) + strlen(FORWARD);
        snprintf(old, sizeof old, "%.*s", (int)strcspn(at, ","), at);
        alter(&cli, text, FORWARD, old, ways[i]);
        cli_expect(&cli, 0, "run convs.yaml 'conv={algorithm: measured, wisdom: w.yaml}'");
        cli_says(&cli, "equal");
        cr_expect(folder_count(cli.folder, ".h5") == 2 * ((int)i + 1), "another file, another run");
        at = strstr(cli.out, "\nvariant   results/");
        cr_assert(at && sscanf(at + 11, "%127s", name) == 1, "%s", cli.out);
        snprintf(path, sizeof path, "%s/%s", cli.folder, name);
        cr_assert(result_open(path, &r) == ST_OK, "%s", status_message());
        snprintf(expected, sizeof expected, "%s chunk 6 | ", ways[i]);
        for (size_t node = 0; node < 2; node++)
            cr_expect(!strncmp(implementation(r, node), expected, strlen(expected)), "%s", implementation(r, node));
        const char *kept = h5_read_text(&r->h5, "/spec/wisdom", r->region);
        char digest[33];
        cr_expect(strstr(kept, ways[i]));
        digest_print(digest_bytes(kept, strlen(kept)), digest);
        cr_expect(!strcmp(h5_read_attribute_text(&r->h5, "/spec", "wisdom_digest_xxh3", "", r->region), digest));
        cr_expect(!strcmp(h5_read_attribute_text(&r->h5, "/spec", "wisdom_file", "", r->region), "w.yaml"));
        result_close(r);
    }
    cli_expect(&cli, 0, "plan convs.yaml 'conv={algorithm: measured, wisdom: w.yaml}'");
    cli_says(&cli, "convolutions as they were timed: w.yaml (");
    cli_close(&cli);
}

/* One change to a good file, further arguments, and what is told. */
static const struct {
    const char *at, *from, *to, *arguments, *says;
} wrong[] = {
    {"", "rematch_wisdom: 1", "rematch_wisdom: 2", "", "w.yaml:2:17: error: rematch_wisdom: '2' is out of range"},
    {"", "rematch_wisdom: 1\n", "", "", ": error: rematch_wisdom: missing; a file of wisdom begins with"},
    {"", "batch: 6", "batch: six", "", "w.yaml:8:8: error: batch: 'six' is not an integer"},
    {"", "precision: fp32\n", "", "", ": error: precision: missing; expected one of fp32|tf32"},
    {"", "convolutions:", "convolutions: []\nothers:", "", ": error: convolutions: expected a list"},
    {"", "pass: forward", "pass: forwards", "", "w.yaml:12:"},
    {"", "pass: forward", "pass: forwards", "", "(did you mean 'forward'?)"},
    {"", "chunk: 6", "chunk: 0", "", ": error: convolutions[0].chunk: '0'"},
    {"", "chunk: 6", "chunk: 99999999999999999999", "", ": error: convolutions[0].chunk: '99999999999999999999'"},
    {"", "ns: ", "ns: -", "", ": error: convolutions[0].ns: '-"},
    {"", "chunk: 6, ", "", "", ": error: convolutions[0].chunk: missing"},
    {"", "chunk: 6", "chunks: 1, chunk: 6", "", ": error: convolutions[0].chunks: a choice has no such key"},
    {"", "pass: backward_params", "pass: forward", "", "convolutions[1].key: this pass of this key was there before"},
    {"", "# the", "[", "", ": error: not YAML"},
    /* not made here, or for another spec */
    {"", "batch: 6", "batch: 7", "", "w.yaml: batch: measured with 7, here it is 6; make the file with rematch bench"},
    {"", "batch", "batch", "batch=5", "w.yaml: batch: measured with 6, here it is 5"},
    {"", "fp32", "fp32", "precision=tf32", "w.yaml: precision: measured with fp32, here it is tf32"},
    {"", "128MiB", "1MiB", "", "w.yaml: scratch_limit: measured with 1MiB, here it is 128MiB"},
    {"", "host device", "another device", "", "w.yaml: device: measured with \"another device, "},
    {"", "backend: cuda", "backend: cpu", "", "w.yaml: backend: measured with cpu, here it is cuda"},
    {"", "cuDNN 9", "cuDNN 8", "", "w.yaml: libraries: measured with \"CUDA 13.0, cuDNN 8"},
    /* nothing for a convolution, or nothing that can be had */
    {"", "kernel 3", "kernel 4", "",
     "layer 'block[0].conv1': w.yaml: has no forward of (conv channels 4, kernel 3, stride 1, padding 1, "},
    {"", "pass: backward_input", "pass: backward_input", "backend.layout=channels_last",
     "w.yaml: has no forward of (conv channels 4, kernel 3"},
    {FORWARD, "chunk: 6", "chunk: 5", "",
     "with chunk 5 cannot be had here; expected winograd_nonfused with chunk 6 or implicit_precomp_gemm with chunk 6 "
     "or "
     "implicit_gemm with chunk 6; make the file with rematch bench --convolutions"},
};

Test(wisdom, that_is_wrong_is_told_with_its_place)
{
    struct cli cli;
    const char *text = begin(&cli);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char arguments[256];
        alter(&cli, text, wrong[i].at, wrong[i].from, wrong[i].to);
        snprintf(arguments, sizeof arguments, "run convs.yaml 'conv={algorithm: measured, wisdom: w.yaml}' %s",
                 wrong[i].arguments);
        cli_expect(&cli, 2, arguments);
        cli_complains(&cli, wrong[i].says);
        cr_expect(folder_count(cli.folder, ".h5") == 0 && folder_count(cli.folder, ".part") == 0);
    }
    cli_expect(&cli, 2, "run convs.yaml 'conv={algorithm: measured, wisdom: none.yaml}'");
    cli_complains(&cli, "conv.wisdom: none.yaml: No such file or directory; make the file with rematch bench");
    cr_expect(cli_complaints(&cli) == 1, "%s", cli.err);
    cli_close(&cli);
}

/* An algorithm that is not deterministic, one that nobody knows, and one that does not keep the limit. */
static const struct {
    const char *pass, *algorithm, *limit, *says;
} refused[] = {
    {"backward_input", "algo_0", "128MiB", "backward_input by algo_0 with chunk 6 cannot be had here; expected "},
    {"backward_params", "algo_3", "128MiB", "backward_params by algo_3 with chunk 6 cannot be had here; expected "},
    {"forward", "magic", "128MiB", "w.yaml:12: forward by magic with chunk 6 cannot be had here; expected "},
    {"forward", "winograd_nonfused", "8KiB",
     "forward by winograd_nonfused with chunk 6 cannot be had here; expected winograd_nonfused with chunk 3 or "},
    {"forward", "winograd_nonfused", "1KiB",
     "forward by winograd_nonfused with chunk 6 cannot be had here; expected implicit_precomp_gemm with chunk 3 or "},
};

Test(wisdom, offers_only_what_the_rule_could_take)
{
    struct cli cli;
    const char *text = begin(&cli);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char arguments[256], limited[ROOM], pass[64];
        const char *limit = strstr(text, "128MiB");
        snprintf(limited, sizeof limited, "%.*s%s%s", (int)(limit - text), text, refused[i].limit, limit + 6);
        snprintf(pass, sizeof pass, "pass: %s, algorithm: ", refused[i].pass);
        const char *at = strstr(limited, pass) + strlen(pass);
        char old[64];
        snprintf(old, sizeof old, "%.*s", (int)strcspn(at, ","), at);
        alter(&cli, limited, pass, old, refused[i].algorithm);
        snprintf(arguments, sizeof arguments,
                 "plan convs.yaml 'conv={algorithm: measured, wisdom: w.yaml, scratch_limit: %s}'", refused[i].limit);
        cli_expect(&cli, 2, arguments);
        cli_complains(&cli, refused[i].says);
        cr_expect(cli_complaints(&cli) == 1, "%s", cli.err);
    }
    cli_expect(&cli, 0, "bench --convolutions convs.yaml conv.scratch_limit=8KiB --out w.yaml");
    cli_expect(&cli, 0, "run convs.yaml 'conv={algorithm: measured, wisdom: w.yaml, scratch_limit: 8KiB}' --quiet");
    cli_close(&cli);
}

#define LARGE " 'data.shape=[64, 64, 4]' backend.layout=channels_first steps=2"

/* A step by calls and a recorded one, with the weights' gradient of all samples at once, and in a turn a sample. */
Test(wisdom, holds_how_a_gradient_is_shared_out)
{
    static const char params[] = "pass: backward_params, algorithm: ",
                      arguments[] = "run convs.yaml 'conv={algorithm: measured, wisdom: w.yaml}'" LARGE;
    struct cli cli;
    char text[ROOM];
    begin(&cli);
    cli_expect(&cli, 0, "bench --convolutions convs.yaml" LARGE);
    snprintf(text, sizeof text, "%s", cli.out);
    const char *chosen = strstr(strstr(text, params), "chunk: ");
    cr_assert(number_after(chosen, "rule_chunk: ") == 1);
    for (int chunk = 1; chunk <= 6; chunk += 5) {
        char old[32], new[32], expected[32];
        snprintf(old, sizeof old, "chunk: %ld,", (long)number_after(chosen, "chunk: "));
        snprintf(new, sizeof new, "chunk: %d,", chunk);
        snprintf(expected, sizeof expected, " chunk %d", chunk);
        alter(&cli, text, params, old, new);
        cli_expect(&cli, 0, arguments);
        cli_says(&cli, "equal");
        cli_expect(&cli, 0, "plan convs.yaml 'conv={algorithm: measured, wisdom: w.yaml}' --out p.h5" LARGE);
        struct result *r;
        char path[600];
        snprintf(path, sizeof path, "%s/p.h5", cli.folder);
        cr_assert(result_open(path, &r) == ST_OK, "%s", status_message());
        const char *way = strstr(implementation(r, 0), " | ");
        cr_expect(way && strstr(way, expected), "%s", implementation(r, 0));
        result_close(r);
    }
    cr_expect(folder_count(cli.folder, ".h5") == 5, "another sum, another run");
    cli_close(&cli);
}

/* A baseline whose relus are elsewhere takes the same ways; but its passes take other times. */
Test(wisdom, is_for_a_convolution_with_and_without_a_relu)
{
    char *key[2][2]; /* without and with a relu, in wisdom and in costs */
    struct single single[2];
    for (int relu = 0; relu < 2; relu++) {
        const struct settings settings = {.channels = 4, .kernel = 3, .stride = 1, .activation = relu};
        single_open(&single[relu], "ref", "conv", &settings, &(struct shape){3, {8, 8, 3}}, 2, RELU_OUTPUT);
        const struct graph *graph = single[relu].graph;
        for (int costs = 0; costs < 2; costs++)
            key[relu][costs] = graph_node_key(graph, single[relu].node->index, costs, graph->region);
    }
    cr_assert(key[0][0] && key[1][0] && !strcmp(key[0][0], key[1][0]), "%s, %s", key[0][0], key[1][0]);
    cr_assert(key[0][1] && key[1][1] && strcmp(key[0][1], key[1][1]), "%s, %s", key[0][1], key[1][1]);
    for (int relu = 0; relu < 2; relu++) single_close(&single[relu]);
}

Test(wisdom, needs_something_to_choose)
{
    struct cli cli;
    cli_open_on_device(&cli, NULL);
    cli_expect(&cli, 2, "bench --convolutions small.yaml backend=cuda --out w.yaml");
    cli_complains(&cli, "the network has no convolution that backend cuda could do in several ways");
    cr_expect(cli_complaints(&cli) == 1 && folder_count(cli.folder, "w.yaml") == 0, "%s", cli.err);
    cli_expect(&cli, 2, "bench --convolutions small.yaml backend=cpu");
    cli_complains(&cli, "backend cpu chooses convolutions by rule alone");
    cli_close(&cli);
}
