#include "device.cuh"
#include "kernels.h"

/* Where a row is: its elements lie rows.pixels floats apart. */
__device__ static int64_t first_of(struct labelled rows, int64_t n)
{
    return n / rows.pixels * rows.pixels * rows.classes + n % rows.pixels;
}

/* The first place of the largest of a row, whose elements lie stride apart; equal for all lanes. */
__device__ static int64_t largest_of(const float *x, int64_t count, int64_t stride)
{
    int64_t place = lane();
    if (place >= count) place = 0;
    for (int64_t j = place + WARP; j < count; j += WARP)
        if (x[j * stride] > x[place * stride]) place = j;
    for (int step = WARP / 2; step > 0; step /= 2) {
        const int64_t other = __shfl_xor_sync(0xffffffffu, place, step);
        const float mine = x[place * stride], theirs = x[other * stride];
        if (theirs > mine || (theirs == mine && other < place)) place = other;
    }
    return place;
}

__device__ static double exponential_sum(const float *x, int64_t count, int64_t stride, double most)
{
    double sum = 0;
    for (int64_t j = lane(); j < count; j += WARP) sum += exp(x[j * stride] - most);
    return warp_sum(sum);
}

/* A row's loss, and whether it is predicted. */
struct term {
    double loss, correct;
};

__global__ static void entropies(struct labelled rows, struct term *terms)
{
    const int64_t classes = rows.classes;
    for (int64_t n = warp_first(); n < rows.rows; n += warp_stride()) {
        const float *row = rows.x + first_of(rows, n);
        const int64_t place = largest_of(row, classes, rows.pixels), label = rows.labels[n];
        const double most = row[place * rows.pixels], sum = exponential_sum(row, classes, rows.pixels, most);
        if (lane() > 0) continue;
        const bool known = label >= 0 && label < classes;
        if (label == NO_LABEL) {
            terms[n] = {0, 0};
            continue;
        }
        terms[n] = {known ? log(sum) + most - row[label * rows.pixels] : (double)NAN, place == label ? 1.0 : 0.0};
    }
}

/* One warp. */
__global__ static void total(struct labelled rows, const struct term *terms, float *y)
{
    double loss = 0, correct = 0;
    for (int64_t n = lane(); n < rows.rows; n += WARP) {
        loss += terms[n].loss;
        correct += terms[n].correct;
    }
    loss = warp_sum(loss);
    correct = warp_sum(correct);
    if (lane() > 0) return;
    y[0] = *rows.divisor > 0 ? (float)(loss / *rows.divisor) : 0.0f;
    y[1] = (float)correct;
}

void launch_cross_entropy(cudaStream_t stream, struct labelled rows, void *scratch, float *y)
{
    struct term *terms = (struct term *)scratch;
    LAUNCH(entropies, blocks_for_rows(rows.rows), THREADS, stream, rows, terms);
    LAUNCH(total, 1, WARP, stream, rows, terms, y);
}

__global__ static void softmax_less_label(struct labelled rows, float *dx)
{
    const int64_t classes = rows.classes;
    for (int64_t n = warp_first(); n < rows.rows; n += warp_stride()) {
        const float *row = rows.x + first_of(rows, n);
        const int32_t label = rows.labels[n];
        const double most = row[largest_of(row, classes, rows.pixels) * rows.pixels];
        const double sum = exponential_sum(row, classes, rows.pixels, most);
        for (int64_t j = lane(); j < classes; j += WARP) {
            const double share = exp(row[j * rows.pixels] - most) / sum;
            const double slope = (share - (j == label ? 1.0 : 0.0)) / *rows.divisor;
            dx[first_of(rows, n) + j * rows.pixels] = label == NO_LABEL ? 0.0f : (float)slope;
        }
    }
}

void launch_cross_entropy_gradient(cudaStream_t stream, struct labelled rows, float *dx)
{
    LAUNCH(softmax_less_label, blocks_for_rows(rows.rows), THREADS, stream, rows, dx);
}
