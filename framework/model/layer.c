/* The table of layers, made from layers.def. */
#include "model/layer.h"

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
