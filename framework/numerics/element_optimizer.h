/* The update of one element by each optimizer, for C and CUDA.
 *
 * Contract: float arithmetic in the order written here, every product and sum rounded, so that equal operands give
 * equal bits on any machine. */
#pragma once

#include <math.h>

#include "numerics/everywhere.h"

/* The inputs of an update besides tensors, computed in double for each step and rounded to float. */
struct optimizer_numbers {
    float rate;         /* of the step: the learning rate; Adam's is over the first moment's bias, 1 - beta1^t */
    float scale;        /* of the gradient: 1, less where it is clipped */
    float decay;        /* times the parameter, added to the gradient */
    float keep;         /* of the parameter: 1, less where decay is decoupled from the gradient */
    float momentum;     /* SGD */
    int nesterov;       /* 0 or 1; an int leaves no gap, so that bytes can be compared */
    float beta1, rest1; /* rest: 1 - beta */
    float beta2, rest2;
    float second; /* 1 / sqrt(1 - beta2^t): against the second moment's bias */
    float epsilon;
    float average, latest; /* shares of the averages and of the parameters in new averages */
};

/* The factor for gradients whose L2 norm, all together, is norm and may be at most clip (0: unlimited; Pascanu et al.,
 * "On the difficulty of training recurrent neural networks", 2013), with the 1e-6 of torch.nn.utils.clip_grad_norm_. */
EVERYWHERE double optimizer_clip(double clip, double norm) { return clip > 0 ? fmin(1.0, clip / (norm + 1e-6)) : 1; }

/* p -= rate g */
EVERYWHERE void sgd_element(struct optimizer_numbers n, float *p, float g)
{
    *p -= n.rate * (n.scale * g + n.decay * *p);
}

/* v = momentum v + g;  p -= rate v, or as Nesterov rate (g + momentum v) */
EVERYWHERE void momentum_element(struct optimizer_numbers n, float *p, float g, float *v)
{
    g = n.scale * g + n.decay * *p;
    *v = n.momentum * *v + g;
    *p -= n.rate * (n.nesterov ? g + n.momentum * *v : *v);
}

/* m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  p = keep p - rate m / (sqrt(v) second + epsilon) */
EVERYWHERE void adam_element(struct optimizer_numbers n, float *p, float g, float *m, float *v)
{
    g = n.scale * g + n.decay * *p;
    *m = n.beta1 * *m + n.rest1 * g;
    *v = n.beta2 * *v + n.rest2 * (g * g);
    *p = n.keep * *p - n.rate * *m / (sqrtf(*v) * n.second + n.epsilon);
}

/* a = average a + latest p, of the parameter after its update */
EVERYWHERE void average_element(struct optimizer_numbers n, float *a, float p) { *a = n.average * *a + n.latest * p; }
