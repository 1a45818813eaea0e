/* Small runs of experiments have the same parameters, to the bit, on every machine: with any vectors, compiler and
 * number of threads. The digests were printed by `rematch show --csv steps` of a run with AVX-512; where
 * kernels are to compute other bits, they are printed anew. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cli.h"

#define PHOTOS "'data={name: synthetic, shape: [32, 32, 3]}'"

static const struct {
    const char *experiment, *overrides, *digest; /* of all parameters after two steps */
} runs[] = {
    {"mlp-sequential", "", "6c836887d0807452868e8207bdbfe74b"},
    {"vgg16-recompute", "batch=2 data.shape=[32,32,3]", "b0b83b5103ae8a6a421a07475d666bbf"},
    {"resnet-cifar10", "batch=8 " PHOTOS, "a7074493c7df2b2bf4e9944867160ea8"},
    {"resnet-accumulation", "batch=8 " PHOTOS, "4953ae238295446572a55f472c0749eb"},
    {"resnet50-0.6", "batch=2 data.shape=[64,64,3]", "7f2e6b98fbee3fa36c4c6f138cb87dbf"},
    {"densenet-pareto", "batch=2 data.shape=[32,32,3]", "b814a264f4d67ac19fe22e8456dd2771"},
    {"mobilenet-pareto", "batch=2 data.shape=[64,64,3]", "526bc23999e97f42c80815d9873fdca4"},
    {"unet-pareto", "batch=1 data.shape=[64,64,3]", "848960c2837176934d60b34240e6c867"},
    {"sample-cnn-recompute", "batch=1 data.shape=[64,64,1]", "7bf2b232a0f1fc2294d04ced8a6ded22"},
    {"se-finetune", "batch=4 model.parameters.train_stem=false", "4112304f60cbbe1e79b0c75a5047ddf1"},
    {"bert-tweets", "batch=4 data.name=synthetic-tokens", "2f068d263d1ccc92705083f5ae7c9d7c"},
    {"gpt-text", "batch=4 data.name=synthetic-text", "d1e1390e4bdc09a110b12115da3a27d0"},
    {"swiglu", "batch=4", "30e21de0b678f09dcabbc61ae13405c5"},
    {"vit", "batch=2 model.parameters.blocks=2 data.shape=[64,64,3]", "1df4b4c2773cda938bf104d226976222"},
    {"efficientnet", "batch=2 data.shape=[64,64,3]", "da4ba04c9bf3e1a25bef0eb5772cbe91"},
    {"unet-segmentation", "data.shape=[20,20,1]", "cde7c823df862b9127a1f199a261d921"},
    {"sd-unet", "data.shape=[16,16,4]", "341c176c319df618d22a02a5370b8f2c"},
};

/* The last number of a column, of comma-separated values. */
static void last_of(const char *csv, const char *column, char text[64])
{
    int at = 0;
    const char *line = csv, *end = csv + strcspn(csv, "\n");
    while (line < end && strncmp(line, column, strlen(column)) != 0) line += strcspn(line, ",") + 1, at++;
    cr_assert(line < end, "no column %s in %s", column, csv);
    for (const char *next = csv; *next; next += strcspn(next, "\n") + 1) line = next;
    for (; at > 0; at--) line += strcspn(line, ",") + 1;
    snprintf(text, 64, "%.*s", (int)strcspn(line, ",\n"), line);
}

Test(digests, are_those_of_every_machine, .timeout = 300)
{
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct cli cli;
        char path[4096], arguments[8192], file[256], digest[64];
        cr_assert(realpath("experiments", path));
        cli_open(&cli);
        snprintf(arguments, sizeof arguments,
                 "run %s/%s.yaml %s steps=2 backend.name=cpu backend.threads=%d expect=[] policy=store_all "
                 "--only variant --quiet",
                 path, runs[i].experiment, runs[i].overrides, i % 2 ? 3 : 1);
        cli_run(&cli, "", arguments);
        if (cli.code == 77) cr_skip_test("no cpu backend");
        cr_assert(cli.code == 0 && sscanf(cli.out, "variant %255s", file) == 1, "%s: %s%s", runs[i].experiment, cli.out,
                  cli.err);
        snprintf(arguments, sizeof arguments, "show --csv steps %s", file);
        cli_expect(&cli, 0, arguments);
        last_of(cli.out, "param_digest", digest);
        cr_expect(!strcmp(digest, runs[i].digest), "%s, %d threads: %s; expected %s", runs[i].experiment, i % 2 ? 3 : 1,
                  digest, runs[i].digest);
        cli_close(&cli);
    }
}
