/* The file formats: delivered samples against pixels computed here, and refused files. */
#include "datasets/dataset.h"

#include "tests/support/dataset_files.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct dataset_settings settings(int64_t resize, int normalize)
{
    return (struct dataset_settings){.path = hand_made_folder(), .resize = resize, .normalize = normalize};
}

static struct dataset *open_good(const char *name, const struct dataset_settings *wanted)
{
    struct dataset *dataset;
    enum status status = dataset_open(name, wanted, 1, &dataset);
    cr_assert(status == ST_OK, "%s", status_message());
    return dataset;
}

/* The output pixel (row, column) of a side x side image: every source pixel, with the edge pixels repeated without end,
 * weighted with the tent max(0, 1 - distance) along both axes. */
static double tent(int f, int i, int c, const int size[2], int64_t side, int64_t row, int64_t column)
{
    double at[2] = {((double)row + 0.5) * size[0] / (double)side - 0.5,
                    ((double)column + 0.5) * size[1] / (double)side - 0.5};
    double sum = 0;
    for (int y = -1; y <= size[0]; y++)
        for (int x = -1; x <= size[1]; x++) {
            double weight = fmax(0, 1 - fabs(at[0] - y)) * fmax(0, 1 - fabs(at[1] - x));
            int inner_y = y < 0         ? 0
                          : y < size[0] ? y
                                        : size[0] - 1,
                inner_x = x < 0         ? 0
                          : x < size[1] ? x
                                        : size[1] - 1;
            if (weight > 0) sum += weight * hand_made_pixel(f, i, c, inner_y, inner_x);
        }
    return sum;
}

/* Every pixel of sample index of the split (image i of file f) against the tent, times scale plus shift. */
static void check_sample(struct dataset *dataset, enum split split, int64_t index, int f, int i, const int size[2],
                         const double *scale, const double *shift)
{
    int64_t side = dataset->settings.resize, height = side ? side : size[0], width = side ? side : size[1];
    int64_t channels = dataset->shape.dim[2];
    cr_assert(dataset->shape.rank == 3 && dataset->shape.dim[0] == height && dataset->shape.dim[1] == width);
    float *x = malloc((size_t)(height * width * channels) * sizeof *x);
    int32_t label;
    cr_assert(dataset->kind->sample(dataset, split, index, x, &label) == ST_OK);
    cr_assert(label == hand_made_label(f, i));
    for (int64_t row = 0; row < height; row++)
        for (int64_t column = 0; column < width; column++)
            for (int c = 0; c < channels && c < 3; c++) {
                double pixel =
                    side ? tent(f, i, c, size, side, row, column) : hand_made_pixel(f, i, c, (int)row, (int)column);
                double want = pixel * scale[c] + shift[c], got = (double)x[(row * width + column) * channels + c];
                cr_assert(fabs(got - want) < 2e-4 * scale[c] * 255, "%ld,%ld,%d: %g, not %g", (long)row, (long)column,
                          c, got, want);
            }
    free(x);
}

static const double one[] = {1, 1, 1}, none[] = {0, 0, 0};

Test(dataset_files, cifar10_delivers_records_channels_last)
{
    static const int size[] = {32, 32};
    struct dataset_settings raw = settings(0, NORMALIZE_NONE);
    struct dataset *dataset = open_good("cifar10", &raw);
    cr_assert(dataset->count[SPLIT_TRAIN] == 5 * HAND_CIFAR_RECORDS);
    cr_assert(dataset->count[SPLIT_TEST] == HAND_CIFAR_RECORDS);
    cr_assert(dataset->files == 6 && dataset->file[3].bytes == HAND_CIFAR_RECORDS * 3073);
    for (int i = 0; i < 5 * HAND_CIFAR_RECORDS; i += 7)
        check_sample(dataset, SPLIT_TRAIN, i, i / HAND_CIFAR_RECORDS, i % HAND_CIFAR_RECORDS, size, one, none);
    check_sample(dataset, SPLIT_TEST, 19, 5, 19, size, one, none);
    dataset_close(dataset);
}

