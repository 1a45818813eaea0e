#include "winograd_tiles.h"

#include "places.h"
#include "winograd_transforms.h"

/* Channels in a vector. */
static inline int64_t step_of(const struct image *image) { return lesser(LANES, image->channels); }

/* A square or rectangle of pixels as it lies in an image: bits of the rows and columns inside it, and distances. */
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

static inline struct square rectangle_at(const struct image *image, struct tile at, int high, int wide)
{
    struct square s = {.row = image->width * image->channels, .pixel = image->channels};
    s.start = at.sample * image->sample + at.y * s.row + at.x * s.pixel;
    s.rows = inside(at.y, high, image->height), s.columns = inside(at.x, wide, image->width);
    s.whole = s.rows == (1U << high) - 1 && s.columns == (1U << wide) - 1;
    return s;
}

static inline struct square square_at(const struct image *image, struct tile at, int side)
{
    return rectangle_at(image, at, side, side);
}

INLINED bool is_inside(const struct square *s, int i, int j) { return s->rows >> i & s->columns >> j & 1; }

/* What of a square's pixels exists: LANES channels of each, count channels of each, or count channels of some. */
enum cover { COVER_ALL, COVER_CHANNELS, COVER_SOME };

static inline enum cover cover_of(const struct square *s, int64_t count)
{
    return !s->whole ? COVER_SOME : count < LANES ? COVER_CHANNELS : COVER_ALL;
}

INLINED lanes pixel_load(const struct square *s, const float *data, int i, int j, int64_t count, enum cover cover)
{
    const float *from = data + i * s->row + j * s->pixel;
    if (cover == COVER_ALL) return lanes_load(from);
    return lanes_load_part(from, cover == COVER_CHANNELS || is_inside(s, i, j) ? count : 0);
}

/* Starts to load the pixels that the next tile adds to rows rows: it lies to the right. Their lines are too far apart
 * for the processor to do so by itself. */
INLINED void fetch_next(const struct square *s, const float *data, int side, int rows, bool write)
{
    for (int i = 0; i < rows; i++)
        for (int j = side; j < 2 * side; j++)
            if (write)
                __builtin_prefetch(data + i * s->row + j * s->pixel, 1);
            else
                __builtin_prefetch(data + i * s->row + j * s->pixel);
}

/* The windows that a tile or a patch touches: a square of side pixels of the pooled image. odd: it begins with a
 * window's second row and column. */
struct windows {
    struct square s;
    int odd, side;
};

static inline struct windows windows_at(const struct image *image, struct tile at, int side)
{
    struct windows w = {.odd = (int)(at.y & 1)};
    w.side = (side + w.odd + 1) / WINDOW;
    w.s = square_at(image, (struct tile){at.sample, (at.y - w.odd) / WINDOW, (at.x - w.odd) / WINDOW}, w.side);
    return w;
}

/* The gradient of the image before the pool at those windows. */
struct unpooled {
    lanes pixel[4 * WINDOW][4 * WINDOW];
};

INLINED void unpool(const struct windows *w, int side, const float *dy, const uint8_t *places, int64_t count,
                    enum cover cover, struct unpooled *u)
{
    for (int i = 0; i < side; i++) {
        const int64_t next = i * w->s.row + side * w->s.pixel; /* as fetch_next() does */
        __builtin_prefetch(dy + next), __builtin_prefetch(dy + next + w->s.pixel), __builtin_prefetch(places + next);
        for (int j = 0; j < side; j++) {
            const uint8_t *at = places + i * w->s.row + j * w->s.pixel;
            const lanes v = pixel_load(&w->s, dy, i, j, count, cover) + (lanes){0};
            const lane_bits place = places_load(at, cover == COVER_ALL ? LANES : is_inside(&w->s, i, j) ? count : 0);
            for (int k = 0; k < PLACE_NONE; k++)
                u->pixel[i * WINDOW + k / WINDOW][j * WINDOW + k % WINDOW] = lanes_keep(v, place == lane_bits_all(k));
        }
    }
}

/* Tiles side by side whose patches are transformed together: those of 2x2 pixels share most of their columns. */
enum { RUN_MOST = 8, COLUMNS_MOST = (RUN_MOST - 1) * 2 + PATCH };
INLINED int run_of(int side) { return side == 2 ? RUN_MOST : 1; }
INLINED int columns_of(int side, int tiles) { return (tiles - 1) * side + PATCH; }

