#include "image.h"

static const char *const normalize_words[] = {"none", "unit", "standard", NULL};

#define AT(member) offsetof(struct dataset_settings, member)

const struct setting image_keys[] = {
    {"path", SETTING_PATH, AT(path), 0, 0, "", NULL, "folder of the files; unset: searched for"},
    {"samples", SETTING_INT, AT(samples), 1, 1 << 30, "0", NULL,
     "the first so many images of each file alone, for training and for tests; unset: all"},
    {"resize", SETTING_INT, AT(resize), 0, IMAGE_SIDE_MAX, "0", NULL, "side after bilinear resize, 0: as they are"},
    {"normalize", SETTING_CHOICE, AT(normalize), 0, 0, "standard", normalize_words,
     "pixels as 0..255, as 0..1, or with mean 0 and deviation 1 by channel"},
    {"shuffle", SETTING_BOOL, AT(shuffle), 0, 0, "true", NULL, "another order every epoch"},
    {0},
};

void image_format(struct dataset *dataset, int64_t channels, int64_t height, int64_t width,
                  const struct image_statistics *statistics, struct image_format *format)
{
    int64_t side = dataset->settings.resize;
    *format = (struct image_format){channels, height, width, side ? side : height, side ? side : width, {0}, {0}};
    for (int64_t c = 0; c < channels; c++) {
        double scale = 1, shift = 0;
        if (dataset->settings.normalize != NORMALIZE_NONE) scale = 1.0 / 255;
        if (dataset->settings.normalize == NORMALIZE_STANDARD) {
            scale /= statistics->deviation[c];
            shift = -statistics->mean[c] / statistics->deviation[c];
        }
        format->scale[c] = (float)scale;
        format->shift[c] = (float)shift;
    }
    dataset->shape = (struct shape){3, {format->to_height, format->to_width, channels}};
}

/* The two source pixels on either side of an output pixel, and its relative distance from the first. */
struct between {
    int64_t first, second;
    float part;
};

static struct between locate(int64_t place, int64_t to, int64_t from)
{
    double at = ((double)place + 0.5) * (double)from / (double)to - 0.5;
    if (at < 0) at = 0;
    if (at > (double)(from - 1)) at = (double)(from - 1);
    int64_t first = (int64_t)at;
    return (struct between){first, first + 1 < from ? first + 1 : first, (float)(at - (double)first)};
}

static float mix(float a, float b, float part) { return a + (b - a) * part; }

void image_deliver(const struct image_format *format, const uint8_t *planes, float *x)
{
    struct between column[IMAGE_SIDE_MAX];
    for (int64_t j = 0; j < format->to_width; j++) column[j] = locate(j, format->to_width, format->width);
    for (int64_t i = 0; i < format->to_height; i++) {
        struct between row = locate(i, format->to_height, format->height);
        for (int64_t c = 0; c < format->channels; c++) {
            const uint8_t *above = planes + (c * format->height + row.first) * format->width;
            const uint8_t *below = planes + (c * format->height + row.second) * format->width;
            float *out = x + i * format->to_width * format->channels + c;
            for (int64_t j = 0; j < format->to_width; j++) {
                const struct between *at = &column[j];
                float left = mix(above[at->first], below[at->first], row.part);
                float right = mix(above[at->second], below[at->second], row.part);
                out[j * format->channels] = mix(left, right, at->part) * format->scale[c] + format->shift[c];
            }
        }
    }
}