static struct digest digest_of(const char *name, int64_t samples)
{
    struct dataset_settings cut = settings(0, NORMALIZE_NONE);
    cut.samples = samples;
    struct dataset *dataset = open_good(name, &cut);
    const struct digest digest = dataset->digest;
    dataset_close(dataset);
    return digest;
}

/* Files that end after those samples give the same data. */
Test(dataset_files, samples_limits_each_file_of_cifar10)
{
    static const char *const names[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                        "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
    static const int size[] = {32, 32};
    struct dataset_settings cut = settings(0, NORMALIZE_NONE);
    size_t bytes;
    cut.samples = 7;
    struct dataset *dataset = open_good("cifar10", &cut);
    cr_assert(dataset->count[SPLIT_TRAIN] == 5 * 7 && dataset->count[SPLIT_TEST] == 7);
    for (int i = 0; i < 5 * 7; i++) check_sample(dataset, SPLIT_TRAIN, i, i / 7, i % 7, size, one, none);
    for (int i = 0; i < 7; i++) check_sample(dataset, SPLIT_TEST, i, 5, i, size, one, none);
    dataset_close(dataset);

    const struct digest all = digest_of("cifar10", 0), seven = digest_of("cifar10", 7), six = digest_of("cifar10", 6);
    cr_assert(!digest_equal(seven, six) && !digest_equal(seven, all) && !digest_equal(all, digest_of("cifar10", 20)));
    for (int f = 0; f < 6; f++) {
        uint8_t *data = hand_cifar(f, &bytes);
        hand_write(names[f], data, 7 * 3073, false);
        free(data);
    }
    cr_assert(digest_equal(digest_of("cifar10", 7), seven) && digest_equal(digest_of("cifar10", 6), six));
    cr_assert(!digest_equal(digest_of("cifar10", 0), seven) && !digest_equal(digest_of("cifar10", 0), all));
    uint8_t *data = hand_cifar(5, &bytes);
    data[7 * 3073 - 1] ^= 1; /* the last pixel of the seventh image */
    hand_write(names[5], data, 7 * 3073, false);
    free(data);
    cr_assert(!digest_equal(digest_of("cifar10", 7), seven) && digest_equal(digest_of("cifar10", 6), six));
}

Test(dataset_files, samples_limits_each_file_of_idx)
{
    static const int size[] = {HAND_IDX_HEIGHT, HAND_IDX_WIDTH};
    struct dataset_settings cut = settings(0, NORMALIZE_NONE);
    size_t bytes;
    cut.samples = 9;
    struct dataset *dataset = open_good("fashion-mnist", &cut);
    cr_assert(dataset->count[SPLIT_TRAIN] == 9 && dataset->count[SPLIT_TEST] == 9);
    for (int i = 0; i < 9; i++) check_sample(dataset, SPLIT_TRAIN, i, 0, i, size, one, none);
    for (int i = 0; i < 9; i++) check_sample(dataset, SPLIT_TEST, i, 1, i, size, one, none);
    dataset_close(dataset);

    const struct digest nine = digest_of("fashion-mnist", 9), eight = digest_of("fashion-mnist", 8);
    cr_assert(!digest_equal(nine, eight) && !digest_equal(nine, digest_of("fashion-mnist", 0)));
    uint8_t *images = hand_idx_images(0, &bytes), *labels = hand_idx_labels(0, &bytes);
    images[7] = labels[7] = 9; /* the count */
    hand_write("train-images-idx3-ubyte.gz", images, 16 + 9 * HAND_IDX_HEIGHT * HAND_IDX_WIDTH, true);
    hand_write("train-labels-idx1-ubyte", labels, 8 + 9, false);
    cr_assert(digest_equal(digest_of("fashion-mnist", 9), nine) && digest_equal(digest_of("fashion-mnist", 8), eight));
    labels[8 + 8] ^= 1;
    hand_write("train-labels-idx1-ubyte", labels, 8 + 9, false);
    cr_assert(!digest_equal(digest_of("fashion-mnist", 9), nine) && digest_equal(digest_of("fashion-mnist", 8), eight));
    free(images);
    free(labels);
}

Test(dataset_files, more_samples_than_a_file_has_are_refused)
{
    static const struct {
        const char *name, *says;
        int64_t samples;
    } cases[] = {{"cifar10", "data_batch_1.bin has", HAND_CIFAR_RECORDS},
                 {"fashion-mnist", "t10k-images", HAND_IDX_TEST}};
    for (size_t i = 0; i < 2; i++) {
        struct dataset_settings cut = settings(0, NORMALIZE_NONE);
        struct dataset *dataset;
        char expected[64];
        digest_of(cases[i].name, cases[i].samples);
        cut.samples = cases[i].samples + 1;
        cr_assert(dataset_open(cases[i].name, &cut, 1, &dataset) == ST_SPEC && !dataset);
        snprintf(expected, sizeof expected, "data.samples is %ld; expected: at most %ld", (long)cut.samples,
                 (long)cases[i].samples);
        cr_assert(strstr(status_message(), expected) && strstr(status_message(), cases[i].says), "%s",
                  status_message());
    }
}

Test(dataset_files, idx_delivers_gzipped_and_plain_files)
{
    static const int size[] = {HAND_IDX_HEIGHT, HAND_IDX_WIDTH};
    struct dataset_settings raw = settings(0, NORMALIZE_NONE);
    struct dataset *dataset = open_good("fashion-mnist", &raw);
    cr_assert(dataset->count[SPLIT_TRAIN] == HAND_IDX_TRAIN && dataset->count[SPLIT_TEST] == HAND_IDX_TEST);
    check_sample(dataset, SPLIT_TRAIN, 0, 0, 0, size, one, none);
    check_sample(dataset, SPLIT_TRAIN, 59, 0, 59, size, one, none);
    check_sample(dataset, SPLIT_TEST, 14, 1, 14, size, one, none);
    dataset_close(dataset);
}

static char *hand_path(const char *start, const char *end)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s%s", hand_made_folder(), start, end);
    return path;
}

