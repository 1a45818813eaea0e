#include "numerics/sum_of_squares.h"

enum { LANES = 16, PIECE = 16 * 1024, PIECES_AT_ONCE = 2048, PIECES_WORTH_A_THREAD = 4 };

/* Two loops, the first only of conversions, so that the compiler vectorises them. */
static void add_squares(double lane[LANES], const float *x)
{
    double wide[LANES];
    for (int j = 0; j < LANES; j++) wide[j] = (double)x[j];
    for (int j = 0; j < LANES; j++) lane[j] += wide[j] * wide[j];
}

static double piece_sum(const float *x, size_t count)
{
    double lane[LANES] = {0}, sum = 0;
    const size_t whole = count - count % LANES;
    for (size_t i = 0; i < whole; i += LANES) add_squares(lane, x + i);
    for (size_t j = 0; j < count - whole; j++) lane[j] += (double)x[whole + j] * (double)x[whole + j];
    for (int j = 0; j < LANES; j++) sum += lane[j];
    return sum;
}

double sum_of_squares(const float *x, size_t count, int threads) { return sum_of_squares_from(0, x, count, threads); }

double sum_of_squares_from(double total, const float *x, size_t count, int threads)
{
    const size_t pieces = count / PIECE + (count % PIECE != 0);
    for (size_t done = 0; done < pieces; done += PIECES_AT_ONCE) {
        double sum[PIECES_AT_ONCE];
        const size_t now = pieces - done < PIECES_AT_ONCE ? pieces - done : PIECES_AT_ONCE;
#pragma omp parallel for schedule(dynamic, PIECES_WORTH_A_THREAD)                                                      \
    num_threads(threads > 1 ? threads : 1) if (now >= PIECES_WORTH_A_THREAD)
        for (size_t i = 0; i < now; i++) {
            const size_t from = (done + i) * PIECE, left = count - from;
            sum[i] = piece_sum(x + from, left < PIECE ? left : PIECE);
        }
        for (size_t i = 0; i < now; i++) total += sum[i];
    }
    return total;
}
