#include "spec/trace.h"

#include <string.h>

#include "base/names.h"
#include "base/text.h"

enum { SHOWN = 60 };

static const char *const phase_choices[] = {"forward", "backward", NULL};

#define TENSOR(member) offsetof(struct tensor, member)
#define OP(member)     offsetof(struct operation, member)

static const struct setting tensor_keys[] = {
    {"name", SETTING_TEXT, TENSOR(name), 0, 0, NULL, NULL, "unique"},
    {"bytes", SETTING_BYTES, TENSOR(bytes), 0, 0x1p58, "0", NULL, "required but for an alias"},
    {"alias", SETTING_TEXT, TENSOR(alias), 0, 0, "", NULL, "the tensor whose memory it is a view of"},
    {"constant", SETTING_BOOL, TENSOR(constant), 0, 0, "false", NULL, "a parameter or of the batch: always there"},
    {"kept", SETTING_BOOL, TENSOR(kept), 0, 0, "false", NULL,
     "for backward operators, of the first forward: a recomputation does not write it again"},
    {.key = NULL}};

static const struct setting operator_keys[] = {
    {"name", SETTING_TEXT, OP(name), 0, 0, NULL, NULL, "need not be unique"},
    {"phase", SETTING_CHOICE, OP(phase), 0, 0, "forward", phase_choices, "before the loss or after it"},
    {"time", SETTING_REAL, OP(time), 0, ABSTRACT_TIME_MAX, NULL, NULL, "in any unit"},
    {"first", SETTING_REAL, OP(first), 0, ABSTRACT_TIME_MAX, "0", NULL,
     "of a forward: time that its first run takes besides"},
    {"reads", SETTING_TEXTS, OP(read_names), 0, 0, "", NULL, "names of tensors"},
    {"writes", SETTING_TEXTS, OP(write_names), 0, 0, "", NULL, "names of tensors, each written once"},
    {"scratch", SETTING_BYTES, OP(scratch), 0, 0x1p58, "0", NULL, "live while it runs only"},
    {"random", SETTING_BOOL, OP(random), 0, 0, "false", NULL, "of a forward: never runs twice"},
    {"in_place", SETTING_BOOL, OP(in_place), 0, 0, "false", NULL,
     "what it writes takes the place of a dead tensor of the same size that it reads"},
    {"of", SETTING_TEXT, OP(of), 0, 0, "", NULL,
     "of a backward: the forward operator with whose node it runs; found if unset"},
    {.key = NULL}};

/* ---- reading ---- */

/* Number of the tensor, what it is a view of; NONE: there is none, which was reported. */
static int find_tensor(struct trace *s, const struct yaml_tree *at, const char *path, const char *key, const char *name)
{
    const int found = names_find(s->by_name, name);
    if (found >= 0) return s->tensor[found].same;
    yaml_read_error(&s->build->yaml, at, path, key, "no tensor is called '%.*s'", text_shown(name, SHOWN), name);
    return NONE;
}

static void resolve_aliases(struct trace *s)
{
    for (int i = 0; i < s->tensors; i++) s->tensor[i].same = i;
    for (int i = 0; i < s->tensors; i++)
        if (s->tensor[i].alias) s->tensor[i].same = find_tensor(s, s->tensor[i].at, NULL, "alias", s->tensor[i].alias);
    for (int i = 0; i < s->tensors; i++) {
        int steps = 0, end = s->tensor[i].same;
        while (end >= 0 && s->tensor[end].same >= 0 && s->tensor[end].same != end && steps++ < s->tensors)
            end = s->tensor[end].same;
        for (int k = i, next; k >= 0 && k != end; k = next) next = s->tensor[k].same, s->tensor[k].same = end;
        if (steps > s->tensors || (s->tensor[i].alias && end == i))
            yaml_read_error(&s->build->yaml, s->tensor[i].at, NULL, "alias",
                            "'%.*s' is a view of itself; expected a tensor with bytes at the end",
                            text_shown(s->tensor[i].name, SHOWN), s->tensor[i].name);
    }
}