/* One file after the other is spelled with a dot; in the end a folder has the usual name. */
Test(dataset_files, idx_names_have_a_dash_or_a_dot)
{
    static const char *const names[][2] = {{"train-images", "idx3-ubyte"},
                                           {"train-labels", "idx1-ubyte"},
                                           {"t10k-images", "idx3-ubyte"},
                                           {"t10k-labels", "idx1-ubyte"}};
    const struct digest dashes = digest_of("fashion-mnist", 9);
    for (int zipped = 0; zipped < 2; zipped++)
        for (int f = 0; f < 4; f++) {
            char dash[64], dot[64];
            size_t bytes;
            uint8_t *data = f % 2 ? hand_idx_labels(f / 2, &bytes) : hand_idx_images(f / 2, &bytes);
            snprintf(dash, sizeof dash, "%s-%s", names[f][0], names[f][1]);
            snprintf(dot, sizeof dot, "%s.%s", names[f][0], names[f][1]);
            remove(hand_path(dash, ""));
            remove(hand_path(dash, ".gz"));
            remove(hand_path(dot, ""));
            cr_assert(access(hand_path(dash, ""), F_OK) != 0);
            hand_write(zipped ? strcat(dot, ".gz") : dot, data, bytes, zipped);
            cr_assert(!zipped || mkdir(hand_path(dash, ""), 0700) == 0);
            cr_assert(digest_equal(digest_of("fashion-mnist", 9), dashes), "%s", dot);
            free(data);
        }
}

Test(dataset_files, resize_is_bilinear_with_half_pixel_centres)
{
    static const int cifar[] = {32, 32}, idx[] = {HAND_IDX_HEIGHT, HAND_IDX_WIDTH};
    static const int64_t sides[] = {1, 5, 17, 32, 45, 224};
    for (size_t k = 0; k < sizeof sides / sizeof *sides; k++) {
        struct dataset_settings resized = settings(sides[k], NORMALIZE_NONE);
        struct dataset *a = open_good("cifar10", &resized), *b = open_good("fashion-mnist", &resized);
        check_sample(a, SPLIT_TRAIN, 21, 1, 1, cifar, one, none);
        check_sample(b, SPLIT_TEST, 3, 1, 3, idx, one, none);
        dataset_close(a);
        dataset_close(b);
    }
}

