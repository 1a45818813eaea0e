/* Weight files of torchvision's ResNets and DenseNet: the names of parameters and of running state, through the
 * program. The models are those of experiments/models/, every convolution with two channels. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cli.h"
#include "tests/support/h5_contents.h"
#include "tests/support/safetensors_files.h"

enum { STAGES = 4, TENSORS_MAX = 700, NAME_MAX_LENGTH = 64 };

/* The tensors of a file, by our names. */
struct weight_file {
    struct safetensors_writer writer;
    bool without_state;
    int tensors;
    struct {
        char name[NAME_MAX_LENGTH];
        size_t elements;
        float base;
    } tensor[TENSORS_MAX];
};

/* Its values begin at the number of floats before it, so no two tensors are equal. */
static void add(struct weight_file *f, const char *ours, const char *theirs, const char *tensor, const char *shape)
{
    char name[NAME_MAX_LENGTH];
    const size_t before = f->writer.elements;
    cr_assert(f->tensors < TENSORS_MAX);
    snprintf(name, sizeof name, "%.40s.%.20s", theirs, tensor);
    safetensors_add(&f->writer, name, shape, (float)before + 1);
    snprintf(f->tensor[f->tensors].name, NAME_MAX_LENGTH, "%.40s.%.20s", ours, tensor);
    f->tensor[f->tensors].elements = f->writer.elements - before;
    f->tensor[f->tensors++].base = (float)before + 1;
}

static void add_norm(struct weight_file *f, const char *ours, const char *theirs, int channels)
{
    static const char *const tensors[] = {"weight", "bias", "running_mean", "running_var"};
    char name[NAME_MAX_LENGTH], shape[16];
    snprintf(shape, sizeof shape, "%d", channels);
    for (int i = 0; i < (f->without_state ? 2 : 4); i++) add(f, ours, theirs, tensors[i], shape);
    snprintf(name, sizeof name, "%.40s.num_batches_tracked", theirs);
    safetensors_add_count(&f->writer, name, 30);
}

static void add_conv(struct weight_file *f, const char *ours, const char *theirs, int inputs, int kernel)
{
    char shape[64];
    snprintf(shape, sizeof shape, "2, %d, %d, %d", inputs, kernel, kernel);
    add(f, ours, theirs, "weight", shape);
}

/* With convs convolutions a block; projects_first: the first stage has a projection, too. */
struct resnet {
    int blocks[STAGES], convs, kernel[3];
    bool projects_first;
};

static void add_block(struct weight_file *f, const struct resnet *net, int stage, int block)
{
    char ours[32], theirs[32], our_name[NAME_MAX_LENGTH], their_name[NAME_MAX_LENGTH];
    snprintf(ours, sizeof ours, block ? "layer%d[%d]" : "layer%d_first[0]", stage + 1, block - 1);
    snprintf(theirs, sizeof theirs, "layer%d.%d", stage + 1, block);
    for (int i = 0; i < net->convs; i++) {
        snprintf(our_name, sizeof our_name, "%s.conv%d", ours, i + 1);
        snprintf(their_name, sizeof their_name, "%s.conv%d", theirs, i + 1);
        add_conv(f, our_name, their_name, 2, net->kernel[i]);
        snprintf(our_name, sizeof our_name, "%s.bn%d", ours, i + 1);
        snprintf(their_name, sizeof their_name, "%s.bn%d", theirs, i + 1);
        add_norm(f, our_name, their_name, 2);
    }
    if (block || !(stage || net->projects_first)) return;
    snprintf(our_name, sizeof our_name, "%s.projection", ours);
    snprintf(their_name, sizeof their_name, "%s.downsample.0", theirs);
    add_conv(f, our_name, their_name, 2, 1);
    snprintf(our_name, sizeof our_name, "%s.projection_bn", ours);
    snprintf(their_name, sizeof their_name, "%s.downsample.1", theirs);
    add_norm(f, our_name, their_name, 2);
}

static void add_resnet(struct weight_file *f, const struct resnet *net)
{
    add_conv(f, "conv1", "conv1", 3, 7);
    add_norm(f, "bn1", "bn1", 2);
    for (int stage = 0; stage < STAGES; stage++)
        for (int block = 0; block < net->blocks[stage]; block++) add_block(f, net, stage, block);
    add(f, "fc", "fc", "weight", "3, 2");
    add(f, "fc", "fc", "bias", "3");
}

static void add_resnet18(struct weight_file *f) { add_resnet(f, &(struct resnet){{2, 2, 2, 2}, 2, {3, 3}, false}); }
static void add_resnet50(struct weight_file *f) { add_resnet(f, &(struct resnet){{3, 4, 6, 3}, 3, {1, 3, 1}, true}); }

static void add_dense_layer(struct weight_file *f, int stage, int layer, int inputs)
{
    char ours[NAME_MAX_LENGTH], theirs[NAME_MAX_LENGTH];
    for (int i = 1; i <= 2; i++) {
        snprintf(ours, sizeof ours, "dense%d[%d].norm%d", stage, layer, i);
        snprintf(theirs, sizeof theirs, "features.denseblock%d.denselayer%d.norm%d", stage, layer + 1, i);
        add_norm(f, ours, theirs, i == 1 ? inputs : 2);
        memcpy(strstr(ours, ".norm"), ".conv", 5), memcpy(strstr(theirs, ".norm"), ".conv", 5);
        add_conv(f, ours, theirs, i == 1 ? inputs : 2, i == 1 ? 1 : 3);
    }
}

