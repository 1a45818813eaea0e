/* An evaluation against a plain computation in double from what the run recorded: its last batch, which holds all
 * samples of the split, and the final parameters and running state. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cli.h"
#include "tests/support/h5_contents.h"

enum { SAMPLES = 8, STEPS = 3, IN = 6, HIDDEN = 5, CLASSES = 3 };

static const char spec[] =
    "rematch: 1\nname: norms\nmodel:\n  layers:\n    - batch_norm: {name: first}\n"
    "    - linear: {name: hidden, units: 5}\n    - batch_norm: {name: second, activation: relu}\n"
    "    - linear: {name: last, units: classes}\n"
    "data: {name: synthetic, shape: [6], classes: 3, samples: 8}\nbatch: 8\nsteps: 3\noptimizer: {lr: 0.5}\n"
    "eval: {split: train}\nrecord: {state: true}\n";

static const char *weights = "final"; /* which of the recorded parameters predict */

static float *values(const char *path, const char *format, const char *node, size_t count)
{
    char array[96], name[64];
    snprintf(name, sizeof name, format, node);
    snprintf(array, sizeof array, "/state/%s/%s", strstr(format, "running") ? "final" : weights, name);
    return floats_of(path, array, count);
}

/* y, normalised with the running state. */
static void batch_norm(const char *path, const char *node, int width, double *y)
{
    float *weight = values(path, "%s.weight", node, (size_t)width);
    float *bias = values(path, "%s.bias", node, (size_t)width);
    float *mean = values(path, "%s.running_mean", node, (size_t)width);
    float *variance = values(path, "%s.running_var", node, (size_t)width);
    for (int i = 0; i < SAMPLES * width; i++) {
        const int c = i % width;
        y[i] = (y[i] - (double)mean[c]) / sqrt((double)variance[c] + 1e-5) * (double)weight[c] + (double)bias[c];
    }
    free(weight), free(bias), free(mean), free(variance);
}

static void linear(const char *path, const char *node, int inputs, int units, const double *x, double *y)
{
    float *weight = values(path, "%s.weight", node, (size_t)units * (size_t)inputs);
    float *bias = values(path, "%s.bias", node, (size_t)units);
    for (int s = 0; s < SAMPLES; s++)
        for (int u = 0; u < units; u++) {
            double sum = (double)bias[u];
            for (int i = 0; i < inputs; i++) sum += x[s * inputs + i] * (double)weight[u * inputs + i];
            y[s * units + u] = sum;
        }
    free(weight), free(bias);
}

/* The mean cross entropy of the logits; labels were read as floats. */
static double cross_entropy(const double *y, const float *label)
{
    double loss = 0;
    for (int s = 0; s < SAMPLES; s++) {
        double sum = 0;
        for (int c = 0; c < CLASSES; c++) sum += exp(y[s * CLASSES + c]);
        loss += log(sum) - y[s * CLASSES + (int)label[s]];
    }
    return loss / SAMPLES;
}

static double expected_loss(const char *path)
{
    double in[SAMPLES * IN], hidden[SAMPLES * HIDDEN], out[SAMPLES * CLASSES];
    float *x = floats_of(path, "/state/x", (size_t)STEPS * SAMPLES * IN);
    float *labels = floats_of(path, "/state/labels", (size_t)STEPS * SAMPLES);
    for (int i = 0; i < SAMPLES * IN; i++) in[i] = (double)x[(STEPS - 1) * SAMPLES * IN + i];
    batch_norm(path, "first", IN, in);
    linear(path, "hidden", IN, HIDDEN, in, hidden);
    batch_norm(path, "second", HIDDEN, hidden);
    for (int i = 0; i < SAMPLES * HIDDEN; i++) hidden[i] = fmax(hidden[i], 0);
    linear(path, "last", HIDDEN, CLASSES, hidden, out);
    const double loss = cross_entropy(out, labels + (size_t)(STEPS - 1) * SAMPLES);
    free(x), free(labels);
    return loss;
}

