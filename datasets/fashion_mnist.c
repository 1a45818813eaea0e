/* Grey images in IDX files, plain or gzipped: Fashion-MNIST (Xiao, Rasul and Vollgraf, "Fashion-MNIST: a novel image
 * dataset for benchmarking machine learning algorithms", 2017; arXiv:1708.07747), and other files of the same format.
 *
 * IDX: big-endian words, magic 0x00000803 and count, height, width, then a byte a pixel; for labels 0x00000801 and
 * count, then a byte a label. Sizes must agree with the header to the byte. Decompressed into memory once, as bytes.
 *
 * A name is written with a dash or, as some programs unpack it, with a dot: train-images.idx3-ubyte. */
#include "files.h"
#include "image.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { CLASSES = 10, MAGIC_IMAGES = 0x803, MAGIC_LABELS = 0x801, DEFLATE_RATIO_MAX = 1032 };

static const char *const images[SPLITS] = {"train-images-idx3-ubyte", "t10k-images-idx3-ubyte"};
static const char *const labels[SPLITS] = {"train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"};

static const struct files_source fashion_mnist = {
    (const char *const[]){"fashion-mnist", NULL},
    (const char *const[]){"train-images-idx3-ubyte.gz", "train-images-idx3-ubyte", "train-images.idx3-ubyte.gz",
                          "train-images.idx3-ubyte", NULL},
    "type apt-get install dataset-fashion-mnist, or get the four IDX files from "
    "https://github.com/zalandoresearch/fashion-mnist",
};

/* Over the 60,000 training images of Fashion-MNIST, to four digits. */
static const struct image_statistics statistics = {{0.2860}, {0.3530}};

struct idx {
    const uint8_t *pixels[SPLITS], *label[SPLITS];
    struct image_format format;
};

/* A file being decompressed; zlib passes plain files through as they are. */
struct reader {
    const struct dataset_file *file;
    gzFile stream;
    uint64_t offset; /* in the decompressed bytes */
};

/* zlib's error message, without the file name that it begins with; NULL: no error. Only this reports a file that ends
 * too early: its last read looks like that of a whole file. */
static const char *zlib_error(const struct reader *reader)
{
    int code;
    const char *why = gzerror(reader->stream, &code), *words = strstr(why, ": ");
    return code == Z_OK ? NULL : words ? words + 2 : why;
}

static enum status read_bytes(struct reader *reader, size_t bytes, uint8_t *out)
{
    const size_t piece = 1 << 24;
    for (size_t done = 0; done < bytes;) {
        int got = gzread(reader->stream, out + done, (unsigned)(bytes - done < piece ? bytes - done : piece));
        const char *why = zlib_error(reader);
        if (why) return fail(ST_FAILED, "%s: cannot be decompressed: %s", reader->file->path, why);
        if (got <= 0)
            return fail(ST_FAILED, "%s: ends at offset %" PRIu64 " (decompressed); expected: %zu bytes more",
                        reader->file->path, reader->offset, bytes - done);
        done += (size_t)got;
        reader->offset += (uint64_t)got;
    }
    return ST_OK;
}

/* A number of the header and its range. */
struct field {
    const char *what;
    uint32_t least, most;
};

static enum status read_number(struct reader *reader, const struct field *field, uint32_t *number)
{
    uint8_t bytes[4];
    TRY(read_bytes(reader, 4, bytes));
    *number = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
    if (*number >= field->least && *number <= field->most) return ST_OK;
    return fail(ST_FAILED, "%s: offset %" PRIu64 " (decompressed): %s %" PRIu32 "; expected: %" PRIu32 "..%" PRIu32,
                reader->file->path, reader->offset - 4, field->what, *number, field->least, field->most);
}

/* The header's numbers, whose product without the first is the size of the content, and the content: the whole rest. */
static enum status read_content(struct dataset *dataset, struct reader *reader, const struct field *header, int fields,
                                uint32_t *number, uint8_t **content)
{
    uint64_t bytes = 1;
    uint8_t more;
    for (int i = 0; i < fields; i++) {
        TRY(read_number(reader, &header[i], &number[i]));
        if (i > 0) bytes *= number[i];
    }
    if (bytes / DEFLATE_RATIO_MAX > reader->file->bytes) /* before so much is allocated */
        return fail(ST_FAILED, "%s: the header promises %" PRIu64 " bytes, which %" PRIu64 " cannot hold",
                    reader->file->path, bytes, reader->file->bytes);
    NEW(dataset->region, *content, (size_t)bytes);
    TRY(read_bytes(reader, (size_t)bytes, *content));
    const int got = gzread(reader->stream, &more, 1); /* also verifies the checksum at the end */
    const char *why = zlib_error(reader);
    if (why) return fail(ST_FAILED, "%s: cannot be decompressed: %s", reader->file->path, why);
    if (got == 0) return ST_OK;
    return fail(ST_FAILED, "%s: offset %" PRIu64 " (decompressed): there is more; expected: the end of the file",
                reader->file->path, reader->offset);
}

