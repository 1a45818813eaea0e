/* Vocabularies, from files and built, and the pieces of words, against lists written by hand. */
#include "datasets/text/tokenizer.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define TEXT(text) text, sizeof(text) - 1
#define SPECIAL    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n"

static struct region *region;

static void begin(void) { region = region_create(); }
static void end(void) { region_destroy(region); }
TestSuite(vocabulary, .init = begin, .fini = end);

static enum status read_as(const char *text, size_t bytes, struct vocabulary *vocabulary)
{
    return vocabulary_read("vocab.txt", text, bytes, region, vocabulary);
}

static const char *token(const struct vocabulary *v, int64_t number, char text[512])
{
    const struct token *at = &v->table.token[number];
    snprintf(text, 512, "%.*s", (int)at->bytes, at->text);
    return text;
}

Test(vocabulary, a_file_is_numbered_by_its_lines)
{
    static const char text[] = "first\n[SEP]\r\n##x\n[PAD]\n[CLS]\n[UNK]\n\u4E2D";
    struct vocabulary v;
    char got[512];
    cr_assert(read_as(TEXT(text), &v) == ST_OK, "%s", status_message());
    cr_expect(v.table.count == 7 && !strcmp(v.name, "file"));
    cr_expect(v.special[SPECIAL_PADDING] == 3 && v.special[SPECIAL_UNKNOWN] == 5 && v.special[SPECIAL_START] == 4 &&
              v.special[SPECIAL_SEPARATOR] == 1);
    cr_expect(!strcmp(token(&v, 2, got), "##x") && !strcmp(token(&v, 6, got), "\u4E2D"));
    cr_expect(token_table_find(&v.table, TEXT("first")) == 0 && token_table_find(&v.table, TEXT("firs")) == -1);
    cr_expect(strlen(v.sha256) == 64);
}

Test(vocabulary, other_files_are_refused_by_line)
{
    static const struct {
        const char *text;
        size_t bytes;
        const char *why;
    } cases[] = {
        {TEXT("[PAD]\n[CLS]\n[SEP]\na\n"), ": no line is [UNK]; expected: a vocabulary with [PAD], [UNK], [CLS]"},
        {TEXT("[UNK]\n"), ": no line is [PAD], [CLS], [SEP]; expected"},
        {TEXT("[unk]\n[PAD]\n[CLS]\n[SEP]\n"), ": no line is [UNK]"},
        {TEXT(SPECIAL "a\n\nb\n"), ":6: an empty line; expected: one token a line"},
        {TEXT("\n"), ":1: an empty line"},
        {TEXT(SPECIAL "a\nb\na\n"), ":7: 'a' also stands on line 5; expected: every token once"},
        {TEXT(SPECIAL "a\n[PAD]\n"), ":6: '[PAD]' also stands on line 1"},
        {TEXT(SPECIAL "a\nb\xFFz\n"), ":6: byte 2, 0xFF, is not UTF-8"},
        {TEXT(""), ": no line is [PAD], [UNK], [CLS], [SEP]"},
    };
    struct vocabulary v;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_expect(read_as(cases[i].text, cases[i].bytes, &v) == ST_FAILED, "%s", cases[i].text);
        const char *named = strstr(status_message(), "vocab.txt");
        cr_expect(named && !strncmp(named + 9, cases[i].why, strlen(cases[i].why)), "%s", status_message());
    }
}

/* ---- pieces ---- */

static void check_pieces(const struct vocabulary *v, const char *word, const char *expected)
{
    int32_t piece[VOCABULARY_WORD_MAX];
    char text[4096] = "", got[512];
    int pieces = wordpiece_split(v, word, strlen(word), piece);
    for (int i = 0; i < pieces; i++) {
        if (i) strcat(text, " ");
        strcat(text, token(v, piece[i], got));
    }
    cr_expect(!strcmp(text, expected), "%s: %s, not %s", word, text, expected);
}

