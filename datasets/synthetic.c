/* A synthetic data set that can be learnt: each class is a smooth pattern of a few gratings of low frequency, each
 * sample is its class's pattern plus noise of deviation 1.
 *
 * Numerical contract: sample i of a split is a function of (seed, split, i) alone. Counters of the generator's DATA
 * domain: sample = i and step = split for labels and noise, sample = class for patterns; node = enum drawn. In a shape
 * of one number the pattern varies along it; of two, along both; of four, not along the first. */
#include "dataset.h"
#include "numerics/rng.h"

#include <math.h>
#include <string.h>

#define AT(member) offsetof(struct dataset_settings, member)

enum drawn { DRAW_LABEL, DRAW_NOISE, DRAW_PATTERN, DRAW_AMPLITUDE };
enum { GRATINGS = 3, NO_CLASS = -1 };

static const char *const labels_words[] = {"sample", "pixel", "image", NULL};

static const double two_pi = 6.283185307179586, cycles_max = 3;

/* grating(i, j) = cos(u_i + v_j) = cos u_i cos v_j - sin u_i sin v_j: so tables over rows and over columns suffice. */
struct synthetic {
    int64_t planes, rows, columns, channels;
    float *row, *column; /* [classes][GRATINGS][rows or columns][cos, sin] */
    float *amplitude;    /* [classes][GRATINGS][channels], in [-1, 1) */
};

static const struct setting keys[] = {
    {"shape", SETTING_INTS, AT(shape), 1, SHAPE_RANK_MAX, NULL, NULL, "of a sample: [height, width, channels] or [n]"},
    {"classes", SETTING_INT, AT(classes), 1, 1 << 20, "10", NULL, "number of patterns"},
    {"labels", SETTING_CHOICE, AT(labels), 0, 0, "sample", labels_words,
     "one a sample; one a pixel: where the pattern is bright its class, where it is dark 0, between them none; or the "
     "image without its noise"},
    {"samples", SETTING_INT, AT(samples), 1, 1 << 30, "10000", NULL, "in the training split and in the test split"},
    {"shuffle", SETTING_BOOL, AT(shuffle), 0, 0, "true", NULL, "another order every epoch"},
    {0},
};

static void split_shape(const struct shape *shape, struct synthetic *s)
{
    int64_t full[SHAPE_RANK_MAX] = {1, 1, 1, 1}; /* planes, rows, columns, channels */
    int last = shape->rank < 3 ? 2 : 3, first = last - shape->rank + 1;
    for (int i = 0; i < shape->rank; i++) full[first + i] = shape->dim[i];
    s->planes = full[0];
    s->rows = full[1];
    s->columns = full[2];
    s->channels = full[3];
}

static void fill_waves(float *table, int64_t places, double cycles, double phase)
{
    for (int64_t i = 0; i < places; i++) {
        double angle = two_pi * cycles * ((double)i + 0.5) / (double)places + phase;
        table[2 * i] = (float)cos(angle);
        table[2 * i + 1] = (float)sin(angle);
    }
}

static void draw_pattern(const struct dataset *dataset, struct synthetic *s, int64_t class)
{
    for (int64_t g = 0; g < GRATINGS; g++) {
        int64_t at = class * GRATINGS + g;
        struct philox words = rng_words(dataset->seed, RNG_DATA, (uint32_t)g, (uint32_t) class, DRAW_PATTERN, 0);
        fill_waves(s->row + at * s->rows * 2, s->rows, cycles_max * rng_uniform(words.word[0]), 0);
        /* The sign of the second frequency is the grating's direction; the phase is free. */
        fill_waves(s->column + at * s->columns * 2, s->columns, cycles_max * (2 * rng_uniform(words.word[1]) - 1),
                   two_pi * rng_uniform(words.word[2]));
        for (int64_t c = 0; c < s->channels; c++) {
            uint32_t place = (uint32_t)(g * s->channels + c);
            words = rng_words(dataset->seed, RNG_DATA, place, (uint32_t) class, DRAW_AMPLITUDE, 0);
            s->amplitude[at * s->channels + c] = 2 * rng_uniform(words.word[0]) - 1;
        }
    }
}