Test(dataset_files, normalize_scales_and_shifts_by_channel)
{
    static const int size[] = {32, 32};
    static const double mean[] = {0.4914, 0.4822, 0.4465}, deviation[] = {0.2470, 0.2435, 0.2616};
    double scale[3], shift[3], unit[] = {1 / 255.0, 1 / 255.0, 1 / 255.0};
    for (int c = 0; c < 3; c++) {
        scale[c] = 1 / 255.0 / deviation[c];
        shift[c] = -mean[c] / deviation[c];
    }
    struct dataset_settings to_unit = settings(0, NORMALIZE_UNIT), standard = settings(50, NORMALIZE_STANDARD);
    struct dataset *a = open_good("cifar10", &to_unit), *b = open_good("cifar10", &standard);
    check_sample(a, SPLIT_TEST, 2, 5, 2, size, unit, none);
    check_sample(b, SPLIT_TEST, 2, 5, 2, size, scale, shift);
    dataset_close(a);
    dataset_close(b);
}

Test(dataset_files, sha256_matches_sha256sum)
{
    static const uint8_t zeros[100 * 3073] = {0};
    hand_write("data_batch_1.bin", zeros, sizeof zeros, false);
    struct dataset_settings raw = settings(0, NORMALIZE_NONE);
    struct dataset *dataset = open_good("cifar10", &raw);
    cr_assert(strcmp(dataset->file[0].sha256, "397b1188e7fa709890a011c9cdd10c8f651b3e228b71c759bcbd18222c178aee") == 0,
              "%s", dataset->file[0].sha256);
    cr_assert(dataset->count[SPLIT_TRAIN] == 100 + 4 * HAND_CIFAR_RECORDS); /* a short file is a file */
    dataset_close(dataset);
}

static void check_refused(const char *name, const char *file, const char *why)
{
    struct dataset_settings raw = settings(0, NORMALIZE_NONE);
    struct dataset *dataset;
    cr_assert(dataset_open(name, &raw, 1, &dataset) == ST_FAILED && !dataset, "%s: %s", file, why);
    cr_assert(strstr(status_message(), file) && strstr(status_message(), why), "%s", status_message());
}

Test(dataset_files, cifar10_refuses_partial_records)
{
    size_t bytes;
    uint8_t *data = hand_cifar(2, &bytes);
    hand_write("data_batch_3.bin", data, bytes - 1, false);
    check_refused("cifar10", "data_batch_3.bin", "offset 58387 has only 3072 bytes; expected: whole records of 3073");
    hand_write("data_batch_3.bin", data, 100, false);
    check_refused("cifar10", "data_batch_3.bin", "offset 0 has only 100 bytes");
    data[3073 * 6] = 10;
    hand_write("data_batch_3.bin", data, bytes, false);
    check_refused("cifar10", "data_batch_3.bin", "offset 18438: label 10; expected: 0..9");
    hand_write("data_batch_3.bin", data, 0, false);
    check_refused("cifar10", "data_batch_3.bin", "empty");
    uint8_t *many = calloc(10001, 3073);
    hand_write("data_batch_3.bin", many, (size_t)10001 * 3073, false);
    check_refused("cifar10", "data_batch_3.bin", "10001 records");
    free(many);
    free(data);
}

Test(dataset_files, cifar10_detects_a_file_that_shrinks_or_changes)
{
    size_t bytes;
    uint8_t *data = hand_cifar(0, &bytes);
    float x[3072];
    int32_t label;
    char path[256];
    struct dataset_settings raw = settings(0, NORMALIZE_NONE);
    struct dataset *dataset = open_good("cifar10", &raw);
    snprintf(path, sizeof path, "%s/data_batch_1.bin", hand_made_folder());
    cr_assert(truncate(path, 2 * 3073 + 10) == 0);
    cr_assert(dataset->kind->sample(dataset, SPLIT_TRAIN, 1, x, &label) == ST_OK);
    cr_assert(dataset->kind->sample(dataset, SPLIT_TRAIN, 2, x, &label) == ST_FAILED);
    cr_assert(strstr(status_message(), "ends at offset 6156; expected: 3073 bytes from offset 6146"));
    memset(data, 77, bytes);
    hand_write("data_batch_1.bin", data, bytes, false); /* into the same file */
    cr_assert(dataset->kind->sample(dataset, SPLIT_TRAIN, 2, x, &label) == ST_FAILED);
    cr_assert(strstr(status_message(), "offset 6146: label 77"), "%s", status_message());
    free(data);
    dataset_close(dataset);
}