static void read_tensor(struct trace *s, const struct yaml_tree *tree, const char *path, struct tensor *tensor)
{
    struct yaml_reader *r = &s->build->yaml;
    *tensor = (struct tensor){.at = tree, .writer = NONE, .number = NONE};
    yaml_read_map(r, tree, path, "a tensor", tensor_keys, NULL, tensor);
    if (!tensor->name) tensor->name = "";
    const bool bytes = yaml_tree_get(tree, "bytes") != NULL;
    if (tree->kind == YAML_MAP && bytes == (tensor->alias != NULL))
        yaml_read_error(r, tree, path, "bytes", bytes ? "an alias has none of its own" : "missing; expected a size");
}

static const struct yaml_tree *list_of(struct trace *s, const struct yaml_tree *root, const char *key)
{
    const struct yaml_tree *list = yaml_tree_get(root, key);
    if (list && list->kind == YAML_LIST && list->count) return list;
    yaml_read_error(&s->build->yaml, list ? list : root, NULL, key, "expected a list of at least one of them");
    return NULL;
}

static void read_tensors(struct trace *s, const struct yaml_tree *root)
{
    struct yaml_reader *r = &s->build->yaml;
    const struct yaml_tree *list = list_of(s, root, "tensors");
    int64_t sum = 0;
    if (!list) return;
    s->tensors = list->count;
    NEW(r->region, s->tensor, (size_t)s->tensors);
    for (int i = 0; i < s->tensors; i++) {
        struct tensor *t = &s->tensor[i];
        read_tensor(s, list->item[i], region_text(r->region, "tensors[%d]", i), t);
        const int other = *t->name ? names_find(s->by_name, t->name) : NONE;
        if (other >= 0)
            yaml_read_error(r, t->at, NULL, NULL, "two tensors are called '%.*s'; the other is at line %d",
                            text_shown(t->name, SHOWN), t->name, s->tensor[other].at->mark.line);
        names_add(s->by_name, t->name, i);
        if (sum <= INT64_C(1) << 58 && (sum += t->bytes) > INT64_C(1) << 58)
            yaml_read_error(r, t->at, NULL, NULL,
                            "the tensors up to '%.*s' have %.6g bytes in all; expected at most 2^58",
                            text_shown(t->name, SHOWN), t->name, (double)sum);
    }
    resolve_aliases(s);
}

/* The different tensors among names; a view that is written is left out. */
static int *find_tensors(struct trace *s, const struct operation *op, const char *path, const char *key,
                         const struct setting_list *names, bool writes, int *count)
{
    int *list;
    NEW(s->build->yaml.region, list, names->count + 1);
    *count = 0;
    for (size_t k = 0; k < names->count; k++) {
        const int t = find_tensor(s, graph_build_item(op->at, key, k), path, key, names->texts[k]);
        bool known = t < 0 || (writes && strcmp(s->tensor[t].name, names->texts[k]) != 0);
        for (int i = 0; i < *count; i++) known |= list[i] == t;
        if (!known) list[(*count)++] = t;
    }
    return list;
}

static void read_operators(struct trace *s, const struct yaml_tree *root)
{
    struct yaml_reader *r = &s->build->yaml;
    const struct yaml_tree *list = list_of(s, root, "operators");
    if (!list || !s->tensors) return;
    s->operators = list->count;
    NEW(r->region, s->op, (size_t)s->operators);
    for (int i = 0; i < s->operators; i++) {
        struct operation *op = &s->op[i];
        const char *path = region_text(r->region, "operators[%d]", i);
        yaml_read_map(r, list->item[i], path, "an operator", operator_keys, NULL, op);
        op->at = list->item[i];
        op->node = NONE;
        op->read = find_tensors(s, op, path, "reads", &op->read_names, false, &op->reads);
        op->write = find_tensors(s, op, path, "writes", &op->write_names, true, &op->writes);
    }
}

/* ---- whether it is a training step ---- */

static void wrong(struct trace *s, const struct operation *op, const char *what, const struct tensor *t, int other)
{
    yaml_read_error(&s->build->yaml, op->at, NULL, NULL, "'%.*s': tensor '%.*s' %s%s", text_shown(op->name, SHOWN),
                    op->name, text_shown(t->name, SHOWN), t->name, what,
                    other < 0 ? "" : region_text(s->build->yaml.region, " at line %d", s->op[other].at->mark.line));
}