Test(vocabulary, pieces_are_the_longest_first)
{
    static const char text[] =
        SPECIAL "un\n##aff\n##able\nunaff\nu\n##n\n##a\n##f\n##b\nab\n##\u00E9\n\u00E9\n##\u00E9t\na\n";
    struct vocabulary v;
    cr_assert(read_as(TEXT(text), &v) == ST_OK, "%s", status_message());
    check_pieces(&v, "unaffable", "unaff ##able");
    check_pieces(&v, "unable", "un ##able");
    check_pieces(&v, "unab", "un ##a ##b");
    check_pieces(&v, "ab", "ab");
    check_pieces(&v, "aba", "ab ##a");
    check_pieces(&v, "\u00E9\u00E9\u00E9t", "\u00E9 ##\u00E9 ##\u00E9t");
    check_pieces(&v, "unaffablex", "[UNK]"); /* the last piece is unknown, so the whole word is */
    check_pieces(&v, "xun", "[UNK]");
    check_pieces(&v, "\u00EA", "[UNK]"); /* shares its first byte with a known character */
    check_pieces(&v, "[", "[UNK]");
}

/* A word can be unknown because of its greedy first piece although another division would spell it. */
Test(vocabulary, a_greedy_dead_end_is_unknown)
{
    struct vocabulary v;
    cr_assert(read_as(TEXT(SPECIAL "abc\nab\n##cd\n"), &v) == ST_OK);
    check_pieces(&v, "abcd", "[UNK]");
    check_pieces(&v, "abc", "abc");
}

Test(vocabulary, words_over_a_hundred_characters_are_unknown)
{
    struct vocabulary v;
    int32_t piece[VOCABULARY_WORD_MAX];
    char word[4 * 101 + 1] = "";
    cr_assert(read_as(TEXT(SPECIAL "a\n##a\n\U0001F600\n##\U0001F600\n"), &v) == ST_OK);
    for (int i = 1; i <= 101; i++) {
        strcat(word, "\U0001F600");
        int pieces = wordpiece_split(&v, word, strlen(word), piece);
        cr_expect(i <= 100 ? pieces == i && piece[0] == 6 && (i == 1 || piece[i - 1] == 7)
                           : pieces == 1 && piece[0] == 1);
    }
    memset(word, 'a', 101);
    cr_expect(wordpiece_split(&v, word, 100, piece) == 100 && piece[99] == 5);
    cr_expect(wordpiece_split(&v, word, 101, piece) == 1 && piece[0] == v.special[SPECIAL_UNKNOWN]);
}

Test(vocabulary, a_text_is_cut_to_the_given_length)
{
    struct vocabulary v;
    int32_t tokens[8];
    int64_t count, words;
    cr_assert(read_as(TEXT(SPECIAL "one\ntwo\n##s\n!\n"), &v) == ST_OK);
    static const int32_t all[] = {2, 4, 5, 6, 1, 7, 3}; /* [CLS] one two ##s [UNK] ! [SEP] */
    for (int64_t most = 2; most <= 8; most++) {
        int64_t kept = most < 7 ? most : 7;
        cr_expect(wordpiece_encode(&v, TEXT("ONE twos three!"), most, tokens, &count, &words) == ST_OK);
        cr_expect(count == kept && words == 4, "%lld", (long long)count);
        cr_expect(!memcmp(tokens, all, (size_t)(kept - 1) * sizeof *all) && tokens[kept - 1] == 3);
    }
    cr_expect(wordpiece_encode(&v, TEXT(" \t "), 8, tokens, &count, &words) == ST_OK && count == 2 && words == 0);
    cr_expect(wordpiece_encode(&v, TEXT("one \xFF"), 8, tokens, &count, &words) == ST_FAILED);
}

/* Whole texts with accents, scripts, directions and brackets; `##` and special tokens in a text are ordinary
 * characters. */
