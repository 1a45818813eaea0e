/* Labelled samples addressed by index: the same index gives the same bytes, whatever was read before. */
#pragma once

#include "base/region.h"
#include "base/setting.h"
#include "numerics/digest.h"
#include "numerics/shape.h"

enum split { SPLIT_TRAIN, SPLIT_TEST, SPLITS };
enum normalize { NORMALIZE_NONE, NORMALIZE_UNIT, NORMALIZE_STANDARD };
enum labels { LABELS_SAMPLE, LABELS_PIXEL, LABELS_IMAGE };
enum lengths { LENGTHS_FULL, LENGTHS_VARIED };

/* The settings of every data set (`data:`), within the ranges of its keys. */
struct dataset_settings {
    struct setting_list shape; /* ones, synthetic: H, W, C, or one number */
    int64_t classes;           /* ones, synthetic, synthetic-tokens */
    int64_t samples;           /* synthetic ones: per split; files: the first of each, 0: all */
    int labels;                /* synthetic: enum labels */
    const char *path;          /* folder of the files; NULL: searched, see dataset_open */
    int64_t resize;            /* images: side after bilinear resize, 0: as they are */
    int normalize;             /* enum normalize: pixels as 0..255, 0..1, or per-channel mean 0 and deviation 1 with the
                                  data set's published constants */
    bool shuffle;
    int64_t max_length;      /* tokens: places of a sequence; text: `length` */
    const char *vocabulary;  /* tweets: file, NULL: built */
    int64_t vocabulary_size; /* tweets: most tokens of one that is built, 0: unset; synthetic tokens: different ones */
    int lengths;             /* synthetic-tokens: enum lengths */
};

/* A file that was read, for the result file. */
enum { DATASET_FILES_MAX = 8 };
struct dataset_file {
    const char *path;
    uint64_t bytes;
    char sha256[65];
};

struct dataset {
    const struct dataset_kind *kind;
    struct dataset_settings settings;
    struct region *region;
    uint64_t seed;
    struct shape shape; /* of a sample as delivered */
    int64_t classes;
    int64_t labels;        /* of a sample; 1 but for dense ones */
    struct shape target;   /* of a sample, whose labels are then its numbers, as floats; rank 0: labels are classes */
    int64_t count[SPLITS]; /* samples found */
    int64_t tokens;        /* of text: numbers are below this; 0: no tokens */
    bool synthetic;        /* generated, not read */
    const char *notice;    /* a warning for the user; NULL: none */
    int files;
    struct dataset_file *file;
    struct digest digest; /* of all files and a text's tokens; of the samples alone with settings.samples; of a
                             synthetic data set's first samples */
    const char *vocabulary, *vocabulary_sha256; /* of a text: see vocabulary.h; else NULL */
    struct digest content; /* of a text's tokens, or of the samples with settings.samples; else 0 */
    void *state;
};

struct dataset_kind {
    const char *name, *doc;
    const struct setting *keys;
    bool sized; /* has a fixed number of samples; else any index is valid in TRAIN */
    enum status (*open)(struct dataset *dataset);
    /* Sample index of split into x (shape_elements floats, H W C order) and its labels. */
    enum status (*sample)(struct dataset *dataset, enum split split, int64_t index, float *x, int32_t *label);
    void (*close)(struct dataset *dataset);
};

const struct dataset_kind *dataset_find(const char *name);
extern const struct dataset_kind *const dataset_table[];

/* Finds and checks the files: settings.path, else $REMATCH_DATA/NAME, $REMATCH_DATA, data/NAME, data,
 * /usr/share/datasets/NAME. What settings points to must outlive the data set. ST_MISSING: not there; the message says
 * where to get it and where to put it (unless another data set stands in: then kind is that one, and there is a
 * notice). ST_FAILED: there but malformed; the message names file, offset or line, and what was expected. */
enum status dataset_open(const char *name, const struct dataset_settings *settings, uint64_t seed,
                         struct dataset **dataset);
void dataset_close(struct dataset *dataset);

/* The batch samples of indices into x and labels, on threads threads. */
enum status dataset_batch(struct dataset *dataset, enum split split, const int64_t *indices, int64_t batch, float *x,
                          int32_t *labels, int threads);

/* Every label of the split is below classes; ST_SPEC: the message names the first sample with a larger one. */
enum status dataset_check_labels(struct dataset *dataset, enum split split, int64_t classes);

/* The order of an epoch: order[i] is the sample at place i; the identity without shuffle, else Fisher-Yates on Philox
 * (seed, SHUFFLE, epoch). order has count[split] entries. */
void dataset_order(const struct dataset *dataset, enum split split, uint32_t epoch, int64_t *order);
