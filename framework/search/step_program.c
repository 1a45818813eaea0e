#include "search/step_program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const double step_program_floor = 1e5;

/* What an event reads of things, or has live besides. */
static bool reads(const struct step_model *m, int event, int thing)
{
    const struct step_event *e = &m->event[event];
    const struct node *at = &m->network->graph->node[e->node];
    const bool forward = e->kind == STEP_FORWARD;
    const int node = thing / 2;
    if (thing % 2) return !forward && e->node == node && e->reads & READS_SAVED && m->saved[node];
    if (!forward && e->node == node && e->reads & READS_Y) return true;
    for (int k = 0; k < (forward ? at->layer->inputs : inputs_read(e->reads, at->layer->inputs)); k++)
        if (at->inputs[k] == node + 1) return true;
    return false;
}

static size_t bytes_of(const struct step_model *m, int thing)
{
    return thing % 2 ? m->saved[thing / 2] : m->value[thing / 2];
}

static int keep(const struct step_program *p, int event, int thing)
{
    return event < p->model->events ? p->keep[event * 2 * p->model->nodes + thing] : -1;
}

static int make(const struct step_program *p, int event, int node) { return p->make[event * p->model->nodes + node]; }

static void number_columns(struct step_program *p, struct region *region)
{
    const struct step_model *m = p->model;
    NEW(region, p->last, 2 * (size_t)m->nodes);
    NEW(region, p->keep, 2 * (size_t)m->nodes * (size_t)m->events);
    NEW(region, p->make, (size_t)m->nodes * (size_t)m->events);
    for (int n = m->nodes - 1; n >= 0; n--) { /* what is made of an input is read at least as late */
        for (int thing = 2 * n; thing <= 2 * n + 1; thing++)
            for (int e = 0; e < m->events; e++)
                if (reads(m, e, thing) && e > p->last[thing]) p->last[thing] = e;
        const struct node *node = &m->network->graph->node[n];
        for (int k = 0; k < node->layer->inputs; k++)
            for (int thing = 2 * n; node->inputs[k] && thing <= 2 * n + 1; thing++) {
                int *last = &p->last[2 * (node->inputs[k] - 1)];
                if (p->last[thing] > *last) *last = p->last[thing];
            }
    }
    for (int e = 0; e < m->events; e++)
        for (int n = 0; n < m->nodes; n++) {
            const bool done = n < e;
            const int *last = &p->last[2 * n];
            for (int i = 0; i < 2; i++)
                p->keep[(e * m->nodes + n) * 2 + i] = done && e <= last[i] && last[i] ? p->columns++ : -1;
            p->make[e * m->nodes + n] = done && (e <= last[0] || e <= last[1]) ? p->columns++ : -1;
        }
}

/* Lines of the file: terms of a row, then its end. */
static void add(const struct step_program *p, double factor, int column)
{
    if (column >= 0) fprintf(p->file, " %+.12g x%d\n", factor, column);
}

static void end_row(struct step_program *p, const char *relation, double value)
{
    fprintf(p->file, " %s %.12g\nr%lld:\n", relation, value, (long long)++p->rows);
}

/* What the event reads is there, and so are the inputs of what is recomputed before it. */
static void write_needs(struct step_program *p, int event)
{
    const struct step_model *m = p->model;
    for (int n = 0; n < m->nodes; n++) {
        const struct node *node = &m->network->graph->node[n];
        for (int k = 0; make(p, event, n) >= 0 && k < node->layer->inputs; k++) {
            const int x = node->inputs[k] - 1;
            if (x < 0) continue;
            add(p, 1, keep(p, event, 2 * x));
            add(p, 1, make(p, event, x));
            add(p, -1, make(p, event, n));
            end_row(p, ">=", 0);
        }
        for (int thing = 2 * n; thing <= 2 * n + 1; thing++) {
            const bool read = reads(m, event, thing), first = event == n; /* its first forward makes it */
            const int later = keep(p, event + 1, thing);
            if (!read && (first || later < 0)) continue;
            add(p, 1, keep(p, event, thing));
            add(p, 1, make(p, event, n));
            if (!read) add(p, -1, later);
            end_row(p, ">=", read);
        }
    }
}

