#include "dataset_files.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static char folder[64];

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

static void remove_folder(void) { nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

uint8_t hand_made_pixel(int f, int i, int c, int row, int column)
{
    return (uint8_t)(f * 57 + i * 11 + c * 83 + row * 7 + column * column * 3);
}

uint8_t hand_made_byte(int i) { return (uint8_t)(i * i % 251 + i % 3); }
uint8_t hand_made_label(int f, int i) { return (uint8_t)((f * 3 + i) % 10); }

static uint8_t *put_word(uint8_t *at, uint32_t word)
{
    for (int shift = 24; shift >= 0; shift -= 8) *at++ = (uint8_t)(word >> shift);
    return at;
}

static uint8_t *put_pixels(uint8_t *at, int f, int i, int planes, int rows, int columns)
{
    for (int c = 0; c < planes; c++)
        for (int row = 0; row < rows; row++)
            for (int column = 0; column < columns; column++) *at++ = hand_made_pixel(f, i, c, row, column);
    return at;
}

uint8_t *hand_cifar(int f, size_t *bytes)
{
    *bytes = (size_t)HAND_CIFAR_RECORDS * 3073;
    uint8_t *data = malloc(*bytes), *at = data;
    for (int i = 0; i < HAND_CIFAR_RECORDS; i++) {
        *at++ = hand_made_label(f, i);
        at = put_pixels(at, f, i, 3, 32, 32);
    }
    return data;
}

uint8_t *hand_idx_images(int split, size_t *bytes)
{
    int count = split ? HAND_IDX_TEST : HAND_IDX_TRAIN;
    *bytes = 16 + (size_t)(count * HAND_IDX_HEIGHT * HAND_IDX_WIDTH);
    uint8_t *data = malloc(*bytes), *at = put_word(put_word(data, 0x803), (uint32_t)count);
    at = put_word(put_word(at, HAND_IDX_HEIGHT), HAND_IDX_WIDTH);
    for (int i = 0; i < count; i++) at = put_pixels(at, split, i, 1, HAND_IDX_HEIGHT, HAND_IDX_WIDTH);
    return data;
}

uint8_t *hand_idx_labels(int split, size_t *bytes)
{
    int count = split ? HAND_IDX_TEST : HAND_IDX_TRAIN;
    *bytes = 8 + (size_t)count;
    uint8_t *data = malloc(*bytes), *at = put_word(put_word(data, 0x801), (uint32_t)count);
    for (int i = 0; i < count; i++) *at++ = hand_made_label(split, i);
    return data;
}

void hand_write(const char *name, const void *data, size_t bytes, bool zipped)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", hand_made_folder(), name);
    gzFile file = gzopen(path, zipped ? "wb" : "wbT"); /* T: as it is */
    cr_assert(file && gzwrite(file, data, (unsigned)bytes) == (int)bytes && gzclose(file) == Z_OK, "%s", path);
}

static const char *const sentiments[3] = {"negative", "neutral", "positive"};

static void hand_write_tweets(void)
{
    char text[HAND_TWEETS * 80], *at = text + sprintf(text, "textID,text,sentiment\r\n");
    for (int i = 0; i < HAND_TWEETS; i++)
        at += sprintf(at, "id%d,\"Tweet no. %d, it's %s%s\",%s\r\n", i, i, i % 3 ? "good" : "bad", i % 4 ? "" : "\n!",
                      sentiments[i * i % 3]);
    hand_write("tweets.csv", text, (size_t)(at - text), false);
}

static void hand_write_text(void)
{
    char text[HAND_TEXT];
    for (int i = 0; i < HAND_TEXT; i++) text[i] = (char)hand_made_byte(i);
    hand_write("input.txt", text, sizeof text, false);
}

static void write_made(const char *name, uint8_t *(*make)(int, size_t *), int f, bool zipped)
{
    size_t bytes;
    uint8_t *data = make(f, &bytes);
    hand_write(name, data, bytes, zipped);
    free(data);
}

const char *hand_made_folder(void)
{
    if (*folder) return folder;
    strcpy(folder, P_tmpdir "/rematch-test-XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
    atexit(remove_folder);
    for (int f = 0; f < 6; f++) {
        char name[32];
        snprintf(name, sizeof name, f < 5 ? "data_batch_%d.bin" : "test_batch.bin", f + 1);
        write_made(name, hand_cifar, f, false);
    }
    write_made("train-images-idx3-ubyte.gz", hand_idx_images, 0, true);
    write_made("t10k-images-idx3-ubyte.gz", hand_idx_images, 1, true);
    write_made("train-labels-idx1-ubyte", hand_idx_labels, 0, false);
    write_made("t10k-labels-idx1-ubyte", hand_idx_labels, 1, false);
    hand_write_tweets();
    hand_write_text();
    return folder;
}
