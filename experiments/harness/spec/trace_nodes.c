#include "spec/trace.h"

#include "base/names.h"
#include "base/text.h"

/* ---- nodes ---- */

static bool is_node(const struct trace *s, int i) { return s->op[i].live && s->op[i].phase == OPERATOR_FORWARD; }

/* The node that writes tensor t; NONE: a constant, or written by a backward operator. */
static int node_of(const struct trace *s, int t)
{
    const int i = s->tensor[t].writer;
    return i >= 0 && s->op[i].phase == OPERATOR_FORWARD ? i : NONE;
}

static bool has_input(const struct operation *op, int node)
{
    for (int k = 0; k < op->inputs; k++)
        if (op->input[k] == node) return true;
    return false;
}

static void add_input(struct trace *s, struct operation *op, int node)
{
    if (node < 0 || has_input(op, node)) return;
    region_grow(s->build->yaml.region, &op->input, op->inputs, sizeof *op->input);
    op->input[op->inputs++] = node;
}

static void find_live(struct trace *s)
{
    for (int i = s->operators - 1; i >= 0; i--) {
        struct operation *op = &s->op[i];
        bool needed = op->phase == OPERATOR_BACKWARD || i == s->loss;
        for (int k = 0; k < op->writes; k++) needed |= s->tensor[op->write[k]].read;
        op->live = needed && op->writes;
        for (int k = 0; op->live && k < op->reads; k++) {
            struct tensor *t = &s->tensor[op->read[k]];
            t->read = true;
            if (op->phase == OPERATOR_FORWARD) t->read_forward = true, t->of_forward = t->constant;
        }
    }
}

/* What each of a node's outputs is; where no forward operator reads one, the largest that backward operators read is
 * the value, which can take an input's place. */
static void find_roles(struct trace *s, struct operation *op)
{
    struct tensor *best = NULL;
    for (int k = 0; k < op->writes; k++) {
        struct tensor *t = &s->tensor[op->write[k]];
        t->role = t->read_forward ? ROLE_VALUE : !t->read ? ROLE_UNREAD : t->kept ? ROLE_KEPT : ROLE_SAVED;
        if (t->kept && t->read_forward)
            yaml_read_error(&s->build->yaml, t->at, NULL, "kept",
                            "'%.*s' is read by a forward operator; expected backward operators alone, or an operator "
                            "that is random",
                            text_shown(t->name, 60), t->name);
        if (t->role >= ROLE_SAVED &&
            (!best || t->role > best->role || (t->role == best->role && t->bytes > best->bytes)))
            best = t;
    }
    if (best) best->role = ROLE_VALUE;
    for (int k = 0; k < op->writes; k++)
        if (s->tensor[op->write[k]].role == ROLE_VALUE) op->bytes += s->tensor[op->write[k]].bytes;
}

/* The time of views belongs to the next operator, that of dead ones to the next node's first forward. */
static void find_nodes(struct trace *s)
{
    double views = 0, dead = 0;
    for (int i = 0; i <= s->loss; i++) {
        struct operation *op = &s->op[i];
        if (!op->live) {
            *(op->writes ? &dead : &views) += op->time;
            continue;
        }
        op->time += views;
        op->once = dead + op->first;
        views = dead = 0;
        find_roles(s, op);
        for (int k = 0; k < op->reads; k++) add_input(s, op, node_of(s, op->read[k]));
    }
    for (int i = s->loss + 1; i < s->operators && s->op[i].phase == OPERATOR_FORWARD; i++)
        s->op[s->loss].once += s->op[i].time;
}

/* ---- the node that a backward operator runs with ---- */

/* Names the live operators, and lists those of the forward at the tensors that they read or write. */
static void find_users(struct trace *s)
{
    struct region *region = s->build->yaml.region;
    s->forwards = names_create(region);
    s->all = names_create(region);
    for (int i = 0; i < s->operators; i++) {
        const struct operation *op = &s->op[i];
        if (!op->live) continue;
        names_add(s->all, op->name, i);
        if (!is_node(s, i)) continue;
        names_add(s->forwards, op->name, i);
        for (int k = 0; k < op->reads + op->writes; k++) {
            struct tensor *t = &s->tensor[k < op->reads ? op->read[k] : op->write[k - op->reads]];
            if (t->users && t->user[t->users - 1] == i) continue;
            region_grow(region, &t->user, t->users, sizeof *t->user);
            t->user[t->users++] = i;
        }
    }
}

static bool touches(const struct operation *op, int t)
{
    for (int k = 0; k < op->reads; k++)
        if (op->read[k] == t) return true;
    for (int k = 0; k < op->writes; k++)
        if (op->write[k] == t) return true;
    return false;
}