static size_t divisor(size_t a, size_t b) { return b ? divisor(b, a % b) : a; }

/* The bytes that are live while the event runs; false: it does not fit alone. What is kept beside it has a multiple of
 * the bytes that divide everything that may be. */
static bool write_bytes(struct step_program *p, int event)
{
    const struct step_model *m = p->model;
    const struct step_event *e = &m->event[event];
    const bool forward = e->kind == STEP_FORWARD;
    const int over = forward && m->over[e->node] ? 2 * (m->network->graph->node[e->node].inputs[0] - 1) : -1;
    size_t live = e->during, unit = 0;
    for (int thing = 0; thing < 2 * m->nodes; thing++) {
        const bool has = thing != over && (reads(m, event, thing) || (forward && thing == 2 * e->node));
        if (has) live += bytes_of(m, thing);
        if (has || !bytes_of(m, thing) || keep(p, event + 1, thing) < 0) continue;
        unit = divisor(bytes_of(m, thing), unit);
        add(p, (double)bytes_of(m, thing) / p->unit, keep(p, event + 1, thing));
    }
    if (live > p->limit) return false;
    const size_t units = unit ? (p->limit - live) / unit : 0;
    if (unit) end_row(p, "<=", (double)(units * unit) / p->unit);
    if (e->after <= e->during) return true;
    if (e->after > p->limit) return false;
    int terms = 0;
    for (int thing = 0; thing < 2 * m->nodes; thing++) {
        if (!bytes_of(m, thing) || keep(p, event + 1, thing) < 0) continue;
        add(p, (double)bytes_of(m, thing) / p->unit, keep(p, event + 1, thing));
        terms++;
    }
    if (terms) end_row(p, "<=", (double)(p->limit - e->after) / p->unit);
    return true;
}

/* A column for dropping the thing once node is recomputed before the event: nothing else reads it from there on. */
static int write_drop(struct step_program *p, int event, int node, int thing)
{
    const struct step_model *m = p->model;
    const int column = p->columns;
    if (reads(m, event, thing) || !bytes_of(m, thing)) return -1;
    p->columns++;
    add(p, 1, column);
    add(p, -1, make(p, event, node));
    end_row(p, "<=", 0);
    if (keep(p, event + 1, thing) >= 0) {
        add(p, 1, column);
        add(p, 1, keep(p, event + 1, thing));
        end_row(p, "<=", 1);
    }
    for (int reader = node + 1; thing % 2 == 0 && reader < m->nodes; reader++) {
        const struct node *at = &m->network->graph->node[reader];
        bool input = false;
        for (int k = 0; k < at->layer->inputs; k++) input |= at->inputs[k] == thing / 2 + 1;
        if (!input || make(p, event, reader) < 0) continue;
        add(p, 1, column);
        add(p, 1, make(p, event, reader));
        end_row(p, "<=", 1);
    }
    return column;
}

