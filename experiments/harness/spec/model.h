/* A model as a list of layers, as written in YAML; its shapes depend on a data set and are not known yet. */
#pragma once

#include "spec/spec.h"
#include "yaml/yaml_read.h"

/* The lists of a form, the most. */
enum { LIST_LAYERS, LIST_SHORTCUT, LIST_JOIN, LISTS };

enum form {
    FORM_LAYER,
    FORM_GROUP,
    FORM_REPEAT,
    FORM_RESIDUAL,
    FORM_CONCAT,
    FORM_MULTIPLY,
    FORM_CROSS,
    FORM_AUXILIARY,
    FORMS
};

struct layer_list {
    struct item *item;
    int count;
};

/* One entry of a list of layers. */
struct item {
    enum form form;
    const struct yaml_tree *at; /* its place in the file */
    const char *name;           /* NULL: none given */
    const char *from;           /* LAYER: whose output it reads, RESIDUAL, CONCAT: the shortcut; NULL: the one before */
    const struct yaml_tree *from_at;
    /* FORM_LAYER */
    const struct layer *layer;
    bool trainable;   /* and of a group: false: neither are the layers in it */
    int64_t slices;   /* 1: it computes the whole batch at once; 0: not given */
    void *settings;   /* the layer's own struct, or that of the layer that joins the lists of a form */
    bool classes;     /* units: classes */
    const char *tied; /* an earlier layer, whose weight is its own too; NULL: none */
    struct lora {
        int64_t rank; /* 0: none */
        double alpha;
    } lora;
    /* the other forms */
    double weight;                 /* AUXILIARY */
    int64_t times;                 /* REPEAT: repetitions, each a group name[0], name[1] ... */
    struct layer_list list[LISTS]; /* by form_rows.lists; an empty one is its input, or join: the form's own */
};

/* A key that holds a list of layers. */
struct form_list {
    const char *key, *doc;
    bool needed;
};

/* The name and the keys of a form; of FORM_LAYER, the keys of every layer. */
struct form_rows {
    const char *name, *doc;
    const struct setting *keys;
    const struct form_list *lists; /* by place in item.list, ended by a NULL key; NULL: none */
    const char *joins;             /* the layer that joins the outputs of the lists; NULL: there is one list */
};
extern const struct form_rows model_forms[FORMS];

/* Whether a layer may be in a list, where its input is the output of the layer before it. */
bool model_lists(const struct layer *layer);

/* Whether its key lora, a map of lora_keys, adds products of a low rank to the layer's (Hu et al., 2021). */
bool model_adapts(const struct layer *layer);
extern const struct setting lora_keys[];

/* Whether it may be a residual's join. */
bool model_joins(const struct layer *layer);

/* The keys that it has beside its own: members of struct item. */
const struct setting *model_keys(const struct layer *layer);

/* The key of its width, which may be `classes`: "units" or "channels"; NULL: it has none. */
const char *model_width_key(const struct setting *keys);

/* model_parameters.c: numbers and words of a model that are set from outside: in its list of layers, `$depth` stands
 * for the value of the parameter depth. The list with the values in place: those of given, else those of presets (maps
 * of names to scalars, NULL: none). Errors are added for a name in the list without a value, and for a value that the
 * list does not name. */
const struct yaml_tree *model_parameters(struct yaml_reader *r, const struct yaml_tree *presets,
                                         const struct yaml_tree *given, const struct yaml_tree *list);

/* The layers of list; init is the default of their init (enum init). Errors are collected. */
struct layer_list *model_read(struct yaml_reader *r, const struct yaml_tree *list, int init);

/* The list as canonical YAML, every default filled in, each line indented by indent. */
void model_print(const struct layer_list *list, int indent, struct region *region, FILE *out);

/* The graph of the spec for one batch of the data set's samples: data's sample shape, classes and tokens are used.
 * ST_SPEC: layers that do not fit together, reported with the layer's file and line. */
enum status model_build(struct spec *spec, const struct dataset *data, struct graph **graph);