/* The first of the spellings of name that is a plain file in the folder; name itself where none is. */
static const char *spelled(struct dataset *dataset, const char *folder, const char *name)
{
    static const struct {
        char before_type;
        const char *end;
    } spellings[] = {{'-', ".gz"}, {'-', ""}, {'.', ".gz"}, {'.', ""}};
    const char *type = strstr(name, "idx");
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        struct stat found;
        const char *text = region_text(dataset->region, "%.*s%c%s%s", (int)(type - name) - 1, name,
                                       spellings[i].before_type, type, spellings[i].end);
        if (stat(region_text(dataset->region, "%s/%s", folder, text), &found) == 0 && S_ISREG(found.st_mode))
            return text;
    }
    return name;
}

static enum status read_file(struct dataset *dataset, const char *folder, const char *name, const struct field *header,
                             int fields, uint32_t *number, uint8_t **content)
{
    struct files_handle handle;
    TRY(files_open(dataset, folder, spelled(dataset, folder, name), &handle));
    struct reader reader = {handle.file, gzdopen(handle.descriptor, "rb"), 0};
    if (!reader.stream) {
        close(handle.descriptor);
        return fail(ST_FAILED, "%s: zlib cannot open it", handle.file->path);
    }
    enum status status = read_content(dataset, &reader, header, fields, number, content);
    gzclose(reader.stream); /* and the descriptor */
    return status;
}

static enum status read_split(struct dataset *dataset, const char *folder, enum split split)
{
    struct idx *state = dataset->state;
    const bool first = split == SPLIT_TRAIN; /* its size holds for both */
    const uint32_t height = (uint32_t)state->format.height, width = (uint32_t)state->format.width;
    const struct field image_header[] = {{"magic number", MAGIC_IMAGES, MAGIC_IMAGES},
                                         {"number of images", 1, INT32_MAX},
                                         {"height", first ? 1 : height, first ? IMAGE_SIDE_MAX : height},
                                         {"width", first ? 1 : width, first ? IMAGE_SIDE_MAX : width}};
    uint32_t number[4];
    uint8_t *pixels, *label;
    TRY(read_file(dataset, folder, images[split], image_header, 4, number, &pixels));
    image_format(dataset, 1, number[2], number[3], &statistics, &state->format);
    const uint32_t count = number[1];
    const struct field label_header[] = {{"magic number", MAGIC_LABELS, MAGIC_LABELS},
                                         {"number of labels (as of images)", count, count}};
    TRY(read_file(dataset, folder, labels[split], label_header, 2, number, &label));
    for (uint32_t i = 0; i < count; i++)
        if (label[i] >= CLASSES)
            return fail(ST_FAILED, "%s: offset %" PRIu32 " (decompressed): label %d; expected: 0..%d",
                        dataset->file[dataset->files - 1].path, 8 + i, label[i], CLASSES - 1);
    state->pixels[split] = pixels;
    state->label[split] = label;
    dataset->count[split] = count;
    return ST_OK;
}

/* With data.samples, drops the other samples and digests those that are left. */
static enum status cut_samples(struct dataset *dataset)
{
    const struct idx *state = dataset->state;
    const size_t pixels = (size_t)(state->format.height * state->format.width);
    struct digest part[2 * SPLITS];
    for (enum split split = SPLIT_TRAIN; split < SPLITS; split++) {
        TRY(files_cut(dataset, &dataset->file[2 * split], &dataset->count[split]));
        const size_t count = (size_t)dataset->count[split];
        part[2 * split] = digest_bytes(state->pixels[split], count * pixels);
        part[2 * split + 1] = digest_bytes(state->label[split], count);
    }
    if (dataset->settings.samples) dataset->content = digest_bytes(part, sizeof part);
    return ST_OK;
}

static enum status open_fashion_mnist(struct dataset *dataset)
{
    const char *folder;
    struct idx *state;
    NEW(dataset->region, state, 1);
    dataset->state = state;
    dataset->classes = CLASSES;
    TRY(files_find(dataset, &fashion_mnist, &folder));
    for (enum split split = SPLIT_TRAIN; split < SPLITS; split++) TRY(read_split(dataset, folder, split));
    return cut_samples(dataset);
}

static enum status sample_idx(struct dataset *dataset, enum split split, int64_t index, float *x, int32_t *label)
{
    const struct idx *state = dataset->state;
    image_deliver(&state->format, state->pixels[split] + index * state->format.height * state->format.width, x);
    *label = state->label[split][index];
    return ST_OK;
}

const struct dataset_kind dataset_fashion_mnist = {
    "fashion-mnist", "pictures of clothes, 28x28, ten classes", image_keys, true, open_fashion_mnist, sample_idx, NULL};