/* The points of tiles tiles, at most run_of(side). */
INLINED void patch_points(int side, const struct square *s, const float *data, const struct unpooled *u, int odd,
                          int tiles, int64_t count, enum cover cover, float *v, int64_t next, int64_t stride)
{
    const int columns = columns_of(side, tiles);
    lanes m[PATCH][COLUMNS_MOST], d[PATCH], r[PATCH];
    if (u == NULL) fetch_next(s, data + (columns - side * tiles) * s->pixel, side * tiles, PATCH, false);
    for (int j = 0; j < columns; j++) {
        for (int i = 0; i < PATCH; i++)
            d[i] = u != NULL ? u->pixel[i + odd][j + odd] : pixel_load(s, data, i, j, count, cover);
        transform_image(d, 1, r);
        for (int i = 0; i < PATCH; i++) m[i][j] = r[i];
    }
    for (int t = 0; t < tiles; t++, v += next)
        for (int i = 0; i < PATCH; i++) {
            transform_image(m[i] + t * side, 1, r);
            for (int j = 0; j < PATCH; j++) lanes_store(v + (i * PATCH + j) * stride, r[j]);
        }
}

static __attribute__((noinline)) void unpooled_points(const struct windows *w, const float *dy, const uint8_t *places,
                                                      int64_t count, float *v, int64_t stride)
{
    struct unpooled u;
    if (w->s.whole && w->side == 4 && count == LANES)
        unpool(w, 4, dy, places, LANES, COVER_ALL, &u);
    else
        unpool(w, w->side, dy, places, count, COVER_SOME, &u);
    patch_points(TILE_MOST, NULL, NULL, &u, w->odd, 1, count, COVER_SOME, v, 0, stride);
}

static void unpooled_image(const struct image *image, const float *x, const uint8_t *places, struct tile patch,
                           int64_t from, int64_t count, float *v, int64_t stride)
{
    const struct windows w = windows_at(image, patch, PATCH);
    const int64_t step = step_of(image), at = w.s.start + from;
    for (int64_t c = 0; c < count; c += step)
        unpooled_points(&w, x + at + c, places + at + c, lesser(step, count - c), v + c, stride);
}

INLINED void run_points(int side, int tiles, const struct image *image, const float *x, struct tile patch, int64_t from,
                        int64_t count, float *v, int64_t next, int64_t stride)
{
    const struct square s = rectangle_at(image, patch, PATCH, columns_of(side, tiles));
    const int64_t step = step_of(image);
    for (int64_t c = 0; c < count; c += step) {
        const int64_t some = lesser(step, count - c);
        const float *data = x + s.start + from + c;
        const enum cover cover = cover_of(&s, some);
        if (cover == COVER_ALL)
            patch_points(side, &s, data, NULL, 0, tiles, LANES, COVER_ALL, v + c, next, stride);
        else if (cover == COVER_CHANNELS)
            patch_points(side, &s, data, NULL, 0, tiles, some, COVER_CHANNELS, v + c, next, stride);
        else
            patch_points(side, &s, data, NULL, 0, tiles, some, COVER_SOME, v + c, next, stride);
    }
}

void tile_images(int side, const struct image *image, const float *x, const uint8_t *places, struct tile patch,
                 int64_t tiles, int64_t from, int64_t count, float *v, int64_t next, int64_t stride)
{
    const int64_t most = places != NULL ? 1 : run_of(side);
    for (int64_t t = 0; t < tiles; t += most, v += most * next, patch.x += most * side)
        if (places != NULL)
            unpooled_image(image, x, places, patch, from, count, v, stride);
        else if (side == 4)
            run_points(4, 1, image, x, patch, from, count, v, next, stride);
        else
            run_points(2, (int)lesser(most, tiles - t), image, x, patch, from, count, v, next, stride);
}