static void add_transition(struct weight_file *f, int stage, int inputs)
{
    char ours[NAME_MAX_LENGTH], theirs[NAME_MAX_LENGTH];
    snprintf(ours, sizeof ours, "transition%d_norm", stage);
    snprintf(theirs, sizeof theirs, "features.transition%d.norm", stage);
    add_norm(f, ours, theirs, inputs);
    memcpy(strstr(ours, "norm"), "conv", 4), memcpy(strstr(theirs, "norm"), "conv", 4);
    add_conv(f, ours, theirs, inputs, 1);
}

static void add_densenet121(struct weight_file *f)
{
    static const int layers[STAGES] = {6, 12, 24, 16};
    add_conv(f, "conv0", "features.conv0", 3, 7);
    add_norm(f, "norm0", "features.norm0", 2);
    for (int stage = 1; stage <= STAGES; stage++) {
        for (int i = 0; i < layers[stage - 1]; i++) add_dense_layer(f, stage, i, 2 + 2 * i);
        if (stage < STAGES) add_transition(f, stage, 2 + 2 * layers[stage - 1]);
    }
    add_norm(f, "norm5", "features.norm5", 34);
    add(f, "fc", "classifier", "weight", "3, 34");
    add(f, "fc", "classifier", "bias", "3");
}

static const struct network {
    const char *model;
    void (*add)(struct weight_file *f);
    int parameters, states;
} networks[] = {{"resnet18", add_resnet18, 62, 40},
                {"resnet50", add_resnet50, 161, 106},
                {"densenet121", add_densenet121, 364, 242}};

/* The file weights.safetensors of the folder, and the spec and the model that read it. */
static struct weight_file *write_files(const struct cli *cli, const struct network *net, bool without_state)
{
    static struct weight_file f;
    char path[512], spec[1024];
    memset(&f, 0, sizeof f);
    f.without_state = without_state;
    net->add(&f);
    safetensors_add(&f.writer, "extra", "1", 0);
    snprintf(path, sizeof path, "%s/weights.safetensors", cli->folder);
    safetensors_finish(&f.writer, path);
    snprintf(path, sizeof path, "sed 's/channels: [0-9]*/channels: 2/' experiments/models/%s.yaml > %s/model.yaml",
             net->model, cli->folder);
    cr_assert(system(path) == 0, "%s", path);
    snprintf(spec, sizeof spec,
             "rematch: 1\nname: torch\nmodel: {file: model.yaml, init: {file: weights.safetensors}}\n"
             "data: {name: synthetic, shape: [32, 32, 3], classes: 3}\nbatch: 2\nsteps: 1\noptimizer: {lr: 0}\n"
             "backend: ref\nrecord: {state: true}\n");
    cli_file(cli, "torch.yaml", spec);
    return &f;
}

/* The recorded tensor as the run began: base, base + step, ... */
static void expect_initial(const struct cli *cli, const char *name, size_t elements, float base, float step)
{
    char path[512], array[128];
    snprintf(path, sizeof path, "%s/run.h5", cli->folder);
    snprintf(array, sizeof array, "/state/initial/%s", name);
    float *values = floats_of(path, array, elements);
    for (size_t i = 0; i < elements; i++)
        cr_assert(values[i] == base + step * (float)i, "%s: %g, not %g", name, (double)values[i], (double)base);
    free(values);
}

Test(torch_weights, torchvisions_names_are_found)
{
    for (size_t n = 0; n < sizeof networks / sizeof *networks; n++) {
        const struct network *net = &networks[n];
        struct cli cli;
        char expected[128];
        cli_open(&cli);
        const struct weight_file *f = write_files(&cli, net, false);
        const int all = net->parameters + net->states;
        cr_assert(f->tensors == all, "%s: %d", net->model, f->tensors);
        cli_expect(&cli, 0, "run torch.yaml --only variant");
        snprintf(expected, sizeof expected, "%d of %d parameters and tensors of running state; not used: extra\n", all,
                 all);
        cli_complains(&cli, expected);
        cli_run(&cli, "mv results/torch/*.h5 run.h5", "verify run.h5");
        cr_assert(cli.code == 0, "%s%s", cli.out, cli.err);
        for (int i = 0; i < all; i++)
            expect_initial(&cli, f->tensor[i].name, f->tensor[i].elements, f->tensor[i].base, 1);
        cli_close(&cli);
    }
}

Test(torch_weights, running_state_is_missing_as_a_parameter_is)
{
    struct cli cli;
    cli_open(&cli);
    const struct weight_file *f = write_files(&cli, &networks[0], true);
    cli_expect(&cli, 2, "run torch.yaml --only variant");
    cli_complains(&cli, "does not fit the model; missing: bn1.running_mean, bn1.running_var, "
                        "layer1_first[0].bn1.running_mean (layer1.0.bn1.running_mean), ");
    cli_complains(&cli, " and 28 more (missing: init initialises them as usual); not used: extra\n");
    cli_expect(&cli, 0, "run torch.yaml --only variant model.init.missing=init");
    cli_complains(&cli, "62 of 102 parameters and tensors of running state; initialised as usual: bn1.running_mean, ");
    cli_run(&cli, "mv results/torch/*.h5 run.h5", "show run.h5 --provenance");
    cli_says(&cli, "layer4[0].bn2.running_var\n");
    for (int i = 0; i < f->tensors; i++)
        expect_initial(&cli, f->tensor[i].name, f->tensor[i].elements, f->tensor[i].base, 1);
    expect_initial(&cli, "layer2_first[0].projection_bn.running_mean", 2, 0, 0);
    expect_initial(&cli, "layer2_first[0].projection_bn.running_var", 2, 1, 0);
    cli_close(&cli);
}
