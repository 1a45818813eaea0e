/* Labels without an output of the model are refused before anything runs; the error names the sample. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/cli.h"
#include "tests/support/dataset_files.h"
#include "tests/support/made_runs.h"

static void write_spec(struct cli *cli, int units, const char *more)
{
    char spec[1024];
    snprintf(spec, sizeof spec,
             "rematch: 1\nname: hand\nmodel: {layers: [flatten, linear: {units: %d}]}\n"
             "data: {name: cifar10, path: '%s'}\nbatch: 2\nsteps: 2\nbackend: {name: ref, threads: 1}\n%s",
             units, hand_made_folder(), more);
    cli_file(cli, "hand.yaml", spec);
}

static void expect_refused(struct cli *cli, const char *says)
{
    static const char *const commands[] = {"plan hand.yaml", "run hand.yaml --quiet"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        cli_expect(cli, 2, commands[i]);
        cli_complains(cli, says);
        cli_complains(cli, hand_made_folder());
        cr_assert(cli_repeats(cli, "error: ") == 1, "%s", cli->err);
    }
    cr_assert(folder_count(cli->folder, ".h5") == 0 && folder_count(cli->folder, ".part") == 0);
}

Test(labels, without_an_output_are_refused_when_planning)
{
    enum { UNITS = 3 };
    struct cli cli;
    char says[200];
    int first = 0;
    cli_open(&cli);
    while (hand_made_label(first / HAND_CIFAR_RECORDS, first % HAND_CIFAR_RECORDS) < UNITS) first++;
    write_spec(&cli, UNITS, "");
    snprintf(says, sizeof says, "data: training sample %d of data set 'cifar10' (", first);
    expect_refused(&cli, says);
    snprintf(says, sizeof says, ") has label %d; expected 0..2, as the model has 3 classes",
             hand_made_label(first / HAND_CIFAR_RECORDS, first % HAND_CIFAR_RECORDS));
    expect_refused(&cli, says);
    write_spec(&cli, UNITS, "loss: sum\n"); /* reads no labels */
    cli_expect(&cli, 0, "plan hand.yaml");
    write_spec(&cli, 10, "");
    cli_expect(&cli, 0, "plan hand.yaml");
    write_spec(&cli, 12, "");
    cli_expect(&cli, 0, "plan hand.yaml");
    cli_close(&cli);
}

/* Classes for a loss that reads targets, and the other way round; targets of another shape; a class too many. */
Test(labels, of_another_kind_are_refused_when_planning)
{
    static const struct {
        const char *more, *loss, *says;
        int channels;
    } cases[] = {
        {"", "loss: mse",
         "loss: mse reads numbers as targets, but the labels of data set 'synthetic' are classes; expected data such "
         "as "
         "{name: synthetic, labels: image}, or another loss",
         1},
        {", labels: image", "loss: bce",
         "data: the labels of data set 'synthetic' are numbers here, but loss bce reads labels that are classes; "
         "expected other data.labels, or loss: mse",
         1},
        {", labels: image", "loss: dice", "but loss dice reads labels that are classes", 3},
        {", labels: image", "loss: sum", "but loss sum reads labels that are classes", 1},
        {", labels: image", "", "but loss cross_entropy reads labels that are classes", 3},
        {", labels: image", "loss: mse",
         "model: loss mse reads an output 4x3x2, but the targets of data set 'synthetic' are 4x3x1; expected the same "
         "shape",
         2},
        {", labels: pixel", "loss: bce", "has label 2; expected 0..1, as the model has 2 classes", 1},
        {", labels: pixel", "loss: {name: dice, smooth: 0.1}", "has label 2; expected 0..1, as the model has 2 classes",
         1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cli cli;
        char spec[1024];
        cli_open(&cli);
        snprintf(spec, sizeof spec,
                 "rematch: 1\nname: kinds\nmodel: {layers: [conv: {channels: %d, kernel: 1}]}\n"
                 "data: {name: synthetic, shape: [4, 3, 1], classes: 3%s}\nbatch: 2\nsteps: 1\n"
                 "optimizer: {lr: 0.1}\nbackend: ref\n%s\n",
                 cases[i].channels, cases[i].more, cases[i].loss);
        cli_file(&cli, "kinds.yaml", spec);
        cli_expect(&cli, 2, "plan kinds.yaml");
        cli_complains(&cli, cases[i].says);
        cr_assert(cli_repeats(&cli, "error: ") == 1, "%s", cli.err);
        cli_close(&cli);
    }
}

/* A loss reads a label for each row of its input, and the data has so many. */
Test(labels, of_another_number_are_refused_when_planning)
{
    static const struct {
        const char *model, *data, *says;
    } cases[] = {
        {"[embedding: {vocabulary: 9, positions: 8, units: 3}, linear: {units: classes}]",
         "synthetic-tokens, max_length: 8, vocabulary_size: 9",
         "model: loss cross_entropy reads 8 labels a sample from its input 8x3, but data set 'synthetic-tokens' has 1; "
         "expected a vector, as flatten and select make one"},
        {"[embedding: {vocabulary: 9, positions: 8, units: 3}, select, linear: {units: classes}]",
         "synthetic-text, length: 8, vocabulary_size: 9",
         "model: loss cross_entropy reads 1 label a sample from its input 9, but data set 'synthetic-text' has 8; "
         "expected a row for each of them"},
        {"[conv: {channels: 4, kernel: 1}]", "synthetic, shape: [2, 3, 1], classes: 4",
         "model: loss cross_entropy reads 6 labels a sample from its input 2x3x4, but data set 'synthetic' has 1; "
         "expected a vector"},
        {"[embedding: {vocabulary: 300, positions: 8, units: 3}, linear: {units: 4}]",
         "synthetic-text, length: 8, vocabulary_size: 9", "; expected 0..3, as the model has 4 classes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cli cli;
        char spec[1024];
        cli_open(&cli);
        snprintf(spec, sizeof spec,
                 "rematch: 1\nname: rows\nmodel: {layers: %s}\ndata: {name: %s}\nbatch: 2\nsteps: 1\n"
                 "optimizer: {lr: 0.1}\nbackend: ref\n",
                 cases[i].model, cases[i].data);
        cli_file(&cli, "rows.yaml", spec);
        cli_expect(&cli, 2, "plan rows.yaml");
        cli_complains(&cli, cases[i].says);
        cr_assert(cli_repeats(&cli, "error: ") == 1, "%s", cli.err);
        cli_close(&cli);
    }
}