/* Damage to the header or the size of an IDX file: a byte set, or the length changed. */
Test(dataset_files, idx_refuses_data_that_contradict_the_header)
{
    static const struct {
        size_t at;
        uint8_t to;
        int longer;
        const char *why;
    } cases[] = {
        {2, 7, 0, "offset 0 (decompressed): magic number 1795; expected: 2051..2051"},
        {3, 1, 0, "magic number 2049"},
        {0, 0, -1, "ends at offset 3255 (decompressed); expected: 1 bytes more"},
        {0, 0, 1, "offset 3256 (decompressed): there is more; expected: the end of the file"},
        {7, 61, 0, "ends at offset 3256"},
        {7, 59, 0, "there is more"},
        {4, 0xFF, 0, "offset 4 (decompressed): number of images"},
        {4, 0x7F, 0, "the header promises"},
        {11, 0, 0, "offset 8 (decompressed): height 0; expected: 1..4096"},
        {12, 1, 0, "offset 12 (decompressed): width 16777225"},
        {0, 0, -3250, "ends at offset 6"},
    };
    size_t bytes;
    uint8_t *good = hand_idx_images(0, &bytes), *bad = calloc(bytes + 1, 1);
    for (int zipped = 0; zipped < 2; zipped++) {
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            memcpy(bad, good, bytes);
            bad[cases[k].at] = cases[k].to;
            hand_write("train-images-idx3-ubyte.gz", bad, (size_t)((int64_t)bytes + cases[k].longer), zipped);
            check_refused("fashion-mnist", "train-images-idx3-ubyte", cases[k].why);
        }
    }
    hand_write("train-images-idx3-ubyte.gz", good, bytes, true);
    free(good);
    good = hand_idx_labels(1, &bytes);
    good[3] = 3;
    hand_write("t10k-labels-idx1-ubyte", good, bytes, false);
    check_refused("fashion-mnist", "t10k-labels-idx1-ubyte", "magic number 2051; expected: 2049");
    good[3] = 1;
    good[7]--;
    hand_write("t10k-labels-idx1-ubyte", good, bytes - 1, false);
    check_refused("fashion-mnist", "t10k-labels-idx1-ubyte", "number of labels (as of images) 14; expected: 15..15");
    good[7]++;
    good[8 + 4] = 10;
    hand_write("t10k-labels-idx1-ubyte", good, bytes, false);
    check_refused("fashion-mnist", "t10k-labels-idx1-ubyte", "offset 12 (decompressed): label 10; expected: 0..9");
    free(good);
    free(bad);
}

Test(dataset_files, idx_refuses_a_damaged_archive)
{
    static const char archive[] = "train-images-idx3-ubyte.gz";
    char path[256];
    struct stat whole;
    snprintf(path, sizeof path, "%s/%s", hand_made_folder(), archive);
    cr_assert(stat(path, &whole) == 0);
    for (off_t cut = 1; cut <= 8; cut++) { /* within the checksum; the data are complete */
        cr_assert(truncate(path, whole.st_size - cut) == 0);
        check_refused("fashion-mnist", archive, "cannot be decompressed: unexpected end of file");
    }
    cr_assert(truncate(path, 300) == 0);
    check_refused("fashion-mnist", archive, "unexpected end of file");
    size_t bytes;
    uint8_t *good = hand_idx_images(0, &bytes);
    hand_write(archive, good, bytes, true);
    free(good);
    FILE *file = fopen(path, "r+b");
    cr_assert(file && fseek(file, -6, SEEK_END) == 0); /* within the checksum */
    int byte = fgetc(file);
    cr_assert(byte != EOF && fseek(file, -6, SEEK_END) == 0 && fputc(byte ^ 1, file) != EOF && fclose(file) == 0);
    check_refused("fashion-mnist", archive, "cannot be decompressed: incorrect data check");
}

