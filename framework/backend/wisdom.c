#include "backend/wisdom.h"

#include <string.h>

const char *const pass_names[PASSES + 1] = {"forward", "backward_params", "backward_input"};

const struct wisdom_row *wisdom_find(const struct wisdom *wisdom, const char *key, enum pass pass)
{
    for (int i = 0; i < wisdom->rows; i++)
        if (wisdom->row[i].pass == (int)pass && strcmp(wisdom->row[i].key, key) == 0) return &wisdom->row[i];
    return NULL;
}
