/* Small data files written by the test, in a temporary folder that is removed with the process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HAND_CIFAR_RECORDS = 20,
    HAND_IDX_TRAIN = 60,
    HAND_IDX_TEST = 15,
    HAND_IDX_HEIGHT = 6,
    HAND_IDX_WIDTH = 9,
    HAND_TWEETS = 123,
    HAND_TEXT = 1000,
};

/* The folder, with well-formed CIFAR-10 files (HAND_CIFAR_RECORDS each) and IDX files (the images gzipped, the labels
 * not), tweets.csv and input.txt in it; made at the first call of a process, removed at its exit. */
const char *hand_made_folder(void);

/* Their contents: the pixel of plane c of image i (CIFAR: of file f; IDX: f is the split, c is 0), and its label. */
uint8_t hand_made_pixel(int f, int i, int c, int row, int column);
uint8_t hand_made_label(int f, int i);
uint8_t hand_made_byte(int i); /* of input.txt */

/* Writes bytes bytes to hand_made_folder()/name, gzipped or not. */
void hand_write(const char *name, const void *data, size_t bytes, bool zipped);

/* A well-formed file in memory, to be damaged; the number of bytes into *bytes; to be freed. */
uint8_t *hand_cifar(int f, size_t *bytes);
uint8_t *hand_idx_images(int split, size_t *bytes);
uint8_t *hand_idx_labels(int split, size_t *bytes);