static bool of_forward(const struct trace *s, int t) { return node_of(s, t) >= 0 || s->tensor[t].of_forward; }

/* Whether the node reads or writes all that op reads of the forward. */
static bool touches_all(const struct trace *s, int node, const struct operation *op)
{
    for (int k = 0; k < op->reads; k++)
        if (of_forward(s, op->read[k]) && !touches(&s->op[node], op->read[k])) return false;
    return true;
}

static int named(struct trace *s, const struct operation *op)
{
    const int i = names_find(s->forwards, op->of);
    if (i >= 0) return i;
    yaml_read_error(&s->build->yaml, op->at, NULL, "of", "no forward operator whose result is read is called '%.*s'",
                    text_shown(op->of, 60), op->of);
    return s->loss;
}

/* The last node up to `due` that reads or writes all that op reads of the forward; else the last whose value it reads;
 * else due. */
static int node_with(struct trace *s, const struct operation *op, int due)
{
    const struct tensor *rarest = NULL;
    int last = NONE;
    if (op->of) return named(s, op);
    for (int k = 0; k < op->reads; k++) {
        const struct tensor *t = &s->tensor[op->read[k]];
        if (of_forward(s, op->read[k]) && (!rarest || t->users < rarest->users)) rarest = t;
        if (node_of(s, op->read[k]) > last) last = node_of(s, op->read[k]);
    }
    int after = 0, end = rarest ? rarest->users : 0; /* of its users up to due */
    while (after < end) {
        const int middle = after + (end - after) / 2;
        *(rarest->user[middle] <= due ? &after : &end) = rarest->user[middle] <= due ? middle + 1 : middle;
    }
    while (after-- > 0)
        if (touches_all(s, rarest->user[after], op)) return rarest->user[after];
    return last < 0 ? due : last;
}

/* Backward operators run with nodes from the loss down, so that their order stays. The time of views belongs to the
 * operator after them. */
static void place_backwards(struct trace *s)
{
    double views = 0;
    int due = s->loss, last = NONE;
    for (int i = s->loss + 1; i < s->operators; i++) {
        struct operation *op = &s->op[i];
        if (op->phase == OPERATOR_FORWARD) continue;
        if (!op->live) {
            views += op->time;
            continue;
        }
        const int node = node_with(s, op, due);
        if (node < due) due = node;
        struct operation *own = &s->op[op->node = due];
        op->time += views;
        views = 0;
        region_grow(s->build->yaml.region, &own->backward, own->backwards, sizeof *own->backward);
        own->backward[own->backwards++] = last = i;
    }
    if (last >= 0) s->op[last].time += views;
}

/* ---- from operators to nodes ---- */

/* Inputs that in_place can mean come first. */
static int *order_inputs(const struct trace *s, const struct operation *own)
{
    int *input, count = 0;
    NEW(s->build->yaml.region, input, (size_t)own->inputs + 1);
    for (int same = 1; same >= 0; same--)
        for (int k = 0; k < own->inputs; k++)
            if ((s->op[own->input[k]].bytes == own->bytes) == same) input[count++] = s->op[own->input[k]].node + 1;
    return input;
}

/* The operator's name, with its number where another of those has it, too. */
static const char *name_of(const struct trace *s, const struct names *names, int i)
{
    const char *name = s->op[i].name;
    const bool taken = names_next(names, name, names_next(names, name, -1)) >= 0;
    return taken ? region_text(s->build->yaml.region, "%s.%d", name, i) : name;
}

static void add_read(struct trace *s, struct traced_backward *b, int tensor)
{
    static const enum held held[] = {[ROLE_KEPT] = HELD_ONCE, [ROLE_SAVED] = HELD_SAVED, [ROLE_VALUE] = HELD_VALUE};
    const struct traced_read read = {s->op[node_of(s, tensor)].node, held[s->tensor[tensor].role]};
    struct traced_read *list = (struct traced_read *)b->read;
    if (!s->tensor[tensor].bytes && s->tensor[tensor].role != ROLE_VALUE) return; /* nothing is saved */
    for (int k = 0; k < b->reads; k++)
        if (list[k].node == read.node && list[k].what == read.what) return;
    list[b->reads++] = read;
}