Test(dataset_files, the_error_for_missing_data_names_source_and_folder)
{
    static const char *const names[] = {"cifar10", "fashion-mnist"};
    struct dataset *dataset;
    struct dataset_settings nowhere = {.path = "/nowhere"}, searched = {0};
    cr_assert(setenv("REMATCH_DATA", "/nowhere-at-all", 1) == 0);
    for (int i = 0; i < 2; i++) {
        cr_assert(dataset_open(names[i], &nowhere, 1, &dataset) == ST_MISSING && !dataset);
        cr_assert(strstr(status_message(), "/nowhere") && strstr(status_message(), "get"), "%s", status_message());
    }
    cr_assert(dataset_open("cifar10", &searched, 1, &dataset) == ST_MISSING);
    cr_assert(strstr(status_message(), "/nowhere-at-all") && strstr(status_message(), "data/cifar10/") &&
                  strstr(status_message(), "https://www.cs.toronto.edu/~kriz/cifar.html"),
              "%s", status_message());
}

Test(dataset_files, a_missing_file_is_named)
{
    struct dataset_settings raw = settings(0, NORMALIZE_NONE);
    struct dataset *dataset;
    char path[512];
    snprintf(path, sizeof path, "%s/data_batch_4.bin", hand_made_folder());
    cr_assert(unlink(path) == 0);
    cr_assert(dataset_open("cifar10", &raw, 1, &dataset) == ST_MISSING && !dataset);
    cr_assert(strstr(status_message(), path), "%s", status_message());
}

Test(dataset_files, are_found_by_the_environment_variable)
{
    struct dataset_settings searched = {.normalize = NORMALIZE_NONE};
    cr_assert(setenv("REMATCH_DATA", hand_made_folder(), 1) == 0);
    struct dataset *dataset = open_good("cifar10", &searched);
    cr_assert(dataset->count[SPLIT_TEST] == HAND_CIFAR_RECORDS);
    dataset_close(dataset);
}

/* Mean and deviation of the first 2000 training samples by channel: about 0 and 1. */
static void check_standard(struct dataset *dataset)
{
    int64_t elements = shape_elements(&dataset->shape), channels = dataset->shape.dim[2];
    int64_t pixels = elements / channels;
    double sum[3] = {0}, squares[3] = {0}, count = 2000.0 * (double)pixels;
    float *x = malloc((size_t)elements * sizeof *x);
    int32_t label;
    for (int64_t i = 0; i < 2000; i++) {
        cr_assert(dataset->kind->sample(dataset, SPLIT_TRAIN, i, x, &label) == ST_OK);
        for (int64_t e = 0; e < elements; e++) {
            sum[e % channels] += (double)x[e];
            squares[e % channels] += (double)x[e] * (double)x[e];
        }
    }
    for (int64_t c = 0; c < channels; c++) {
        double mean = sum[c] / count, deviation = sqrt(squares[c] / count - mean * mean);
        cr_assert(fabs(mean) < 0.05 && fabs(deviation - 1) < 0.05, "mean %g, deviation %g", mean, deviation);
    }
    free(x);
}

Test(dataset_files, real_cifar10)
{
    struct dataset_settings standard = {.normalize = NORMALIZE_STANDARD};
    struct dataset *dataset;
    if (!getenv("REMATCH_DATA")) cr_skip_test("REMATCH_DATA is not set");
    enum status status = dataset_open("cifar10", &standard, 1, &dataset);
    if (status == ST_MISSING) cr_skip_test("%s", status_message());
    cr_assert(status == ST_OK, "%s", status_message());
    check_standard(dataset);
    dataset_close(dataset);
}

Test(dataset_files, real_fashion_mnist)
{
    struct dataset_settings standard = {.normalize = NORMALIZE_STANDARD};
    struct dataset *dataset;
    enum status status = dataset_open("fashion-mnist", &standard, 1, &dataset);
    if (status == ST_MISSING) cr_skip_test("%s", status_message());
    cr_assert(status == ST_OK, "%s", status_message());
    cr_assert(dataset->count[SPLIT_TRAIN] == 60000 && dataset->count[SPLIT_TEST] == 10000 && dataset->files == 4);
    check_standard(dataset);
    dataset_close(dataset);
}
