#include "device.cuh"
#include "kernels.h"

/* The first place of the largest of a row; equal for all lanes. */
__device__ static int64_t largest_of(const float *x, int64_t count)
{
    int64_t place = lane();
    if (place >= count) place = 0;
    for (int64_t j = place + WARP; j < count; j += WARP)
        if (x[j] > x[place]) place = j;
    for (int step = WARP / 2; step > 0; step /= 2) {
        const int64_t other = __shfl_xor_sync(0xffffffffu, place, step);
        if (x[other] > x[place] || (x[other] == x[place] && other < place)) place = other;
    }
    return place;
}

__device__ static double exponential_sum(const float *x, int64_t count, double most)
{
    double sum = 0;
    for (int64_t j = lane(); j < count; j += WARP) sum += exp(x[j] - most);
    return warp_sum(sum);
}

/* A sample's loss, and whether it is predicted. */
struct term {
    double loss, correct;
};

__global__ static void entropies(const float *x, const int32_t *labels, int64_t batch, int64_t classes,
                                 struct term *terms)
{
    for (int64_t n = warp_first(); n < batch; n += warp_stride()) {
        const float *row = x + n * classes;
        const int64_t place = largest_of(row, classes), label = labels[n];
        const double most = row[place], sum = exponential_sum(row, classes, most);
        if (lane() > 0) continue;
        const bool known = label >= 0 && label < classes;
        terms[n] = {known ? log(sum) + most - row[label] : (double)NAN, place == label ? 1.0 : 0.0};
    }
}

/* One warp. */
__global__ static void total(const struct term *terms, int64_t batch, int64_t mean_over, float *y)
{
    double loss = 0, correct = 0;
    for (int64_t n = lane(); n < batch; n += WARP) {
        loss += terms[n].loss;
        correct += terms[n].correct;
    }
    loss = warp_sum(loss);
    correct = warp_sum(correct);
    if (lane() > 0) return;
    y[0] = (float)(loss / (double)mean_over);
    y[1] = (float)correct;
}

void launch_cross_entropy(cudaStream_t stream, const float *x, const int32_t *labels, int64_t batch, int64_t classes,
                          int64_t mean_over, void *scratch, float *y)
{
    struct term *terms = (struct term *)scratch;
    LAUNCH(entropies, blocks_for_rows(batch), THREADS, stream, x, labels, batch, classes, terms);
    LAUNCH(total, 1, WARP, stream, terms, batch, mean_over, y);
}

__global__ static void softmax_less_label(const float *x, const int32_t *labels, int64_t batch, int64_t classes,
                                          int64_t mean_over, float *dx)
{
    for (int64_t n = warp_first(); n < batch; n += warp_stride()) {
        const float *row = x + n * classes;
        const double most = row[largest_of(row, classes)], sum = exponential_sum(row, classes, most);
        for (int64_t j = lane(); j < classes; j += WARP) {
            const double share = exp(row[j] - most) / sum;
            dx[n * classes + j] = (float)((share - (j == labels[n] ? 1.0 : 0.0)) / (double)mean_over);
        }
    }
}

void launch_cross_entropy_gradient(cudaStream_t stream, const float *x, const int32_t *labels, int64_t batch,
                                   int64_t classes, int64_t mean_over, float *dx)
{
    LAUNCH(softmax_less_label, blocks_for_rows(batch), THREADS, stream, x, labels, batch, classes, mean_over, dx);
}
