/* The one-dimensional transforms of Winograd F(4, 3) and F(2, 5) at 0, 5/8, -5/8, 3/2, -3/2 and infinity, in the order
 * of operations that winograd.h defines. Values lie stride vectors apart; the results one behind the other. tile (4 or
 * 2) and kernel (3 or 5) are constants of a call. */
#pragma once

#include "lanes.h"

/* Powers of a = 5/8 and b = 3/2 are exact; NORM_0 = 1 / (a b)^2, NORM_A = 1 / (2 a^2 (a^2 - b^2)), NORM_B the same with
 * a and b exchanged, and A_NORM_A = a NORM_A are rounded. */
#define A1       0.625f
#define A2       0.390625f
#define A3       0.244140625f
#define A4       0.152587890625f
#define B1       1.5f
#define B2       2.25f
#define B3       3.375f
#define B4       5.0625f
#define AB2      0.87890625f /* a^2 b^2 */
#define A2_B2    2.640625f   /* a^2 + b^2 */
#define NORM_0   ((float)(256.0 / 225.0))
#define NORM_A   ((float)(-2048.0 / 2975.0))
#define NORM_B   ((float)(128.0 / 1071.0))
#define A_NORM_A ((float)(-256.0 / 595.0))
#define B_NORM_B ((float)(64.0 / 357.0))

/* factor x + y. */
INLINED lanes scaled_sum(float factor, lanes x, lanes y) { return lanes_fma(lanes_all(factor), x, y); }

/* Six values of the image. */
INLINED void transform_image(const lanes *d, int stride, lanes *r)
{
    const lanes d0 = d[0], d1 = d[stride], d2 = d[2 * stride], d3 = d[3 * stride], d4 = d[4 * stride],
                d5 = d[5 * stride];
    const lanes ea = scaled_sum(-B2, d2, d4), oa = scaled_sum(-B2, d1, d3);
    const lanes eb = scaled_sum(-A2, d2, d4), ob = scaled_sum(-A2, d1, d3);
    r[0] = scaled_sum(AB2, d0, scaled_sum(-A2_B2, d2, d4));
    r[1] = scaled_sum(A1, oa, ea), r[2] = scaled_sum(-A1, oa, ea);
    r[3] = scaled_sum(B1, ob, eb), r[4] = scaled_sum(-B1, ob, eb);
    r[5] = scaled_sum(AB2, d1, scaled_sum(-A2_B2, d3, d5));
}

/* Six sums of products to the values of a tile. */
INLINED void transform_result(int tile, const lanes *m, int stride, lanes *r)
{
    const lanes m1 = m[stride], m2 = m[2 * stride], m3 = m[3 * stride], m4 = m[4 * stride];
    const lanes sa = m1 + m2, da = m1 - m2, sb = m3 + m4, db = m3 - m4;
    r[0] = (m[0] + sa) + sb;
    if (tile == 2) {
        r[1] = scaled_sum(B1, db, scaled_sum(A1, da, m[5 * stride]));
        return;
    }
    r[1] = scaled_sum(B1, db, lanes_all(A1) * da);
    r[2] = scaled_sum(B2, sb, lanes_all(A2) * sa);
    r[3] = scaled_sum(B3, db, scaled_sum(A3, da, m[5 * stride]));
}

INLINED void transform_weights(int kernel, const lanes *g, int stride, lanes *r)
{
    const lanes g0 = g[0], g1 = g[stride], g2 = g[2 * stride], last = g[(kernel - 1) * stride];
    lanes ea = scaled_sum(A2, g2, g0), eb = scaled_sum(B2, g2, g0), oa = g1, ob = g1;
    if (kernel == 5) {
        const lanes g3 = g[3 * stride];
        ea = scaled_sum(A4, last, ea), eb = scaled_sum(B4, last, eb);
        oa = scaled_sum(A2, g3, g1), ob = scaled_sum(B2, g3, g1);
    }
    ea *= lanes_all(NORM_A), oa *= lanes_all(A_NORM_A);
    eb *= lanes_all(NORM_B), ob *= lanes_all(B_NORM_B);
    r[0] = g0 * lanes_all(NORM_0);
    r[1] = ea + oa, r[2] = ea - oa;
    r[3] = eb + ob, r[4] = eb - ob;
    r[5] = last;
}

/* The values of a tile of the result's gradient: the transpose of transform_result(). */
INLINED void transform_gradient(int tile, const lanes *d, int stride, lanes *r)
{
    const lanes d0 = d[0], d1 = d[stride];
    r[0] = d0, r[5] = d[(tile - 1) * stride];
    if (tile == 2) {
        r[1] = scaled_sum(A1, d1, d0), r[2] = scaled_sum(-A1, d1, d0);
        r[3] = scaled_sum(B1, d1, d0), r[4] = scaled_sum(-B1, d1, d0);
        return;
    }
    const lanes d2 = d[2 * stride], d3 = r[5];
    const lanes ea = scaled_sum(A2, d2, d0), oa = scaled_sum(A3, d3, lanes_all(A1) * d1);
    const lanes eb = scaled_sum(B2, d2, d0), ob = scaled_sum(B3, d3, lanes_all(B1) * d1);
    r[1] = ea + oa, r[2] = ea - oa;
    r[3] = eb + ob, r[4] = eb - ob;
}

/* Six sums of products to the gradients of a row of weights: the transpose of transform_weights(). */
INLINED void transform_weights_gradient(int kernel, const lanes *m, int stride, lanes *r)
{
    const lanes m1 = m[stride], m2 = m[2 * stride], m3 = m[3 * stride], m4 = m[4 * stride], m5 = m[5 * stride];
    const lanes sa = (m1 + m2) * lanes_all(NORM_A), sb = (m3 + m4) * lanes_all(NORM_B);
    const lanes da = (m1 - m2) * lanes_all(A_NORM_A);
    r[0] = scaled_sum(NORM_0, m[0], sa + sb);
    r[1] = scaled_sum(B_NORM_B, m3 - m4, da);
    if (kernel == 3) {
        r[2] = scaled_sum(B2, sb, scaled_sum(A2, sa, m5));
        return;
    }
    r[2] = scaled_sum(B2, sb, lanes_all(A2) * sa);
    r[3] = scaled_sum(B2, (m3 - m4) * lanes_all(B_NORM_B), lanes_all(A2) * da);
    r[4] = scaled_sum(B4, sb, scaled_sum(A4, sa, m5));
}
