#include "device.cuh"
#include "kernels.h"
#include "numerics/token_batch.h"

/* The numbers of a sample's tokens in a line of text. */
__device__ static const float *line_of(const float *text, int64_t tokens, int64_t sample, int line)
{
    return text + (sample * TOKEN_ROWS + line) * tokens;
}

__global__ static void look_up(struct embedding_shape shape, const float *text, const float *word,
                               const float *position, const float *segment, float *y)
{
    const int64_t tokens = shape.tokens, width = shape.width;
    for (int64_t i = thread_first(); i < shape.batch * tokens * width; i += thread_stride()) {
        const int64_t sample = i / width / tokens, token = i / width % tokens, at = i % width;
        const int64_t id = token_row(line_of(text, tokens, sample, TOKEN_IDS)[token], shape.words);
        const int64_t part = token_row(line_of(text, tokens, sample, TOKEN_SEGMENTS)[token], shape.segments);
        y[i] = word[id * width + at] + position[token * width + at] + segment[part * width + at];
    }
}

void launch_embedding(cudaStream_t stream, struct embedding_shape shape, const float *text, const float *word,
                      const float *position, const float *segment, float *y)
{
    LAUNCH(look_up, blocks_for(shape.batch * shape.tokens * shape.width), THREADS, stream, shape, text, word, position,
           segment, y);
}

/* A warp has WARP columns of a row: it looks for the row among WARP tokens at a time and adds dy of those that have
 * it. */
__global__ static void gather_row(struct embedding_shape shape, const float *text, int line, int64_t rows,
                                  const float *dy, float *gradient)
{
    const int64_t tokens = shape.tokens, width = shape.width, panels = (width + WARP - 1) / WARP;
    for (int64_t task = warp_first(); task < rows * panels; task += warp_stride()) {
        const int64_t row = task / panels, at = task % panels * WARP + lane();
        float sum = 0;
        for (int64_t n = 0; n < shape.batch; n++) {
            const float *number = line_of(text, tokens, n, line), *slope = dy + n * tokens * width;
            for (int64_t first = 0; first < tokens; first += WARP) {
                const int64_t mine = first + lane(), last = first + WARP < tokens ? first + WARP : tokens;
                if (warp_sum((int)(mine < tokens && token_row(number[mine], rows) == row)) == 0) continue;
                for (int64_t t = first; t < last; t++)
                    if (at < width && token_row(number[t], rows) == row) sum += slope[t * width + at];
            }
        }
        if (at < width) gradient[row * width + at] = sum;
    }
}

void launch_embedding_gradient(cudaStream_t stream, struct embedding_shape shape, const float *text, int line,
                               int64_t rows, const float *dy, float *gradient)
{
    LAUNCH(gather_row, blocks_for_rows(rows * ((shape.width + WARP - 1) / WARP)), THREADS, stream, shape, text, line,
           rows, dy, gradient);
}