/* The points of step channels, of which count exist. */
INLINED void gradient_points(int side, const struct square *s, const float *data, const struct unpooled *u,
                             int64_t count, int64_t step, enum cover cover, float *w, int64_t stride, float *sums)
{
    lanes q[TILE_MOST][TILE_MOST], m[PATCH][TILE_MOST], r[PATCH], sum = {0};
    if (u == NULL) fetch_next(s, data, side, side, false);
    for (int j = 0; j < side; j++) {
        for (int i = 0; i < side; i++) q[j][i] = u != NULL ? u->pixel[i][j] : pixel_load(s, data, i, j, count, cover);
        transform_gradient(side, q[j], 1, r);
        for (int i = 0; i < PATCH; i++) m[i][j] = r[i];
    }
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++) sum += q[j][i];
    lanes_store_part(sums, sum, step);
    for (int i = 0; i < PATCH; i++) {
        transform_gradient(side, m[i], 1, r);
        for (int j = 0; j < PATCH; j++) lanes_store_part(w + (i * PATCH + j) * stride, r[j], step);
    }
}

INLINED void unpooled_gradient(int side, const struct windows *windows, const float *dy, const uint8_t *places,
                               int64_t count, int64_t step, float *w, int64_t stride, float *sums)
{
    struct unpooled u;
    if (windows->s.whole && count == LANES)
        unpool(windows, side / WINDOW, dy, places, LANES, COVER_ALL, &u);
    else
        unpool(windows, side / WINDOW, dy, places, count, COVER_SOME, &u);
    gradient_points(side, NULL, NULL, &u, count, step, COVER_SOME, w, stride, sums);
}

INLINED void gradient_of(int side, const struct image *image, const float *dy, const uint8_t *places, struct tile tile,
                         int64_t from, int64_t count, float *w, int64_t stride, int64_t panel, float *sums)
{
    const struct windows windows = places != NULL ? windows_at(image, tile, side) : (struct windows){.odd = 0};
    const struct square s = places != NULL ? windows.s : square_at(image, tile, side);
    const int64_t step = step_of(image);
    for (int64_t c = 0; c < count; c += step) {
        const int64_t some = lesser(step, count - c), at = s.start + from + c;
        const enum cover cover = cover_of(&s, some);
        float *to = w + c / PANEL * panel + c % PANEL;
        if (places != NULL)
            unpooled_gradient(side, &windows, dy + at, places + at, some, step, to, stride, sums + c);
        else if (cover == COVER_ALL)
            gradient_points(side, &s, dy + at, NULL, LANES, LANES, COVER_ALL, to, stride, sums + c);
        else if (cover == COVER_CHANNELS)
            gradient_points(side, &s, dy + at, NULL, some, step, COVER_CHANNELS, to, stride, sums + c);
        else
            gradient_points(side, &s, dy + at, NULL, some, step, COVER_SOME, to, stride, sums + c);
    }
}

void tile_gradient(int side, const struct image *image, const float *dy, const uint8_t *places, struct tile tile,
                   int64_t from, int64_t count, float *w, int64_t stride, int64_t panel, float *sums)
{
    if (side == 4)
        gradient_of(4, image, dy, places, tile, from, count, w, stride, panel, sums);
    else
        gradient_of(2, image, dy, places, tile, from, count, w, stride, panel, sums);
}

INLINED void result_columns(int side, const float *m, int64_t stride, lanes q[TILE_MOST][PATCH])
{
    lanes d[PATCH], r[TILE_MOST];
    for (int j = 0; j < PATCH; j++) {
        for (int i = 0; i < PATCH; i++) d[i] = lanes_load(m + (i * PATCH + j) * stride);
        transform_result(side, d, 1, r);
        for (int i = 0; i < side; i++) q[i][j] = r[i];
    }
}

/* Writes count lanes. */
INLINED void result_pixels(int side, const struct square *s, const float *m, int64_t stride, lanes bias, bool relu,
                           int64_t count, enum cover cover, float *data)
{
    lanes q[TILE_MOST][PATCH], r[TILE_MOST];
    fetch_next(s, data, side, side, true);
    result_columns(side, m, stride, q);
    for (int i = 0; i < side; i++) {
        transform_result(side, q[i], 1, r);
        for (int j = 0; j < side; j++) {
            float *to = data + i * s->row + j * s->pixel;
            r[j] += bias;
            if (relu) r[j] = lanes_rectified(r[j]);
            if (cover == COVER_ALL)
                lanes_store(to, r[j]);
            else if (cover == COVER_CHANNELS || is_inside(s, i, j))
                lanes_store_part(to, r[j], count);
        }
    }
}

