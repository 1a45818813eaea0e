#include "vocabulary.h"

#include <inttypes.h>
#include <sha2.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "numerics/digest.h"

enum { SLOTS_LEAST = 64, POINTS = 0x110000, TOKEN_BYTES = 4 };

/* ---- tables of tokens ---- */

/* The slot of a token, or the free one where it belongs. */
static int32_t *find_slot(const struct token_table *t, const char *text, size_t bytes)
{
    size_t at = (size_t)digest_bytes(text, bytes).low & (t->slots - 1);
    for (; t->slot[at]; at = (at + 1) & (t->slots - 1)) {
        const struct token *other = &t->token[t->slot[at] - 1];
        if (other->bytes == bytes && memcmp(other->text, text, bytes) == 0) break;
    }
    return &t->slot[at];
}

int64_t token_table_find(const struct token_table *table, const char *text, size_t bytes)
{
    return table->slots ? *find_slot(table, text, bytes) - 1 : -1;
}

/* Twice the slots as soon as half of them are taken. */
static void grow_slots(struct token_table *t)
{
    if ((size_t)t->count < t->slots / 2) return;
    t->slots = t->slots ? 2 * t->slots : SLOTS_LEAST;
    NEW(t->region, t->slot, t->slots);
    for (int64_t i = 0; i < t->count; i++) *find_slot(t, t->token[i].text, t->token[i].bytes) = (int32_t)(i + 1);
}

int64_t token_table_add(struct token_table *table, const char *text, size_t bytes)
{
    const int64_t number = token_table_find(table, text, bytes);
    if (number >= 0) return number;
    grow_slots(table);
    region_grow(table->region, &table->token, (int)table->count, sizeof *table->token);
    char *copy = region_array(table->region, bytes, 1);
    memcpy(copy, text, bytes);
    *find_slot(table, text, bytes) = (int32_t)(table->count + 1);
    table->token[table->count] = (struct token){copy, bytes};
    return table->count++;
}

/* ---- from a file ---- */

static const char *const special_tokens[SPECIALS] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"};

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

/* ---- built from texts ---- */

void word_counts_add(void *counts, const char *word, size_t bytes)
{
    struct word_counts *c = counts;
    const int64_t before = c->words.count, number = token_table_add(&c->words, word, bytes);
    if (number == before) region_grow(c->words.region, &c->count, (int)number, sizeof *c->count);
    c->count[number]++;
    c->total++;
}

int64_t characters_in(const char *text, size_t bytes)
{
    int64_t characters = 0;
    for (size_t i = 0; i < bytes; i++) characters += ((unsigned char)text[i] & 0xC0) != 0x80;
    return characters;
}

/* Marks the characters of the words and returns how many there are. */
static int64_t find_characters(const struct word_counts *counts, uint8_t *seen)
{
    int64_t characters = 0;
    for (int64_t i = 0; i < counts->words.count; i++) {
        const struct token *word = &counts->words.token[i];
        for (size_t at = 0; at < word->bytes;) {
            int32_t point;
            at += (size_t)utf8proc_iterate((const uint8_t *)word->text + at, (utf8proc_ssize_t)(word->bytes - at),
                                           &point);
            characters += !seen[point];
            seen[point] = 1;
        }
    }
    return characters;
}

static void add_characters(struct vocabulary *v, const uint8_t *seen, const char *prefix)
{
    uint8_t token[2 + TOKEN_BYTES];
    const size_t before = strlen(prefix);
    memcpy(token, prefix, before);
    for (int32_t point = 0; point < POINTS; point++)
        if (seen[point])
            token_table_add(&v->table, (const char *)token,
                            before + (size_t)utf8proc_encode_char(point, token + before));
}

struct counted {
    const struct token *word;
    int64_t count;
};

/* Leaves no ties; UTF-8's byte order is that of the code points: the vocabulary is the same on every machine. */
static int by_count_then_text(const void *one, const void *other)
{
    const struct counted *a = one, *b = other;
    const size_t left = a->word->bytes, right = b->word->bytes;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    const int order = memcmp(a->word->text, b->word->text, left < right ? left : right);
    return order ? order : (left > right) - (left < right);
}

static void add_words(struct vocabulary *v, const struct word_counts *counts, int64_t most)
{
    const int64_t words = counts->words.count;
    struct counted *sorted;
    NEW(counts->words.region, sorted, (size_t)words);
    for (int64_t i = 0; i < words; i++) sorted[i] = (struct counted){&counts->words.token[i], counts->count[i]};
    qsort(sorted, (size_t)words, sizeof *sorted, by_count_then_text);
    for (int64_t i = 0; i < words && v->table.count < most; i++)
        if (characters_in(sorted[i].word->text, sorted[i].word->bytes) <= VOCABULARY_WORD_MAX)
            token_table_add(&v->table, sorted[i].word->text, sorted[i].word->bytes);
}

static void digest_lines(struct vocabulary *v)
{
    SHA2_CTX context;
    SHA256Init(&context);
    for (int64_t i = 0; i < v->table.count; i++) {
        SHA256Update(&context, (const uint8_t *)v->table.token[i].text, v->table.token[i].bytes);
        SHA256Update(&context, (const uint8_t *)"\n", 1);
    }
    SHA256End(&context, v->sha256);
}

enum status vocabulary_build(const struct word_counts *counts, int64_t most, struct region *region,
                             struct vocabulary *vocabulary)
{
    uint8_t *seen;
    NEW(counts->words.region, seen, POINTS);
    const int64_t least = SPECIALS + 2 * find_characters(counts, seen);
    if (most < least)
        return fail(ST_SPEC,
                    "data.vocabulary_size: %" PRId64 "; expected: at least %" PRId64
                    ": %d special tokens, and every character of the training texts alone and after ##",
                    most, least, SPECIALS);
    *vocabulary = (struct vocabulary){.table.region = region, .name = "built"};
    for (int i = 0; i < SPECIALS; i++)
        vocabulary->special[i] =
            (int32_t)token_table_add(&vocabulary->table, special_tokens[i], strlen(special_tokens[i]));
    add_characters(vocabulary, seen, "");
    add_characters(vocabulary, seen, "##");
    add_words(vocabulary, counts, most);
    digest_lines(vocabulary);
    return ST_OK;
}
