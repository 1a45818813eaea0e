/* Small networks that together contain every structure that planning must handle. */
#pragma once

#include "backend/network.h"

struct net {
    const char *name;
    /* Adds all but the loss to a graph whose value 0 has the given shape; returns the last value. */
    int (*build)(struct graph *graph);
    struct shape input;
    int64_t batch, classes;
};

/* Ended by a NULL name: a chain with groups and dropout, residual blocks with relu on both arms, VGG16's list at a
 * sixteenth of its width on 32x32 images, a transformer with two encoders, which reads sentences, channels joined over
 * skips, a residual block with batch_norm, an inverted residual, a decoder with a label for every token, and layers
 * that are not trained before and between those that are. */
extern const struct net nets[];

/* Not among them: a shortcut around 70 nodes in groups, all one stage; one around ten, each a group; relus before max
 * pools whose windows overlap, one of them in an arm, so that its gradient is the shortcut's too; and convolutions
 * behind a batch norm; and the decoder with rotary positions and grouped queries, which cuda has not. */
extern const struct net deep_net, divided_net, pooled_net, fronted_net, rotary_net;

/* Nor these: every elementwise layer, gates, products and norms; images as sequences and larger images; or attention
 * to another sequence, with layers that a device has no kernels for. */
extern const struct net gated_net, vision_net, latent_net;

/* Nor these: auxiliary losses of images; and of a decoder whose last loss is in chunks. A device has neither. */
extern const struct net headed_net, early_net;

/* Nor this: a decoder with its loss in chunks, which a device has not either. */
extern const struct net chunked_net;

/* Nor these, ended by a NULL name: one for each loss that a device has not. */
extern const struct net loss_nets[];

/* Nor this: nets[7], whose last weight is the embedding's table. */
extern const struct net tied_net;

/* Nor this: nets[5], with statistics of each slice alone. */
extern const struct net accumulated_net;

/* The whole graph with its cross entropy; relu_save as in the spec. Fails the test on any error. */
struct graph *net_build(const struct net *net, enum relu_save relu_save);

/* The graph bound to a backend. */
struct bound_net {
    struct backend *backend;
    struct graph *graph;
    struct network *network;
};

/* To `ref` with one thread, or to another. Fails the test on any error. */
struct bound_net net_bind(const struct net *net, enum relu_save relu_save);
struct bound_net net_bind_to(const char *backend, const struct backend_options *options, const struct net *net,
                             enum relu_save relu_save);
/* Labels of the graph's batch, whose first sample has that number, at a step; some have none where there are several a
 * sample. Or its targets. */
void net_labels(const struct graph *graph, int64_t first, uint32_t step, int64_t classes, int32_t *labels);
void net_release(struct bound_net *bound);