/* With averages of the parameters, by these; the running state is the last. */
Test(evaluation, predicts_with_the_final_running_state)
{
    static const char *const backends[] = {"ref", "cpu", "ref optimizer.ema=0.6", "cpu optimizer.ema=0.6",
                                           "cpu optimizer.ema=0.6 optimizer.momentum=0.9"};
    for (int i = 0; i < 5; i++) {
        struct cli cli;
        char arguments[128], path[512];
        weights = i < 2 ? "final" : "average";
        cli_open(&cli);
        cli_file(&cli, "norms.yaml", spec);
        snprintf(arguments, sizeof arguments, "run norms.yaml --only variant backend=%s", backends[i]);
        cli_expect(&cli, 0, arguments);
        cli_run(&cli, "mv results/norms/*.h5 run.h5", "verify run.h5");
        cr_assert(cli.code == 0, "%s%s", cli.out, cli.err);
        snprintf(path, sizeof path, "%s/run.h5", cli.folder);
        float *loss = floats_of(path, "/eval/loss", 1);
        const double expected = expected_loss(path);
        cr_assert(fabs((double)*loss - expected) < 1e-5 * expected, "%s: %g, not %g", backends[i], (double)*loss,
                  expected);
        free(loss);
        cli_close(&cli);
    }
}

/* Milestones are epochs where epochs are given: of two steps here; else steps. */
Test(evaluation, milestones_are_epochs_or_steps)
{
    static const char *const lengths[] = {"steps: 4\n", "epochs: 2\n"};
    for (int epochs = 0; epochs < 2; epochs++) {
        struct cli cli;
        char text[512], path[512];
        snprintf(text, sizeof text,
                 "rematch: 1\nname: falling\nmodel: {layers: [{linear: {units: classes}}]}\n"
                 "data: {name: synthetic, shape: [6], classes: 3, samples: 8}\nbatch: 4\n%s"
                 "optimizer: {lr: 0.5}\nlr_schedule: {name: step, at: [1], gamma: 0.5}\n",
                 lengths[epochs]);
        cli_open(&cli);
        cli_file(&cli, "falling.yaml", text);
        cli_expect(&cli, 0, "run falling.yaml --only variant");
        cli_run(&cli, "mv results/falling/*.h5 run.h5", "verify run.h5");
        snprintf(path, sizeof path, "%s/run.h5", cli.folder);
        float *rates = floats_of(path, "/steps/lr", 4);
        for (int step = 0; step < 4; step++)
            cr_expect(rates[step] == (step >= (epochs ? 2 : 1) ? 0.25F : 0.5F), "epochs %d, step %d", epochs, step);
        free(rates);
        cli_close(&cli);
    }
}

/* ---- a label for every token ---- */

enum { TEXTS = 10, TOKENS = 5, WORDS = 12, WIDTH = 6 };

static const char token_spec[] =
    "rematch: 1\nname: tokens\nmodel:\n  layers:\n"
    "    - embedding: {name: table, vocabulary: 12, positions: 5, segments: 1, units: 6}\n"
    "    - linear: {name: last, units: classes, bias: false}\n"
    "data: {name: synthetic-text, length: 5, vocabulary_size: 12, samples: 10}\nbatch: 10\nsteps: 3\n"
    "optimizer: {lr: 0.5}\neval: {split: train}\nrecord: {state: true}\n";

/* Loss and share of correct predictions over the last batch, which holds all samples of the split. */
static void expected_of_tokens(const char *path, double *loss, double *accuracy)
{
    float *x = floats_of(path, "/state/x", STEPS * TEXTS * 3 * TOKENS);
    float *labels = floats_of(path, "/state/labels", STEPS * TEXTS * TOKENS);
    float *word = values(path, "%s.word", "table", WORDS * WIDTH);
    float *position = values(path, "%s.position", "table", TOKENS * WIDTH);
    float *segment = values(path, "%s.segment", "table", WIDTH);
    float *weight = values(path, "%s.weight", "last", WORDS * WIDTH);
    *loss = *accuracy = 0;
    for (int i = 0; i < TEXTS * TOKENS; i++) {
        const int n = (STEPS - 1) * TEXTS + i / TOKENS, t = i % TOKENS;
        const int id = (int)x[n * 3 * TOKENS + t], label = (int)labels[n * TOKENS + t];
        double out[WORDS] = {0}, sum = 0;
        int best = 0;
        for (int c = 0; c < WORDS; c++) {
            for (int k = 0; k < WIDTH; k++)
                out[c] += (double)weight[c * WIDTH + k] *
                          ((double)word[id * WIDTH + k] + (double)position[t * WIDTH + k] + (double)segment[k]);
            sum += exp(out[c]);
            if (out[c] > out[best]) best = c;
        }
        *loss += (log(sum) - out[label]) / (TEXTS * TOKENS);
        *accuracy += (best == label) / (double)(TEXTS * TOKENS);
    }
    free(x), free(labels), free(word), free(position), free(segment), free(weight);
}

