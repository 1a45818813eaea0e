#include "spec/trace.h"

#include <string.h>

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

/* What each of a node's outputs is; where no forward operator reads one, the largest that is read at all is the value.
 */
static void find_roles(struct trace *s, struct operation *op)
{
    struct tensor *best = NULL;
    for (int k = 0; k < op->writes; k++) {
        struct tensor *t = &s->tensor[op->write[k]];
        t->role = t->read_forward ? ROLE_VALUE : t->read ? ROLE_SAVED : ROLE_UNREAD;
        if (!best || t->role > best->role || (t->role == best->role && t->bytes > best->bytes)) best = t;
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
        op->once = dead;
        views = dead = 0;
        find_roles(s, op);
        for (int k = 0; k < op->reads; k++) add_input(s, op, node_of(s, op->read[k]));
    }
    for (int i = s->loss + 1; i < s->operators && s->op[i].phase == OPERATOR_FORWARD; i++)
        s->op[s->loss].once += s->op[i].time;
}

/* ---- which node a backward operator belongs to ---- */

/* Names the nodes, and lists them at the tensors that they read or write. */
static void find_users(struct trace *s)
{
    struct region *region = s->build->yaml.region;
    s->nodes = names_create(region);
    for (int i = 0; i <= s->loss; i++) {
        const struct operation *op = &s->op[i];
        if (!is_node(s, i)) continue;
        names_add(s->nodes, op->name, i);
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

/* Whether the node reads or writes all that op reads of the forward, and that is something. A node that no forward
 * operator reads, such as a mask made for a backward, has none. */
static bool belongs(const struct trace *s, int node, const struct operation *op)
{
    bool any = false, has_backward = node == s->loss;
    for (int k = 0; k < s->op[node].writes; k++) has_backward |= s->tensor[s->op[node].write[k]].read_forward;
    if (!is_node(s, node) || !has_backward) return false;
    for (int k = 0; k < op->reads; k++) {
        const int t = op->read[k];
        if (node_of(s, t) < 0 && !s->tensor[t].of_forward) continue;
        if (!touches(&s->op[node], t)) return false;
        any = true;
    }
    return any;
}

static int named(struct trace *s, const struct operation *op)
{
    const int i = names_find(s->nodes, op->of);
    if (i >= 0) return i;
    yaml_read_error(&s->build->yaml, op->at, NULL, "of", "no forward operator whose result is read is called '%.*s'",
                    text_shown(op->of, 60), op->of);
    return s->loss;
}

/* Of the tensors that op reads of the forward the one with the fewest users; NULL: it reads none. */
static const struct tensor *rarest(const struct trace *s, const struct operation *op)
{
    const struct tensor *best = NULL;
    for (int k = 0; k < op->reads; k++) {
        const struct tensor *t = &s->tensor[op->read[k]];
        if ((node_of(s, op->read[k]) >= 0 || t->of_forward) && (!best || t->users < best->users)) best = t;
    }
    return best;
}

/* The node that op belongs to: the last one up to due, else the first behind it up to done; NONE. */
static int last_belonging(const struct trace *s, const struct operation *op, int due, int done)
{
    const struct tensor *t = rarest(s, op);
    int after = 0, end = t ? t->users : 0; /* of the users up to due */
    while (after < end) {
        const int middle = after + (end - after) / 2;
        *(t->user[middle] <= due ? &after : &end) = t->user[middle] <= due ? middle + 1 : middle;
    }
    for (int i = after - 1; i >= 0; i--)
        if (belongs(s, t->user[i], op)) return t->user[i];
    for (int i = after; t && i < t->users && t->user[i] <= done; i++)
        if (belongs(s, t->user[i], op)) return t->user[i];
    return NONE;
}

/* The node nearest to the loss that reads or writes what op reads of the forward, at or before the node whose gradient
 * op reads; else after it, as in a backward of several operators; else that node. A sum of gradients belongs to the
 * operator that wrote the last of them. */
static int owner(struct trace *s, const struct operation *op)
{
    int gradients = 0, done = s->loss, due = done, values = NONE;
    for (int k = 0; k < op->reads; k++) {
        const struct tensor *t = &s->tensor[op->read[k]];
        if (node_of(s, op->read[k]) > values) values = node_of(s, op->read[k]);
        if (t->writer < 0 || node_of(s, op->read[k]) >= 0) continue;
        const int group = s->op[t->writer].node, of = t->value >= 0 ? t->value : group;
        if (group < done) done = group;
        if (of < due) due = of;
        gradients++;
    }
    if (op->of) return named(s, op);
    const int node = last_belonging(s, op, due, done);
    if (node >= 0) return node;
    if (gradients > 1 && values < 0) return done;
    return values > due ? values : due;
}

/* Where op adds gradients up, all of this size and nothing else: the value farthest from the loss among those that they
 * are of, since one may have been passed on; NONE: it is no such sum. */
static int sum_of(const struct trace *s, const struct operation *op, int64_t bytes)
{
    int value = NONE;
    if (op->reads < 2) return NONE;
    for (int k = 0; k < op->reads; k++) {
        const struct tensor *t = &s->tensor[op->read[k]];
        if (t->writer <= s->loss || t->value < 0 || t->bytes != bytes) return NONE;
        if (value < 0 || t->value < value) value = t->value;
    }
    return value;
}

/* The value whose gradient op of node writes to a tensor of that size: of an input as large, better one without a
 * gradient from this node so far, the later the better; of the only input. */
static int gradient_of(const struct trace *s, const struct operation *op, int node, int64_t bytes)
{
    const struct operation *own = &s->op[node];
    int best = sum_of(s, op, bytes);
    if (best >= 0) return best;
    for (int k = 0; k < own->inputs; k++) {
        const int x = own->input[k];
        if (s->op[x].bytes != bytes) continue;
        const bool fresh = s->op[x].taken != node, was = best >= 0 && s->op[best].taken != node;
        if (best < 0 || fresh > was || (fresh == was && x > best)) best = x;
    }
    return best < 0 && own->inputs == 1 ? own->input[0] : best;
}

static void join(struct trace *s, int i)
{
    struct operation *op = &s->op[i];
    const int node = op->node = owner(s, op);
    struct operation *own = &s->op[node];
    op->next = own->backward;
    own->backward = i;
    own->back = true;
    own->back_time += op->time;
    for (int k = 0; k < op->reads; k++) {
        struct tensor *t = &s->tensor[op->read[k]];
        const int x = node_of(s, op->read[k]);
        if (x >= 0 && x < node) add_input(s, own, x);
        if (t->writer <= s->loss) continue;
        if (node < t->lowest) t->lowest = node;
        t->last = i;
        t->added = sum_of(s, op, t->bytes) >= 0;
    }
    for (int k = 0; k < op->writes; k++) {
        struct tensor *t = &s->tensor[op->write[k]];
        t->lowest = node;
        if (t->read) t->value = gradient_of(s, op, node, t->bytes);
        if (t->value < 0) continue;
        s->op[t->value].taken = node;
        if (t->bytes > s->op[t->value].gradient) s->op[t->value].gradient = t->bytes;
    }
}

static void find_owners(struct trace *s)
{
    double views = 0;
    int last = NONE;
    for (int i = s->loss + 1; i < s->operators; i++) {
        if (s->op[i].phase == OPERATOR_FORWARD) continue;
        if (!s->op[i].live) {
            views += s->op[i].time;
            continue;
        }
        s->op[i].time += views;
        views = 0;
        join(s, last = i);
    }
    if (last >= 0) s->op[s->op[last].node].back_time += views;
}

/* ---- from operators to nodes ---- */

/* Whether a tensor that a backward operator of node wrote is one input's gradient, or is added to one. */
static bool is_gradient(const struct trace *s, const struct tensor *t, int node)
{
    return t->value >= 0 && has_input(&s->op[node], t->value) && (t->lowest < node || t->added);
}

/* Any other that is read is scratch: within the node's backward where only that reads it, at most as much as lives at
 * once; else of every node down to its last reader. */
static int64_t *find_scratch(struct trace *s)
{
    int64_t *live, *peak;
    NEW(s->build->yaml.region, live, (size_t)s->operators);
    NEW(s->build->yaml.region, peak, (size_t)s->operators);
    for (int i = s->loss + 1; i < s->operators; i++) {
        const struct operation *op = &s->op[i];
        const int node = op->node;
        if (node < 0) continue;
        for (int k = 0; k < op->writes; k++) {
            const struct tensor *t = &s->tensor[op->write[k]];
            if (!t->read || is_gradient(s, t, node)) continue;
            if (t->lowest == node) live[node] += t->bytes;
            if (t->lowest >= node) continue;
            s->op[t->lowest].held += t->bytes; /* from here on, to be added up below */
            s->op[node + 1].held -= t->bytes;
        }
        if (live[node] > peak[node]) peak[node] = live[node];
        for (int k = 0; k < op->reads; k++) {
            const struct tensor *t = &s->tensor[op->read[k]];
            const bool own = t->writer > s->loss && s->op[t->writer].node == node && t->lowest == node;
            if (own && t->last == i && !is_gradient(s, t, node)) live[node] -= t->bytes;
        }
    }
    for (int n = 1; n <= s->loss; n++) s->op[n].held += s->op[n - 1].held;
    return peak;
}

/* Sums over what node and its backward operators write. */
static void sum_outputs(const struct trace *s, int node, struct abstract_node *n, bool *written)
{
    const struct operation *own = &s->op[node];
    for (int k = 0; k < own->writes; k++) {
        const struct tensor *t = &s->tensor[own->write[k]];
        if (t->role != ROLE_VALUE) *(t->role == ROLE_SAVED ? &n->stage.saved : &n->stage.forward_scratch) += t->bytes;
    }
    for (int i = own->backward; i >= 0; i = s->op[i].next) {
        for (int k = 0; k < s->op[i].writes; k++) {
            const struct tensor *t = &s->tensor[s->op[i].write[k]];
            if (!t->read) n->parameters += t->bytes;
            *written |= t->value >= 0 && has_input(own, t->value);
        }
        for (int k = 0; k < s->op[i].reads; k++) {
            const struct tensor *t = &s->tensor[s->op[i].read[k]];
            if (node_of(s, s->op[i].read[k]) < 0) continue;
            n->reads |= t->writer != node ? READS_X : t->role == ROLE_VALUE ? READS_Y : READS_SAVED;
        }
    }
}

/* Inputs that in_place can mean come first. */
static int *order_inputs(const struct trace *s, const struct operation *own)
{
    int *input, count = 0;
    NEW(s->build->yaml.region, input, (size_t)own->inputs + 1);
    for (int same = 1; same >= 0; same--)
        for (int k = 0; k < own->inputs; k++)
            if ((s->op[own->input[k]].bytes == own->bytes) == same) input[count++] = s->op[own->input[k]].value;
    return input;
}

static void add_node(struct trace *s, int node, int64_t scratch)
{
    struct operation *own = &s->op[node];
    struct abstract_node n = {.once = own->once, .in_place = own->in_place, .passes_gradient = true};
    bool written = false, grown = false;
    sum_outputs(s, node, &n, &written);
    for (int k = 0; k < own->inputs; k++) {
        const struct operation *x = &s->op[own->input[k]];
        grown |= x->back;
        if (x->back && x->gradient != own->gradient) n.passes_gradient = false;
    }
    n.passes_gradient &= grown && !written;
    n.forward_only = !own->back;
    n.stage.name = own->name;
    if (names_next(s->nodes, own->name, names_next(s->nodes, own->name, -1)) >= 0) /* another has the name, too */
        n.stage.name = region_text(s->build->yaml.region, "%s.%d", own->name, node);
    n.stage.forward = own->time;
    n.stage.backward = own->back_time;
    n.stage.output = own->bytes;
    n.stage.gradient = own->gradient;
    n.stage.backward_scratch = own->back ? scratch + own->held : 0;
    s->build->always -= n.parameters < s->build->always ? n.parameters : s->build->always;
    own->value = graph_build_add(s->build, &n, own->inputs ? own->inputs : 1, order_inputs(s, own), own->at);
}

static void add_nodes(struct trace *s)
{
    const int64_t *scratch = find_scratch(s);
    int nodes = 0, views = 0, dead = 0, forwards = 0;
    for (int t = 0; t < s->tensors; t++) s->build->always += s->tensor[t].constant ? s->tensor[t].bytes : 0;
    for (int i = 0; i < s->operators; i++) {
        struct operation *op = &s->op[i];
        if (op->phase == OPERATOR_BACKWARD) continue;
        forwards++;
        views += !op->writes;
        dead += op->writes && !op->live;
        if (!op->live) continue;
        for (int k = 0; k < op->inputs; k++) op->back |= s->op[op->input[k]].back;
        op->gradient = !op->back ? 0 : op->gradient ? op->gradient : op->bytes;
        add_node(s, i, scratch[i]);
        nodes++;
    }
    s->build->mapping = region_text(s->build->yaml.region,
                                    "%d forward operators as %d nodes, without %d views and %d dead ones; %d backward "
                                    "operators within the nodes' backwards",
                                    forwards, nodes, views, dead, s->operators - forwards);
}

void trace_to_nodes(struct trace *trace)
{
    find_live(trace);
    find_nodes(trace);
    find_users(trace);
    find_owners(trace);
    if (!errors_count(trace->build->yaml.errors)) add_nodes(trace);
}