Test(vocabulary, texts_become_the_listed_tokens)
{
    static const char words[] = SPECIAL "caf\ncafe\n##s\ns\n!\nsep\nno\nnow\n\u4E2D\n\U0001F468\n##\U0001F469\n"
                                        "\u05E9\n##\u05DC\u05D5\u05DD\n##\u0301\n";
    static const struct {
        const char *text;
        size_t bytes;
        const char *tokens;
    } cases[] = {
        {TEXT(""), "[CLS] [SEP]"},
        {TEXT("Caf\u00E9s!"), "[CLS] cafe ##s ! [SEP]"},
        {TEXT("CAFE\u0301S \u0301!"), "[CLS] cafe ##s ! [SEP]"},
        {TEXT("\u4E2D\u6587s"), "[CLS] \u4E2D [UNK] s [SEP]"},
        {TEXT("\U0001F468\u200D\U0001F469\uFE0F"), "[CLS] \U0001F468 ##\U0001F469 [SEP]"},
        {TEXT("\u200F\u05E9\u05C1\u05B8\u05DC\u05D5\u05B9\u05DD"), "[CLS] \u05E9 ##\u05DC\u05D5\u05DD [SEP]"},
        {TEXT("\u202Eno\u200B\x01w\u202C no\u3000w"), "[CLS] now no [UNK] [SEP]"},
        {TEXT("##s"), "[CLS] [UNK] [UNK] s [SEP]"},
        {TEXT("[SEP]s"), "[CLS] [UNK] sep [UNK] s [SEP]"},
        {TEXT("!!!?!"), "[CLS] ! ! ! [UNK] ! [SEP]"},
    };
    struct vocabulary v;
    cr_assert(read_as(TEXT(words), &v) == ST_OK, "%s", status_message());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t tokens[16];
        int64_t count, ignored;
        char text[512] = "", got[512];
        cr_assert(wordpiece_encode(&v, cases[i].text, cases[i].bytes, 16, tokens, &count, &ignored) == ST_OK);
        for (int64_t k = 0; k < count; k++) strcat(strcat(text, k ? " " : ""), token(&v, tokens[k], got));
        cr_expect(!strcmp(text, cases[i].tokens), "%s: %s, not %s", cases[i].text, text, cases[i].tokens);
    }
}

/* ---- built ---- */

static void count_texts(struct word_counts *counts)
{
    static const char *const texts[] = {"b cab CAB!", "cab \u00E9a ba", "ba \U0001F600", "abc"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cr_assert(basic_tokenize(texts[i], strlen(texts[i]), word_counts_add, counts) == ST_OK);
}

Test(vocabulary, a_built_vocabulary_is_the_expected_list)
{
    static const char *const expected[] = {"[PAD]", "[UNK]",      "[CLS]", "[SEP]", "!",   "a",   "b",   "c",
                                           "e",     "\U0001F600", "##!",   "##a",   "##b", "##c", "##e", "##\U0001F600",
                                           "cab",   "ba",         "abc",   "ea"};
    const int all = (int)(sizeof expected / sizeof *expected);
    struct word_counts counts = {.words.region = region};
    struct vocabulary v, same;
    char got[512], text[512] = "";
    count_texts(&counts);
    for (int most = 16; most <= all + 1; most++) {
        cr_assert(vocabulary_build(&counts, most, region, &v) == ST_OK, "%s", status_message());
        cr_expect(v.table.count == (most < all ? most : all) && !strcmp(v.name, "built"));
        for (int i = 0; i < v.table.count; i++)
            cr_expect(!strcmp(token(&v, i, got), expected[i]), "%d: %s, not %s", i, got, expected[i]);
    }
    cr_expect(vocabulary_build(&counts, 15, region, &v) == ST_SPEC);
    cr_expect(strstr(status_message(), "data.vocabulary_size: 15; expected: at least 16"), "%s", status_message());
    /* Read back from a file, it is the same and has the same digest. */
    for (int i = 0; i < all; i++) strcat(strcat(text, expected[i]), "\n");
    cr_assert(vocabulary_build(&counts, all, region, &v) == ST_OK && read_as(text, strlen(text), &same) == ST_OK);
    cr_expect(!strcmp(v.sha256, same.sha256) && !memcmp(v.special, same.special, sizeof v.special));
}

Test(vocabulary, a_token_table_finds_every_token)
{
    struct token_table table = {.region = region};
    char text[32];
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < 100000; i++) {
            snprintf(text, sizeof text, "%x", (unsigned)i * 2654435761u);
            cr_assert(token_table_add(&table, text, strlen(text)) == i);
        }
    cr_expect(token_table_find(&table, TEXT("none of them")) == -1 && table.count == 100000);
}