static void run_tokens(struct cli *cli, const char *settings, char path[512], float figures[2])
{
    char command[256];
    snprintf(command, sizeof command, "run tokens.yaml --only variant %s", settings);
    cli_expect(cli, 0, command);
    cli_run(cli, "mv results/tokens/*.h5 run.h5", "verify run.h5");
    cr_assert(cli->code == 0, "%s%s", cli->out, cli->err);
    snprintf(path, 512, "%s/run.h5", cli->folder);
    float *loss = floats_of(path, "/eval/loss", 1), *accuracy = floats_of(path, "/eval/accuracy", 1);
    figures[0] = *loss, figures[1] = *accuracy;
    free(loss), free(accuracy);
}

Test(evaluation, is_the_mean_over_labels)
{
    static const char *const backends[] = {"backend=ref",
                                           "backend=cpu",
                                           "backend=cpu slices=5 policy=microbatch",
                                           "backend=ref loss.chunks=4",
                                           "backend=cpu loss.chunks=7",
                                           "backend=cpu loss.chunks=3 slices=5 policy=microbatch"};
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        struct cli cli;
        char path[512];
        float figures[2];
        double loss, accuracy;
        cli_open(&cli);
        cli_file(&cli, "tokens.yaml", token_spec);
        run_tokens(&cli, backends[i], path, figures);
        expected_of_tokens(path, &loss, &accuracy);
        cr_assert(fabs((double)figures[0] - loss) < 1e-5 * loss, "%g, not %g", (double)figures[0], loss);
        cr_assert(fabs((double)figures[1] - accuracy) < 1e-6 && accuracy > 0, "%g, not %g", (double)figures[1],
                  accuracy);
        cli_close(&cli);
    }
}

/* A label a pixel, some of them none, in a network of images: recomputed, in slices, on both backends. */
Test(evaluation, of_pixels_is_equal_under_recomputation)
{
    static const char *const settings[] = {"backend=ref", "backend=cpu", "backend=cpu slices=2",
                                           "backend=cpu update=fused", "backend=cpu rng=mask memory=poison"};
    static const char pixels[] =
        "rematch: 1\nname: pixels\nmodel:\n  layers:\n    - conv: {channels: 6, kernel: 3, padding: 1, activation: "
        "relu}\n"
        "    - max_pool: {kernel: 2}\n    - dropout: {rate: 0.2}\n    - conv: {channels: 8, kernel: 3, padding: 1}\n"
        "    - upsample: {factor: 2}\n    - conv: {channels: 5, kernel: 1}\n"
        "data: {name: synthetic, shape: [8, 10, 2], classes: 5, labels: pixel, samples: 8}\nbatch: 4\nsteps: 6\n"
        "optimizer: {lr: 0.5}\neval: test\npolicy: {name: segments, segments: 2, unit: stage, keep_last: false}\n";
    for (int i = 0; i < 5; i++) {
        struct cli cli;
        char command[128];
        cli_open(&cli);
        cli_file(&cli, "pixels.yaml", pixels);
        snprintf(command, sizeof command, "run pixels.yaml %s", settings[i]);
        cli_expect(&cli, 0, command);
        cli_says(&cli, "EQUAL IN EVERY BIT");
        cli_close(&cli);
    }
}

/* What the file holds as targets of losses.yaml: the batches without their noise, which is less than sqrt(3). */
static void check_targets(struct cli *cli)
{
    enum { NUMBERS = 4 * 4 * 8 * 10 * 2 };
    char path[512];
    double squares = 0;
    cli_run(cli, "rm -r results", "run losses.yaml --only variant record.state=true");
    cr_assert(cli->code == 0, "%s%s", cli->out, cli->err);
    cli_run(cli, "mv results/losses/*.h5 run.h5", "verify run.h5");
    cr_assert(cli->code == 0, "%s%s", cli->out, cli->err);
    snprintf(path, sizeof path, "%s/run.h5", cli->folder);
    float *x = floats_of(path, "/state/x", NUMBERS), *target = floats_of(path, "/state/targets", NUMBERS);
    for (int i = 0; i < NUMBERS; i++) {
        const double noise = (double)x[i] - (double)target[i];
        cr_assert(fabs(noise) < 1.7321);
        squares += noise * noise / NUMBERS;
    }
    cr_assert(fabs(squares - 1) < 0.1, "%g", squares);
    free(x), free(target);
}

