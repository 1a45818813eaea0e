#include "vocabulary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utf8proc.h>

const char *const special_tokens[SPECIALS] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"};

/* Files that are known by their SHA-256. */
static const struct {
    const char *name, *sha256;
} known[] = {{"bert-base-uncased", "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"}};

/* The numbers of the special tokens; whose is the file that lacks one. */
static enum status find_special(struct vocabulary *v, const char *whose)
{
    char missing[64] = "";
    for (int i = 0; i < SPECIALS; i++) {
        v->special[i] = (int32_t)token_table_find(&v->table, special_tokens[i], strlen(special_tokens[i]));
        if (v->special[i] >= 0) continue;
        if (*missing) strcat(missing, ", ");
        strcat(missing, special_tokens[i]);
    }
    if (!*missing) return ST_OK;
    return fail(ST_FAILED, "%s: no line is %s; expected: a vocabulary with [PAD], [UNK], [CLS] and [SEP]", whose,
                missing);
}

static enum status check_utf8(const char *text, size_t bytes, const char *path, int64_t line)
{
    for (size_t at = 0; at < bytes;) {
        int32_t point;
        utf8proc_ssize_t step = utf8proc_iterate((const uint8_t *)text + at, (utf8proc_ssize_t)(bytes - at), &point);
        if (step <= 0)
            return fail(ST_FAILED, "%s:%" PRId64 ": byte %zu, 0x%02X, is not UTF-8", path, line, at + 1,
                        (unsigned char)text[at]);
        at += (size_t)step;
    }
    return ST_OK;
}

static enum status add_line(struct vocabulary *v, const char *text, size_t bytes, const char *path)
{
    int64_t line = v->table.count + 1, number;
    if (bytes && text[bytes - 1] == '\r') bytes--;
    if (bytes == 0) return fail(ST_FAILED, "%s:%" PRId64 ": an empty line; expected: one token a line", path, line);
    if (line > VOCABULARY_MAX)
        return fail(ST_FAILED, "%s:%" PRId64 ": expected: at most %d tokens", path, line, VOCABULARY_MAX);
    TRY(check_utf8(text, bytes, path, line));
    TRY(token_table_add(&v->table, text, bytes, &number));
    if (number == line - 1) return ST_OK;
    return fail(ST_FAILED, "%s:%" PRId64 ": '%.*s' also stands on line %" PRId64 "; expected: every token once", path,
                line, (int)(bytes < 60 ? bytes : 60), text, number + 1);
}

static enum status read_lines(const struct files_handle *handle, struct vocabulary *v)
{
    const char *path = handle->file->path;
    if (handle->file->bytes > VOCABULARY_BYTES_MAX)
        return fail(ST_FAILED, "%s: %" PRIu64 " bytes; expected: a vocabulary of at most %d", path, handle->file->bytes,
                    VOCABULARY_BYTES_MAX);
    size_t bytes = (size_t)handle->file->bytes;
    char *text = malloc(bytes);
    if (!text) return fail(ST_FAILED, "out of memory: %s", path);
    enum status status = files_read(handle, 0, bytes, text);
    for (size_t at = 0; status == ST_OK && at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t length = end ? (size_t)(end - text) - at : bytes - at;
        status = add_line(v, text + at, length, path);
        at += length + 1;
    }
    free(text);
    return status;
}

enum status vocabulary_read(struct dataset *dataset, const char *path, struct vocabulary *vocabulary)
{
    struct files_handle handle;
    if (access(path, F_OK) != 0)
        return fail(ST_MISSING, "data.vocabulary: %s: %s; expected: a file with one token a line", path,
                    strerror(errno));
    TRY(files_open(dataset, NULL, path, &handle));
    enum status status = read_lines(&handle, vocabulary);
    close(handle.descriptor);
    if (status != ST_OK) return status;
    memcpy(vocabulary->sha256, handle.file->sha256, sizeof vocabulary->sha256);
    vocabulary->name = "file";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].sha256, vocabulary->sha256) == 0) vocabulary->name = known[i].name;
    return find_special(vocabulary, path);
}

void vocabulary_release(struct vocabulary *vocabulary) { token_table_release(&vocabulary->table); }
