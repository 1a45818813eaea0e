/* A model as a list of layers: what is written in YAML, before it meets a data set. */
#ifndef REMATCH_SPEC_MODEL_H
#define REMATCH_SPEC_MODEL_H

#include "spec/spec.h"
#include "yaml/yaml_read.h"

enum form { FORM_LAYER, FORM_GROUP, FORM_REPEAT, FORM_RESIDUAL, FORMS };

/* One entry of a list of layers. */
struct item {
    enum form form;
    const struct yaml_tree *at; /* where it stands */
    const char *name;           /* NULL: none given */
    /* FORM_LAYER */
    const struct layer *layer;
    void *settings; /* the layer's own struct */
    bool classes;   /* units: classes */
    /* the other forms */
    int64_t times;                /* REPEAT: turns, each a group name[0], name[1] ... */
    struct item *body, *shortcut; /* RESIDUAL: the sum of both; no shortcut: the input itself */
    int body_count, shortcut_count;
};

/* What each form is called and may be given; of FORM_LAYER, what every layer may. */
struct form_rows {
    const char *name, *doc;
    const struct setting *keys;
    const char *lists[3]; /* keys that hold layers: the body, then a shortcut */
};
extern const struct form_rows model_forms[FORMS];

/* Whether a layer may stand in a list, where its input is what stands before it. */
bool model_lists(const struct layer *layer);

struct model {
    struct item *item;
    int count;
};

/* The layers of list; init is what a layer that does not say starts from (enum init). Errors are collected; NULL: no
 * memory. */
struct model *model_read(struct yaml_reader *r, const struct yaml_tree *list, int init);

/* The list as canonical YAML, every default filled in, each line indented by indent. */
void model_print(const struct model *model, int indent, struct region *region, FILE *out);

/* The graph the spec describes, for one batch of the data set's samples: of data, only the shape of a sample, the
 * classes and the tokens count. ST_SPEC: layers that do not fit, told as above with the layer's file and line. */
enum status model_build(struct spec *spec, const struct dataset *data, struct graph **graph);

#endif