static enum status open_synthetic(struct dataset *dataset)
{
    struct synthetic *s;
    NEW(dataset->region, s, 1);
    split_shape(&dataset->shape, s);
    if (dataset->settings.labels == LABELS_PIXEL && dataset->shape.rank != 3)
        return fail(ST_SPEC, "data.labels: pixel; expected sample, or a shape [height, width, channels]");
    if (dataset->settings.labels == LABELS_PIXEL) dataset->labels = s->rows * s->columns;
    if (dataset->settings.labels == LABELS_IMAGE) {
        dataset->target = dataset->shape;
        dataset->labels = shape_elements(&dataset->shape);
    }
    dataset->classes = dataset->settings.classes;
    dataset->count[SPLIT_TRAIN] = dataset->count[SPLIT_TEST] = dataset->settings.samples;
    size_t gratings = (size_t)dataset->classes * GRATINGS;
    NEW(dataset->region, s->row, gratings * (size_t)s->rows * 2);
    NEW(dataset->region, s->column, gratings * (size_t)s->columns * 2);
    NEW(dataset->region, s->amplitude, gratings * (size_t)s->channels);
    for (int64_t class = 0; class < dataset->classes; class ++) draw_pattern(dataset, s, class);
    dataset->state = s;
    return ST_OK;
}

static void add_noise(const struct dataset *dataset, enum split split, int64_t index, float *x)
{
    const float width = 3.4641016f; /* uniform over [-width / 2, width / 2) has deviation 1 */
    int64_t elements = shape_elements(&dataset->shape);
    for (int64_t i = 0; i < elements; i += 4) {
        struct philox words =
            rng_words(dataset->seed, RNG_DATA, (uint32_t)(i / 4), (uint32_t)index, DRAW_NOISE, (uint32_t)split);
        for (int64_t k = 0; k < 4 && i + k < elements; k++) x[i + k] += width * (rng_uniform(words.word[k]) - 0.5f);
    }
}

static void add_pattern(const struct synthetic *s, int64_t class, float *x)
{
    for (int64_t g = class * GRATINGS; g < (class + 1) * GRATINGS; g++) {
        const float *column = s->column + g * s->columns * 2, *amplitude = s->amplitude + g * s->channels;
        float *out = x;
        for (int64_t i = 0; i < s->planes * s->rows; i++) {
            const float *row = s->row + (g * s->rows + i % s->rows) * 2;
            for (int64_t j = 0; j < s->columns; j++, out += s->channels) {
                float wave = row[0] * column[2 * j] - row[1] * column[2 * j + 1];
                for (int64_t c = 0; c < s->channels; c++) out[c] += amplitude[c] * wave;
            }
        }
    }
}

/* From the first channel of a pattern without noise. */
static void label_pixels(const struct dataset *dataset, int64_t class, const float *x, int32_t *label)
{
    const float edge = 0.1f;
    const int64_t channels = dataset->shape.dim[2];
    for (int64_t i = 0; i < dataset->labels; i++) {
        const float bright = x[i * channels];
        label[i] = bright > edge ? (int32_t) class : bright < -edge ? 0 : NO_CLASS;
    }
}

static enum status sample_synthetic(struct dataset *dataset, enum split split, int64_t index, float *x, int32_t *label)
{
    uint32_t word = rng_words(dataset->seed, RNG_DATA, 0, (uint32_t)index, DRAW_LABEL, (uint32_t)split).word[0];
    int64_t class = (int64_t)word % dataset->classes, elements = shape_elements(&dataset->shape);
    for (int64_t i = 0; i < elements; i++) x[i] = 0;
    add_pattern(dataset->state, class, x);
    *label = (int32_t) class;
    if (dataset->settings.labels == LABELS_PIXEL) label_pixels(dataset, class, x, label);
    if (dataset->settings.labels == LABELS_IMAGE) memcpy(label, x, (size_t)elements * sizeof *x);
    add_noise(dataset, split, index, x);
    return ST_OK;
}

const struct dataset_kind dataset_synthetic = {
    "synthetic", "patterns with noise, one a class", keys, true, open_synthetic, sample_synthetic, NULL};