/* The bytes that are live at each recomputation before the event, a column being those that are held after it. */
static void write_order(struct step_program *p, int event)
{
    const struct step_model *m = p->model;
    int held = -1; /* after the last one; -1: what is kept */
    for (int n = 0; n < m->nodes; n++) {
        const struct node *node = &m->network->graph->node[n];
        int drop[NODE_INPUTS_MAX + 2], thing[NODE_INPUTS_MAX + 2], drops = 0;
        if (make(p, event, n) < 0) continue;
        for (int k = 0; k < node->layer->inputs; k++)
            if (node->inputs[k] && (!k || node->inputs[k] != node->inputs[0]))
                thing[drops++] = 2 * (node->inputs[k] - 1);
        const int inputs = drops;
        thing[drops++] = 2 * n;
        if (m->saved[n]) thing[drops++] = 2 * n + 1;
        for (int i = 0; i < drops; i++) drop[i] = write_drop(p, event, n, thing[i]);
        for (int peak = 1; peak >= 0; peak--) {
            if (held >= 0) add(p, 1, held);
            for (int i = 0; held < 0 && i < 2 * m->nodes; i++)
                add(p, (double)bytes_of(m, i) / p->unit, keep(p, event, i));
            const size_t made = m->value[n] + m->saved[n] + (peak ? m->scratch[n] : 0);
            add(p, (double)made / p->unit, make(p, event, n));
            for (int i = 0; i < drops; i++) {
                const bool gone = !peak || thing[i] == 2 * n + 1 || (!i && inputs && m->over[n] && node->inputs[0]);
                if (gone) add(p, -(double)bytes_of(m, thing[i]) / p->unit, drop[i]);
            }
            if (!peak) add(p, -1, p->columns);
            const size_t before = m->event[event].before;
            end_row(p, peak ? "<=" : "=", peak ? ((double)p->limit - (double)before) / p->unit : 0);
        }
        held = p->columns++;
    }
}

static bool write_all(struct step_program *p)
{
    const struct step_model *m = p->model;
    const int binaries = p->columns;
    fprintf(p->file, "Minimize\nobj: 0 x0\n");
    for (int e = 0; e < m->events; e++)
        for (int n = 0; n < m->nodes; n++) add(p, m->time[n] / m->floor * step_program_floor, make(p, e, n));
    fprintf(p->file, "Subject To\nr0:\n");
    for (int e = 0; e < m->events; e++) {
        write_needs(p, e);
        if (!write_bytes(p, e)) return false;
        if (p->ordered) write_order(p, e);
    }
    fprintf(p->file, " 0 x0 >= 0\nBinaries\n"); /* the row that was begun */
    for (int i = 0; i < binaries; i++) fprintf(p->file, "x%d\n", i);
    fprintf(p->file, "End\n");
    return true;
}

enum status step_program_write(const struct step_model *model, size_t limit, bool ordered, const char *path,
                               struct region *region, struct step_program *program, bool *fits)
{
    struct step_program *p = program;
    *p = (struct step_program){.model = model, .limit = limit, .ordered = ordered, .unit = 1, .file = fopen(path, "w")};
    if (!p->file) return fail(ST_FAILED, "%s: %s", path, strerror(errno));
    for (int n = 0; n < model->nodes; n++)
        if ((double)model->value[n] > p->unit) p->unit = (double)model->value[n];
    number_columns(p, region);
    *fits = write_all(p);
    const bool bad = ferror(p->file);
    if (fclose(p->file) != 0 || bad) return fail(ST_FAILED, "%s: %s", path, strerror(errno));
    p->file = NULL;
    return ST_OK;
}

struct sequence step_program_read(const struct step_program *p, const char *solution, struct region *region)
{
    const struct step_model *m = p->model;
    struct sequence sequence = {0, NULL};
    bool *one;
    NEW(region, one, (size_t)p->columns + 1);
    NEW(region, sequence.item, 2 * (size_t)m->events * (size_t)(m->nodes + 1));
    for (const char *at = solution; (at = strchr(at, 'x')); at++) {
        char *end;
        const long column = strtol(at + 1, &end, 10);
        if (end == at + 1 || column < 0 || column >= p->columns) continue;
        one[column] = strtod(end, NULL) > 0.5;
    }
    for (int e = 0; e < m->events; e++) {
        for (int n = 0; n < m->nodes; n++)
            if (make(p, e, n) >= 0 && one[make(p, e, n)]) sequence.item[sequence.length++] = n;
        sequence.item[sequence.length++] = STEP_NEXT;
    }
    return sequence;
}
