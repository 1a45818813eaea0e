/* All ones, and always the same label, as in many published memory measurements. Any number of samples. */
#include "dataset.h"

#define AT(member) offsetof(struct dataset_settings, member)

static const struct setting keys[] = {
    {"shape", SETTING_INTS, AT(shape), 1, SHAPE_RANK_MAX, NULL, NULL, "of a sample: [height, width, channels] or [n]"},
    {"classes", SETTING_INT, AT(classes), 1, 1 << 30, NULL, NULL, "the label is 1 modulo this"},
    {0},
};

static enum status open_ones(struct dataset *dataset)
{
    dataset->classes = dataset->settings.classes;
    return ST_OK;
}

static enum status sample_ones(struct dataset *dataset, enum split split, int64_t index, float *x, int32_t *label)
{
    (void)split;
    (void)index;
    int64_t elements = shape_elements(&dataset->shape);
    for (int64_t i = 0; i < elements; i++) x[i] = 1;
    *label = (int32_t)(1 % dataset->classes);
    return ST_OK;
}

const struct dataset_kind dataset_ones = {"ones", "every element 1", keys, false, open_ones, sample_ones, NULL};
