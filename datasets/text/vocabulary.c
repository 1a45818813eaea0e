#include "vocabulary.h"

#include <inttypes.h>
#include <sha2.h>
#include <string.h>
#include <utf8proc.h>

const char *const special_tokens[SPECIALS] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"};

/* Files that are known by their SHA-256. */
static const struct {
    const char *name, *sha256;
} known[] = {{"bert-base-uncased", "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"}};

static enum status find_special(struct vocabulary *v, const char *path)
{
    char missing[64] = "";
    for (int i = 0; i < SPECIALS; i++) {
        v->special[i] = (int32_t)token_table_find(&v->table, special_tokens[i], strlen(special_tokens[i]));
        if (v->special[i] >= 0) continue;
        if (*missing) strcat(missing, ", ");
        strcat(missing, special_tokens[i]);
    }
    if (!*missing) return ST_OK;
    return fail(ST_FAILED, "%s: no line is %s; expected: a vocabulary with [PAD], [UNK], [CLS] and [SEP]", path,
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
    const int64_t line = v->table.count + 1;
    if (bytes && text[bytes - 1] == '\r') bytes--;
    if (bytes == 0) return fail(ST_FAILED, "%s:%" PRId64 ": an empty line; expected: one token a line", path, line);
    if (line > VOCABULARY_MAX)
        return fail(ST_FAILED, "%s:%" PRId64 ": expected: at most %d tokens", path, line, VOCABULARY_MAX);
    TRY(check_utf8(text, bytes, path, line));
    const int64_t number = token_table_add(&v->table, text, bytes);
    if (number == line - 1) return ST_OK;
    return fail(ST_FAILED, "%s:%" PRId64 ": '%.*s' also stands on line %" PRId64 "; expected: every token once", path,
                line, (int)(bytes < 60 ? bytes : 60), text, number + 1);
}

enum status vocabulary_read(const char *path, const char *text, size_t bytes, struct region *region,
                            struct vocabulary *vocabulary)
{
    *vocabulary = (struct vocabulary){.table.region = region, .name = "file"};
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        const size_t length = end ? (size_t)(end - text) - at : bytes - at;
        TRY(add_line(vocabulary, text + at, length, path));
        at += length + 1;
    }
    SHA256Data((const uint8_t *)text, bytes, vocabulary->sha256);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].sha256, vocabulary->sha256) == 0) vocabulary->name = known[i].name;
    return find_special(vocabulary, path);
}
