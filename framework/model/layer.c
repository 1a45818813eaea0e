/* The table of layers, made from layers.def. */
#include "model/layer.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

#define LAYER(name) extern const struct layer layer_##name;
#include "layers/layers.def"
#undef LAYER

#define LAYER(name) &layer_##name,
const struct layer *const layer_table[] = {
#include "layers/layers.def"
    NULL};
#undef LAYER

const struct layer *layer_find(const char *name)
{
    for (const struct layer *const *l = layer_table; *l; l++)
        if (!strcmp((*l)->name, name)) return *l;
    return NULL;
}

enum status labels_expected(const int32_t *labels, int64_t samples, int64_t each, int64_t classes)
{
    int64_t i = 0;
    while (i < samples * each && (labels[i] == LABEL_NONE || (labels[i] >= 0 && labels[i] < classes))) i++;
    if (i == samples * each) return ST_OK;
    char place[32] = "";
    if (each > 1) snprintf(place, sizeof place, " at place %lld", (long long)(i % each));
    return fail(ST_FAILED, "label %d%s of sample %lld of the batch is not one of %lld classes", (int)labels[i], place,
                (long long)(i / each), (long long)classes);
}

double class_weights_sum(const struct setting_list *weights, const int32_t *labels, int64_t count)
{
    const int64_t classes = weights->count ? (int64_t)weights->count : INT32_MAX;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) /* a label that is no class is an error of the forward */
        if (labels[i] >= 0 && labels[i] < classes) sum += class_weight(weights, labels[i]);
    return sum;
}

enum status class_weights_expected(const struct setting_list *weights, int64_t classes)
{
    double most = 0;
    for (size_t i = 0; i < weights->count; i++) most = weights->reals[i] > most ? weights->reals[i] : most;
    if (!weights->count || ((int64_t)weights->count == classes && most > 0)) return ST_OK;
    return fail(ST_SPEC, "class_weights: %zu number%s%s; expected %lld, one a class, not all of them 0", weights->count,
                text_plural((int64_t)weights->count), most > 0 ? "" : ", all of them 0", (long long)classes);
}

void footprint_keep_sign_bits(struct footprint *footprint, bool signs)
{
    if (!footprint->signs) return;
    footprint->saved = signs ? footprint->signs : 0;
    for (int part = 0; part < 2; part++) {
        unsigned *reads = &footprint->reads[part];
        if (*reads & (READS_Y | READS_SAVED))
            *reads = (*reads & ~(unsigned)(READS_Y | READS_SAVED)) | (signs ? READS_SAVED : READS_Y);
    }
}
