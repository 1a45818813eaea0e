/* How a pass of a convolution is done: algorithm, batch chunk, workspace. */
#ifndef REMATCH_CUDA_CONV_PLAN_H
#define REMATCH_CUDA_CONV_PLAN_H

#include "cuda/convolutions.h"

/* A pass, and what bounds it. */
struct conv_want {
    cudnnHandle_t cudnn;
    const struct conv_problem *problem;
    enum conv_pass pass;
    int64_t batch;
    enum conv_algorithm asked;
    size_t limit; /* bytes of workspace */
};

/* One way to do a pass: the batch in chunks of so many samples, the last one shorter where the batch is no multiple. */
struct conv_choice {
    int algorithm;
    cudnnMathType_t math; /* as it was offered */
    int64_t chunk;
    size_t workspace; /* bytes, the larger need of both sizes of chunk */
};

/* A choice, described. [0] works on a chunk, [1] on the rest of the batch. */
struct conv_plan {
    struct conv_choice choice;
    int64_t rest; /* samples; may be 0 */
    struct convolution call[2];
};

/* Lists the ways to do a pass, one for each algorithm, fastest first as cuDNN expects it: with the largest chunk whose
 * workspace keeps the limit or, where no chunk does, with the one that needs least. Returns their number. */
int conv_candidates(const struct conv_want *want, struct conv_choice choices[ALGORITHMS_MOST]);

/* Those of the candidates that timing may choose: the ones that keep the limit; where none does, the one that needs
 * least, which is what the rule takes. Returns their number. */
int conv_choices(const struct conv_want *want, struct conv_choice choices[ALGORITHMS_MOST]);

/* Chooses among the candidates by rule, and describes the choice. ST_FAILED: there is none. */
enum status cuda_conv_plan_make(const struct conv_want *want, struct conv_plan *plan);
/* Describes a choice that was made elsewhere, by measurement say, among the candidates. */
enum status conv_plan_take(const struct conv_want *want, const struct conv_choice *choice, struct conv_plan *plan);
void cuda_conv_plan_release(struct conv_plan *plan);

#endif