INLINED void result_of(int side, const struct image *image, const float *m, int64_t stride, struct tile tile,
                       int64_t from, int64_t count, const float *bias, bool relu, float *y)
{
    const struct square s = square_at(image, tile, side);
    const int64_t step = step_of(image);
    for (int64_t c = 0; c < count; c += step) {
        const int64_t some = lesser(step, count - c);
        const enum cover cover = cover_of(&s, some);
        float *data = y + s.start + from + c;
        const lanes add = bias != NULL ? lanes_load_part(bias + from + c, some) : (lanes){0};
        if (cover == COVER_ALL)
            result_pixels(side, &s, m + c, stride, add, relu, LANES, COVER_ALL, data);
        else if (cover == COVER_CHANNELS)
            result_pixels(side, &s, m + c, stride, add, relu, some, COVER_CHANNELS, data);
        else
            result_pixels(side, &s, m + c, stride, add, relu, some, COVER_SOME, data);
    }
}

void tile_result(int side, const struct image *image, const float *m, int64_t stride, struct tile tile, int64_t from,
                 int64_t count, const float *bias, bool relu, float *y)
{
    if (side == 4)
        result_of(4, image, m, stride, tile, from, count, bias, relu, y);
    else
        result_of(2, image, m, stride, tile, from, count, bias, relu, y);
}

/* Writes count lanes of a window's largest element and its place. */
INLINED void window_store(lanes most, lane_bits place, bool relu, int64_t count, float *data, uint8_t *places)
{
    const lane_bits positive = most > (lanes){0};
    if (relu) {
        most = lanes_rectified(most);
        place = (place & positive) | (lane_bits_all(PLACE_NONE) & ~positive);
    }
    lanes_store_part(data, most, count);
    if (places != NULL) places_store(places, place, count);
}

INLINED void result_windows(int side, const struct square *s, const float *m, int64_t stride, lanes bias, bool relu,
                            int64_t count, float *data, uint8_t *places)
{
    lanes q[TILE_MOST][PATCH], r[WINDOW][TILE_MOST];
    result_columns(side, m, stride, q);
    for (int i = 0; i < side / WINDOW; i++) {
        for (int k = 0; k < WINDOW; k++) transform_result(side, q[i * WINDOW + k], 1, r[k]);
        for (int j = 0; j < side / WINDOW; j++) {
            const int64_t at = i * s->row + j * s->pixel;
            lanes most = r[0][j * WINDOW] + bias;
            lane_bits place = {0};
            for (int k = 1; k < PLACE_NONE; k++)
                place_compare(r[k / WINDOW][j * WINDOW + k % WINDOW] + bias, k, &most, &place);
            if (is_inside(s, i, j))
                window_store(most, place, relu, count, data + at, places != NULL ? places + at : NULL);
        }
    }
}

INLINED void pooled_result(int side, const struct image *image, const float *m, int64_t stride, struct tile tile,
                           int64_t from, int64_t count, const float *bias, bool relu, float *y, uint8_t *places)
{
    const struct square s = windows_at(image, tile, side).s;
    const int64_t step = step_of(image);
    for (int64_t c = 0; c < count; c += step) {
        const int64_t some = lesser(step, count - c), at = s.start + from + c;
        const lanes add = bias != NULL ? lanes_load_part(bias + from + c, some) : (lanes){0};
        uint8_t *const place = places != NULL ? places + at : NULL;
        if (some == LANES)
            result_windows(side, &s, m + c, stride, add, relu, LANES, y + at, place);
        else
            result_windows(side, &s, m + c, stride, add, relu, some, y + at, place);
    }
}

void tile_pooled_result(int side, const struct image *image, const float *m, int64_t stride, struct tile tile,
                        int64_t from, int64_t count, const float *bias, bool relu, float *y, uint8_t *places)
{
    if (side == 4)
        pooled_result(4, image, m, stride, tile, from, count, bias, relu, y, places);
    else
        pooled_result(2, image, m, stride, tile, from, count, bias, relu, y, places);
}