static struct traced_backward *make_backward(struct trace *s, int i)
{
    const struct operation *op = &s->op[i];
    struct traced_backward *b;
    struct traced_read *read;
    int *input, *output;
    struct region *region = s->build->yaml.region;
    NEW(region, b, 1);
    NEW(region, read, (size_t)op->reads + 1);
    NEW(region, input, (size_t)op->reads + 1);
    NEW(region, output, (size_t)op->writes + 1);
    *b = (struct traced_backward){.name = name_of(s, s->all, i), .read = read, .input = input, .output = output};
    b->in_place = op->in_place;
    for (int k = 0; k < op->reads; k++) {
        if (node_of(s, op->read[k]) >= 0)
            add_read(s, b, op->read[k]);
        else if (s->tensor[op->read[k]].number >= 0)
            input[b->inputs++] = s->tensor[op->read[k]].number;
    }
    for (int k = 0; k < op->writes; k++)
        if (s->tensor[op->write[k]].number >= 0) output[b->outputs++] = s->tensor[op->write[k]].number;
    return b;
}

static void add_node(struct trace *s, const struct traced_node *node, const struct yaml_tree *at)
{
    struct traced_step *step = s->build->step;
    step->node[step->nodes] = *node;
    s->build->at[step->nodes++] = at;
}

/* A node without a forward for each backward operator but the first, the last of them first; then the node with it. */
static void add_nodes(struct trace *s, int i)
{
    const struct operation *own = &s->op[i];
    for (int k = own->backwards - 1; k >= 0; k--) {
        const int of = own->backward[k];
        struct traced_node node = {.name = name_of(s, s->all, of),
                                   .no_forward = true,
                                   .backward = s->op[of].time,
                                   .backward_scratch = s->op[of].scratch,
                                   .back = make_backward(s, of)};
        if (k) add_node(s, &node, s->op[of].at);
    }
    struct traced_node node = {.name = name_of(s, s->forwards, i),
                               .forward = own->time,
                               .once = own->once,
                               .output = own->bytes,
                               .forward_scratch = own->scratch,
                               .inputs = own->inputs,
                               .input = order_inputs(s, own),
                               .in_place = own->in_place,
                               .random = own->random};
    for (int k = 0; k < own->writes; k++) {
        const struct tensor *t = &s->tensor[own->write[k]];
        int64_t *const sum[] = {&node.forward_scratch, &node.kept, &node.saved};
        if (t->role != ROLE_VALUE) *sum[t->role] += t->bytes;
    }
    if (own->backwards) {
        const struct operation *first = &s->op[own->backward[0]];
        node.backward = first->time;
        node.backward_scratch = first->scratch;
        node.back = make_backward(s, own->backward[0]);
    }
    add_node(s, &node, own->at);
}

/* Numbers the nodes, and the tensors that backward operators write. */
static void number(struct trace *s)
{
    struct traced_step *step = s->build->step;
    int nodes = 0;
    for (int i = 0; i <= s->loss; i++)
        if (is_node(s, i)) {
            nodes += s->op[i].backwards > 1 ? s->op[i].backwards - 1 : 0;
            s->op[i].node = nodes++;
        }
    NEW(s->build->yaml.region, step->node, (size_t)nodes);
    NEW(s->build->yaml.region, s->build->at, (size_t)nodes);
    NEW(s->build->yaml.region, step->tensor, (size_t)s->tensors);
    for (int i = 0; i < s->tensors; i++) {
        struct tensor *t = &s->tensor[i];
        if (t->constant) s->build->always += t->bytes;
        if (t->writer < 0 || s->op[t->writer].phase == OPERATOR_FORWARD) continue;
        const bool fixed = !t->read && s->static_gradients;
        if (fixed) s->build->always += t->bytes;
        t->number = step->tensors;
        step->tensor[step->tensors++] =
            (struct traced_tensor){.name = t->name, .bytes = fixed ? 0 : t->bytes, .stays = !t->read};
    }
    step->always = s->build->always;
}

void trace_to_step(struct trace *s)
{
    int nodes = 0, views = 0, dead = 0, forwards = 0;
    NEW(s->build->yaml.region, s->build->step, 1);
    find_live(s);
    find_nodes(s);
    find_users(s);
    place_backwards(s);
    if (errors_count(s->build->yaml.errors)) return;
    number(s);
    for (int i = 0; i < s->operators; i++) {
        const struct operation *op = &s->op[i];
        if (op->phase == OPERATOR_BACKWARD) continue;
        forwards++;
        views += !op->writes;
        dead += op->writes && !op->live;
        nodes += op->live;
        if (op->live) add_nodes(s, i);
    }
    s->build->mapping = region_text(s->build->yaml.region,
                                    "%d forward operators as %d nodes, without %d views and %d dead ones; %d backward "
                                    "operators as they ran",
                                    forwards, nodes, views, dead, s->operators - forwards);
}