static void check_writes(struct trace *s, int i)
{
    const struct operation *op = &s->op[i];
    for (int k = 0; k < op->writes; k++) {
        struct tensor *t = &s->tensor[op->write[k]];
        if (t->constant)
            wrong(s, op, "is written; expected no write of a constant", t, NONE);
        else if (t->writer >= 0)
            wrong(s, op, "is written twice; expected a tensor a write, the first is", t, t->writer);
        else
            t->writer = i;
    }
}

static void check_reads(struct trace *s, int i)
{
    const struct operation *op = &s->op[i];
    for (int k = 0; k < op->reads; k++) {
        const struct tensor *t = &s->tensor[op->read[k]];
        if (!t->constant && t->writer < 0)
            wrong(s, op, "is read, but never written; expected a constant or an operator that writes it", t, NONE);
        else if (t->writer >= i)
            wrong(s, op,
                  "is read before it is written; expected the order in which they ran, without a cycle; it is "
                  "written",
                  t, t->writer);
        else if (op->phase == OPERATOR_BACKWARD && op->writes && !t->constant && t->writer > s->loss &&
                 s->op[t->writer].phase == OPERATOR_FORWARD)
            s->loss = t->writer;
    }
}

static void check_in_place(struct trace *s, const struct operation *op)
{
    bool takes = !op->in_place;
    for (int k = 0; k < op->reads && op->writes; k++)
        takes |= s->tensor[op->read[k]].bytes == s->tensor[op->write[0]].bytes;
    if (!takes)
        yaml_read_error(&s->build->yaml, op->at, NULL, "in_place",
                        "expected that it reads a tensor of the size of the one it writes");
}

static void check_once(struct trace *s, const struct operation *op)
{
    static const char *const keys[] = {"random", "first"};
    const bool set[] = {op->random, op->first > 0};
    for (size_t k = 0; op->phase == OPERATOR_BACKWARD && k < sizeof set / sizeof *set; k++)
        if (set[k])
            yaml_read_error(&s->build->yaml, op->at, NULL, keys[k],
                            "a backward runs once in any case; expected it of a forward");
}

static void check_step(struct trace *s)
{
    struct yaml_reader *r = &s->build->yaml;
    int first = NONE;
    for (int i = 0; i < s->operators; i++) check_writes(s, i);
    for (int i = 0; i < s->operators; i++) {
        check_reads(s, i);
        check_in_place(s, &s->op[i]);
        check_once(s, &s->op[i]);
        if (s->op[i].phase == OPERATOR_FORWARD && first >= 0)
            yaml_read_error(r, s->op[i].at, NULL, NULL,
                            "'%.*s': a forward after the first backward, at line %d; expected every forward before it",
                            text_shown(s->op[i].name, SHOWN), s->op[i].name, s->op[first].at->mark.line);
        if (s->op[i].phase == OPERATOR_BACKWARD && first < 0) first = i;
    }
    if (s->operators && s->loss < 0 && !errors_count(r->errors))
        yaml_read_error(
            r, s->op[0].at, NULL, NULL,
            "no backward operator reads what the forward writes; expected the forward and the backward of a "
            "step");
}

void trace_read(struct graph_build *build, const struct yaml_tree *root, struct trace *trace)
{
    static const char *const choices[] = {"static", "written", NULL};
    static const struct setting gradients = {
        "gradients", SETTING_CHOICE, 0,       0,
        0,           "static",       choices, "those of parameters: always there, or from their write to the end"};
    int choice = 0;
    *trace = (struct trace){.build = build, .loss = NONE, .by_name = names_create(build->yaml.region)};
    if (yaml_tree_get(root, gradients.key))
        yaml_read_value(&build->yaml, yaml_tree_get(root, gradients.key), NULL, &gradients, &choice);
    trace->static_gradients = !choice;
    read_tensors(trace, root);
    read_operators(trace, root);
    if (!errors_count(build->yaml.errors)) check_step(trace);
}
