#include "winograd_tiles.h"

#include "winograd_transforms.h"

/* Channels in a vector. */
static inline int64_t step_of(const struct image *image) { return lesser(LANES, image->channels); }

/* A square of side pixels as it lies in an image: bits of the rows and columns inside it, and distances. */
struct square {
    int64_t start, row, pixel;
    unsigned rows, columns;
    bool whole;
};

/* Bits of those of side rows or columns, from first on, that are among pixels. */
static inline unsigned inside(int64_t first, int64_t side, int64_t pixels)
{
    const int64_t none = first < 0 ? lesser(-first, side) : 0, end = lesser(side, pixels - first);
    return end <= none ? 0 : (1U << end) - (1U << none);
}

static inline struct square square_at(const struct image *image, struct tile at, int side)
{
    struct square s = {.row = image->width * image->channels, .pixel = image->channels};
    s.start = at.sample * image->sample + at.y * s.row + at.x * s.pixel;
    s.rows = inside(at.y, side, image->height), s.columns = inside(at.x, side, image->width);
    s.whole = s.rows == (1U << side) - 1 && s.columns == s.rows;
    return s;
}

INLINED bool is_inside(const struct square *s, int i, int j) { return s->rows >> i & s->columns >> j & 1; }

/* count channels of pixel (i, j). all: they are LANES, and every pixel is inside. */
INLINED lanes pixel_load(const struct square *s, const float *data, int i, int j, int64_t count, bool all)
{
    const float *from = data + i * s->row + j * s->pixel;
    return all ? lanes_load(from) : lanes_load_part(from, is_inside(s, i, j) ? count : 0);
}

/* Starts to load the pixels that the next tile adds to rows rows: it lies to the right. Their lines are too far apart
 * for the processor to do so by itself. */
INLINED void fetch_next(const struct square *s, const float *data, int rows, bool write)
{
    for (int i = 0; i < rows; i++)
        for (int j = TILE; j < 2 * TILE; j++)
            if (write)
                __builtin_prefetch(data + i * s->row + j * s->pixel, 1);
            else
                __builtin_prefetch(data + i * s->row + j * s->pixel);
}

INLINED void patch_points(const struct square *s, const float *data, int64_t count, bool all, float *v, int64_t stride)
{
    lanes m[PATCH][PATCH], d[PATCH], r[PATCH];
    fetch_next(s, data + 2 * s->pixel, PATCH, false);
    for (int j = 0; j < PATCH; j++) {
        for (int i = 0; i < PATCH; i++) d[i] = pixel_load(s, data, i, j, count, all);
        transform_image(d, 1, r);
        for (int i = 0; i < PATCH; i++) m[i][j] = r[i];
    }
    for (int i = 0; i < PATCH; i++) {
        transform_image(m[i], 1, r);
        for (int j = 0; j < PATCH; j++) lanes_store(v + (i * PATCH + j) * stride, r[j]);
    }
}

void tile_image(const struct image *image, const float *x, struct tile patch, int64_t from, int64_t count, float *v,
                int64_t stride)
{
    const struct square s = square_at(image, patch, PATCH);
    const int64_t step = step_of(image);
    for (int64_t c = 0; c < count; c += step) {
        const int64_t some = lesser(step, count - c);
        const float *data = x + s.start + from + c;
        if (s.whole && some == LANES)
            patch_points(&s, data, LANES, true, v + c, stride);
        else
            patch_points(&s, data, some, false, v + c, stride);
    }
}

/* The points of step channels, of which count exist. */
INLINED void gradient_points(const struct square *s, const float *data, int64_t count, int64_t step, bool all, float *w,
                             int64_t stride, float *sums)
{
    lanes q[TILE][TILE], m[PATCH][TILE], r[PATCH], sum = {0};
    fetch_next(s, data, TILE, false);
    for (int j = 0; j < TILE; j++) {
        for (int i = 0; i < TILE; i++) q[j][i] = pixel_load(s, data, i, j, count, all);
        transform_gradient(q[j], 1, r);
        for (int i = 0; i < PATCH; i++) m[i][j] = r[i];
    }
    for (int i = 0; i < TILE; i++)
        for (int j = 0; j < TILE; j++) sum += q[j][i];
    lanes_store_part(sums, sum, step);
    for (int i = 0; i < PATCH; i++) {
        transform_gradient(m[i], 1, r);
        for (int j = 0; j < PATCH; j++) lanes_store_part(w + (i * PATCH + j) * stride, r[j], step);
    }
}

void tile_gradient(const struct image *image, const float *dy, struct tile tile, int64_t from, int64_t count, float *w,
                   int64_t stride, int64_t panel, float *sums)
{
    const struct square s = square_at(image, tile, TILE);
    const int64_t step = step_of(image);
    for (int64_t c = 0; c < count; c += step) {
        const int64_t some = lesser(step, count - c);
        const float *data = dy + s.start + from + c;
        float *to = w + c / PANEL * panel + c % PANEL;
        if (s.whole && some == LANES)
            gradient_points(&s, data, LANES, LANES, true, to, stride, sums + c);
        else
            gradient_points(&s, data, some, step, false, to, stride, sums + c);
    }
}

/* Writes count lanes. */
INLINED void result_pixels(const struct square *s, const float *m, int64_t stride, lanes bias, bool relu, int64_t count,
                           bool all, float *data)
{
    lanes q[TILE][PATCH], d[PATCH], r[TILE];
    fetch_next(s, data, TILE, true);
    for (int j = 0; j < PATCH; j++) {
        for (int i = 0; i < PATCH; i++) d[i] = lanes_load(m + (i * PATCH + j) * stride);
        transform_result(d, 1, r);
        for (int i = 0; i < TILE; i++) q[i][j] = r[i];
    }
    for (int i = 0; i < TILE; i++) {
        transform_result(q[i], 1, r);
        for (int j = 0; j < TILE; j++) {
            float *to = data + i * s->row + j * s->pixel;
            r[j] += bias;
            if (relu) r[j] = lanes_rectified(r[j]);
            if (all)
                lanes_store(to, r[j]);
            else if (is_inside(s, i, j))
                lanes_store_part(to, r[j], count);
        }
    }
}

void tile_result(const struct image *image, const float *m, int64_t stride, struct tile tile, int64_t from,
                 int64_t count, const float *bias, bool relu, float *y)
{
    const struct square s = square_at(image, tile, TILE);
    const int64_t step = step_of(image);
    for (int64_t c = 0; c < count; c += step) {
        const int64_t some = lesser(step, count - c);
        float *data = y + s.start + from + c;
        const lanes add = bias != NULL ? lanes_load_part(bias + from + c, some) : (lanes){0};
        if (s.whole && some == LANES)
            result_pixels(&s, m + c, stride, add, relu, LANES, true, data);
        else
            result_pixels(&s, m + c, stride, add, relu, some, false, data);
    }
}
