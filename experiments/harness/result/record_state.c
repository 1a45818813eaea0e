/* Contract: the file holds the bits that the run used. Batches are appended; parameters are laid out before the first
 * step, because no object can be added under SWMR. */
#include "result/h5_write.h"
#include "result/record.h"

#include <stdio.h>

enum { SLICE_BYTES = 1 << 24 };

/* The tensors recorded of every parameter, and of the running state. */
static const struct moment {
    const char *name;
    bool after; /* the last step; else before the first */
    bool running;
    float *(*values)(struct executor *exec, int tensor);
} moments[] = {{"initial", false, false, executor_parameter},
               {"final", true, false, executor_parameter},
               {"gradient", true, false, executor_gradient},
               {"average", true, false, executor_state}, /* of which it is the first copy */
               {"initial", false, true, executor_running},
               {"final", true, true, executor_running}};

static int tensors_of(const struct graph *graph, const struct moment *moment, const struct parameter **tensor)
{
    *tensor = moment->running ? graph->state : graph->parameter;
    return moment->running ? graph->states : graph->parameters;
}

static bool is_kept(const struct job *job, const struct moment *moment)
{
    return moment->values != executor_state || job->spec->optimizer_settings.ema > 0;
}

/* A parameter that is not trained has neither a gradient nor an average. */
static bool has_values(const struct job *job, const struct moment *moment, const struct parameter *tensor)
{
    const bool trained = moment->values == executor_gradient || moment->values == executor_state;
    return is_kept(job, moment) && (!trained || tensor->trained >= 0);
}

static char *tensor_path(char path[512], const char *what, const struct parameter *parameter)
{
    snprintf(path, 512, "/state/%s/%s", what, parameter->name);
    return path;
}

static int extent_of(const struct shape *shape, hsize_t *extent)
{
    for (int i = 0; i < shape->rank; i++) extent[i] = (hsize_t)shape->dim[i];
    return shape->rank;
}

static const char *labels_path(const struct graph *graph)
{
    return graph_targets(graph) ? "/state/targets" : "/state/labels";
}

static void layout_batches(struct h5 *h5, const struct graph *graph)
{
    const char *labels = labels_path(graph);
    hsize_t extent[1 + SHAPE_RANK_MAX] = {(hsize_t)graph->batch};
    int rank = 1 + extent_of(&graph->value[0].shape, extent + 1);
    h5_series(h5, "/state/step", NUMBER_U32, 0, NULL);
    h5_series(h5, "/state/x", NUMBER_F32, rank, extent);
    extent[1] = (hsize_t)graph_labels(graph);
    h5_series(h5, labels, graph_targets(graph) ? NUMBER_F32 : NUMBER_I32, graph_labels(graph) > 1 ? 2 : 1, extent);
    h5_scale(h5, "/state/step", "step");
    h5_attach(h5, "/state/x", 0, "/state/step");
    h5_attach(h5, labels, 0, "/state/step");
    h5_describe(h5, "/state/x", NULL, "the batch of each step: step, sample, then H W C");
    h5_describe(h5, labels, NULL,
                graph_targets(graph) ? "what each number of the output is to be, of each step: step, sample, then H W C"
                                     : "class of each sample, or of each of its rows, of each step");
}

void record_state_layout(struct h5 *h5, const struct job *job)
{
    char path[512];
    hsize_t extent[SHAPE_RANK_MAX];
    h5_group(h5, "/state");
    layout_batches(h5, job->graph);
    for (size_t m = 0; m < sizeof moments / sizeof *moments; m++) {
        const struct parameter *tensor;
        const int count = tensors_of(job->graph, &moments[m], &tensor);
        snprintf(path, sizeof path, "/state/%s", moments[m].name);
        if (!moments[m].running && is_kept(job, &moments[m])) h5_group(h5, path);
        for (int i = 0; i < count; i++) {
            if (!has_values(job, &moments[m], &tensor[i])) continue;
            int rank = extent_of(&tensor[i].definition.shape, extent);
            h5_array(h5, tensor_path(path, moments[m].name, &tensor[i]), NUMBER_F32, rank, extent, NULL);
        }
    }
}

/* In slices along the first dimension, through host memory. */
static void write_tensor(struct h5 *h5, const struct job *job, const char *path, const struct parameter *p,
                         const float *values)
{
    const hsize_t rows = (hsize_t)p->definition.shape.dim[0], row = (hsize_t)p->elements / rows;
    const hsize_t most = row * sizeof(float) < SLICE_BYTES ? SLICE_BYTES / (row * sizeof(float)) : 1;
    freed_auto float *slice = allocate((size_t)((most < rows ? most : rows) * row), sizeof *slice);
    for (hsize_t first = 0; first < rows; first += most) {
        const hsize_t count = rows - first < most ? rows - first : most;
        job->backend->kind->download(job->backend, slice, values + first * row, (size_t)(count * row) * sizeof *slice);
        h5_write_rows(h5, path, first, count, slice);
    }
}

void record_state_tensors(struct h5 *h5, const struct job *job, bool after, struct executor *exec)
{
    char path[512];
    for (const struct moment *m = moments; m < moments + sizeof moments / sizeof *moments; m++) {
        const struct parameter *tensor;
        const int count = tensors_of(job->graph, m, &tensor);
        if (m->after != after) continue;
        for (int i = 0; i < count && !h5->broken; i++)
            if (has_values(job, m, &tensor[i]))
                write_tensor(h5, job, tensor_path(path, m->name, &tensor[i]), &tensor[i], m->values(exec, i));
        h5_flush(h5);
    }
}

void record_state_batch(struct h5 *h5, const struct graph *graph, uint32_t step, const float *x, const int32_t *labels)
{
    h5_append(h5, "/state/x", x);
    h5_append(h5, labels_path(graph), labels);
    h5_append(h5, "/state/step", &step);
}