/* The other losses of images, recomputed, in slices and evaluated; a loss without predictions is not evaluated. */
Test(evaluation, of_other_losses_is_equal_under_recomputation)
{
    static const char *const settings[] = {"backend=ref", "backend=cpu slices=2",
                                           "memory=dynamic rng=stash record.state=true"};
    static const struct {
        const char *loss, *labels;
        int channels;
    } losses[] = {
        {"dice", "pixel, classes: 4", 4},
        {"{name: dice, smooth: 0.01}", "pixel, classes: 2", 1},
        {"bce", "pixel, classes: 2", 1},
        {"{name: cross_entropy, class_weights: [1, 2.5, 0, 0.5], label_smoothing: 0.1}", "pixel, classes: 4", 4},
        {"mse", "image", 2}};
    for (size_t l = 0; l < sizeof losses / sizeof *losses; l++) {
        struct cli cli;
        char text[2048], command[128];
        cli_open(&cli);
        snprintf(
            text, sizeof text,
            "rematch: 1\nname: losses\nmodel:\n  layers:\n    - conv: {channels: 6, kernel: 3, padding: 1, "
            "activation: relu}\n    - max_pool: {kernel: 2}\n    - dropout: {rate: 0.2}\n    - conv: {channels: 8, "
            "kernel: 3, padding: 1}\n    - upsample: {factor: 2}\n    - conv: {channels: %d, kernel: 1}\n"
            "data: {name: synthetic, shape: [8, 10, 2], labels: %s, samples: 10}\nbatch: 4\nsteps: 4\n"
            "optimizer: {lr: 0.5}\nloss: %s\n%spolicy: {name: segments, segments: 2, unit: stage, keep_last: "
            "false}\n",
            losses[l].channels, losses[l].labels, losses[l].loss, strcmp(losses[l].loss, "mse") ? "eval: test\n" : "");
        cli_file(&cli, "losses.yaml", text);
        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
            snprintf(command, sizeof command, "run losses.yaml %s", settings[i]);
            cli_expect(&cli, 0, command);
            cli_says(&cli, "EQUAL IN EVERY BIT");
        }
        if (!strcmp(losses[l].loss, "mse")) check_targets(&cli);
        cli_close(&cli);
    }
}

/* The copies that fill the last batch do not count; nor do weights of classes in chunks differ from those of whole
 * logits. */
Test(evaluation, counts_every_label_once_whatever_the_batch)
{
    static const char *const batches[] = {"batch=10", "batch=5", "batch=4", "batch=3", "batch=9"};
    static const char *const losses[] = {"", "'loss={class_weights: [1, 2, 0, 1, 1, 3, 1, 1, 1, 0.5, 1, 9]}'",
                                         "'loss={chunks: 3, class_weights: [1, 2, 0, 1, 1, 3, 1, 1, 1, 0.5, 1, 9]}'"};
    float first[2] = {0}, figures[2];
    for (int i = 0; i < 15; i++) {
        struct cli cli;
        char path[512], settings[160];
        cli_open(&cli);
        cli_file(&cli, "tokens.yaml", token_spec);
        snprintf(settings, sizeof settings, "%s steps=1 optimizer.lr=1e-9 %s", batches[i % 5], losses[i / 5]);
        run_tokens(&cli, settings, path, figures);
        if (i == 0 || i == 5) first[0] = figures[0], first[1] = figures[1];
        cr_assert(fabsf(figures[0] - first[0]) < 1e-6F * first[0], "%g, not %g", (double)figures[0], (double)first[0]);
        cr_assert(fabsf(figures[1] - first[1]) < 1e-6F, "%g, not %g", (double)figures[1], (double)first[1]);
        cli_close(&cli);
    }
}
