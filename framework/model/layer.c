/* The table of layers, made from layers.def. */
#include "model/layer.h"

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
