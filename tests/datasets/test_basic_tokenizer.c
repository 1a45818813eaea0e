/* Words of texts; the expected ones follow by hand from the description of the algorithm. */
#include "datasets/text/tokenizer.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

struct words {
    char text[1024]; /* "one|two" */
    int count;
};

static void take(void *context, const char *word, size_t bytes)
{
    struct words *words = context;
    size_t used = strlen(words->text);
    cr_assert(bytes > 0);
    snprintf(words->text + used, sizeof words->text - used, "%s%.*s", words->count++ ? "|" : "", (int)bytes, word);
}

/* sizeof counts the zero that ends the text; zeros within it are part of it. */
#define TEXT(text) text, sizeof(text) - 1

static const struct {
    const char *text;
    size_t bytes;
    const char *words;
} cases[] = {
    {TEXT(""), ""},
    {TEXT(" \t\r\n "), ""},
    {TEXT("Hello,World!"), "hello|,|world|!"},
    {TEXT("  two\twords\r\nand\nmore "), "two|words|and|more"},
    {TEXT("don't stop..."), "don|'|t|stop|.|.|."},
    {TEXT("@User_1 #tag http://x.co/4ab?q=1&r"), "@|user|_|1|#|tag|http|:|/|/|x|.|co|/|4ab|?|q|=|1|&|r"},
    {TEXT("$5+3<4^2`~|"), "$|5|+|3|<|4|^|2|`|~||"}, /* symbols by category, punctuation in ASCII */
    {TEXT("don\u2019t \u201Cquote\u201D \u2026 \u00BFqu\u00E9?"),
     "don|\u2019|t|\u201C|quote|\u201D|\u2026|\u00BF|que|?"},
    {TEXT("5\u20AC \u00A35 a\u00D7b \u00A9"), "5\u20AC|\u00A35|a\u00D7b|\u00A9"}, /* symbols above ASCII are not */
    {TEXT("\u00C9cole na\u00EFve \u00C5ngstr\u00F6m"), "ecole|naive|angstrom"},
    {TEXT("e\u0301\u0302 \u0301\u0301 x"), "e|x"},                /* marks alone leave no word */
    {TEXT("\u1EC6\u1EAD"), "ea"},                                 /* several marks at once */
    {TEXT("\u00D8re \u0141\u00F3d\u017A"), "\u00F8re|\u0142odz"}, /* strokes do not decompose */
    {TEXT("\u0130I\u0131"), "ii\u0131"},
    {TEXT("\u03A3\u039F\u03A6\u038C\u03A3"), "\u03C3\u03BF\u03C6\u03BF\u03C3"},
    {TEXT("Stra\u00DFe"), "stra\u00DFe"},
    {TEXT("\u212A\u2126"), "k\u03C9"}, /* Kelvin and Ohm */
    {TEXT("ab\u4E2D\u6587cd"), "ab|\u4E2D|\u6587|cd"},
    {TEXT("\u3400\u4DBF\u9FFF\uF900\U00020000\U0002CEAF\U0002FA1D"),
     "\u3400|\u4DBF|\u9FFF|\u8C48|\U00020000|\U0002CEAF|\U0002A600"}, /* compatibility ones decompose */
    {TEXT("\u3042\u3044 \u30A2\u30A4"), "\u3042\u3044|\u30A2\u30A4"},
    {TEXT("\u30AC"), "\u30AB"}, /* a voiced sound loses its mark */
    {TEXT("\uD55C"), "\u1112\u1161\u11AB"},
    {TEXT("\u05E9\u05C1\u05B8\u05DC\u05D5\u05B9\u05DD, \u0645\u064E\u0631\u0652\u062D\u064E\u0628\u064B\u0627\u061F"),
     "\u05E9\u05DC\u05D5\u05DD|,|\u0645\u0631\u062D\u0628\u0627|\u061F"}, /* points and vowels are marks */
    {TEXT("\u202Eabc\u202C \u200Fd"), "abc|d"},                           /* directions are controls */
    {TEXT("\uFF0C\u3002\uFF1F"), "\uFF0C|\u3002|\uFF1F"},
    {TEXT("a\U0001F600b \u2764\uFE0F ok"), "a\U0001F600b|\u2764|ok"}, /* the variation selector is a mark */
    {TEXT("\U0001F468\u200D\U0001F469"), "\U0001F468\U0001F469"},     /* a joiner is a control character */
    {TEXT("a\0b\x01\x1F\x7F"
          "c\xC2\x85\u200B\u00AD\uFEFFd\uFFFD"
          "e"),
     "abcde"},
    {TEXT("a\u00A0b\u2003c\u3000d\u2028e\u2029f\u1680g"), "a|b|c|d|e|f|g"},
    {TEXT("a\x0B"
          "b\x0C"
          "c"),
     "abc"},                       /* not white space to it, but control characters */
    {TEXT("\u037E\u1FEF"), ";|`"}, /* punctuation only once decomposed */
    {TEXT("\uE000\U0010FFFF"), "\uE000\U0010FFFF"},
};

Test(basic_tokenizer, texts_are_split_into_the_listed_words)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct words words = {"", 0};
        cr_expect(basic_tokenize(cases[i].text, cases[i].bytes, take, &words) == ST_OK, "%s", status_message());
        cr_expect(strcmp(words.text, cases[i].words) == 0, "%s: %s, not %s", cases[i].text, words.text, cases[i].words);
    }
}

/* The blocks of CJK ideographs by Unicode's charts, and neighbouring characters that are not ideographs. */
Test(basic_tokenizer, every_ideograph_of_a_block_is_a_word)
{
    static const struct {
        int32_t point;
        int words; /* of "a", the character and "b" */
    } borders[] = {{0x33FF, 1},  {0x3400, 3},  {0x4DBF, 3},  {0x4DC0, 1},  {0x4DFF, 1},  {0x4E00, 3},  {0x9FFF, 3},
                   {0xA000, 1},  {0xF8FF, 1},  {0xF900, 3},  {0xFAFF, 3},  {0xFB00, 1},  {0x1FFFD, 1}, {0x20000, 3},
                   {0x2A6DF, 3}, {0x2A6E0, 1}, {0x2A6FF, 1}, {0x2A700, 3}, {0x2B73F, 3}, {0x2B740, 3}, {0x2B81F, 3},
                   {0x2B820, 3}, {0x2CEAF, 3}, {0x2CEB0, 1}, {0x2F7FF, 1}, {0x2F800, 3}, {0x2FA1F, 3}, {0x2FA20, 1}};
    for (size_t i = 0; i < sizeof borders / sizeof *borders; i++) {
        uint8_t text[8] = "a";
        struct words words = {"", 0};
        size_t bytes = 1 + (size_t)utf8proc_encode_char(borders[i].point, text + 1);
        text[bytes++] = 'b';
        cr_expect(basic_tokenize((const char *)text, bytes, take, &words) == ST_OK, "%s", status_message());
        cr_expect(words.count == borders[i].words, "U+%04X: %s", (unsigned)borders[i].point, words.text);
    }
}

Test(basic_tokenizer, ascii_other_than_letters_and_digits_separates)
{
    for (int c = 0; c < 0x80; c++) {
        char text[] = {'a', (char)c, 'b'}, expected[16];
        struct words words = {"", 0};
        bool letter = strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", c) && c;
        bool space = c && strchr(" \t\n\r", c), control = (c < 0x20 && !space) || c == 0x7F;
        snprintf(expected, sizeof expected,
                 letter    ? "a%cb"
                 : space   ? "a|b"
                 : control ? "ab"
                           : "a|%c|b",
                 c >= 'A' && c <= 'Z' ? c + 32 : c);
        cr_expect(basic_tokenize(text, sizeof text, take, &words) == ST_OK);
        cr_expect(strcmp(words.text, expected) == 0, "%d: %s, not %s", c, words.text, expected);
    }
}

Test(basic_tokenizer, invalid_utf8_is_refused_by_byte)
{
    static const struct {
        const char *text;
        size_t bytes;
        const char *why;
    } bad[] = {
        {TEXT("ab\xFF"), "byte 3, 0xFF, is not UTF-8"},
        {TEXT("\xC3"), "byte 1, 0xC3"},
        {TEXT("x\xE2\x82"), "byte 2, 0xE2"},
        {TEXT("x\xC0\xAF"), "byte 2, 0xC0"},        /* overlong */
        {TEXT("xx\xED\xA0\x80"), "byte 3, 0xED"},   /* half of a surrogate pair */
        {TEXT("\xF4\x90\x80\x80"), "byte 1, 0xF4"}, /* over U+10FFFF */
        {TEXT("good \x80 bad"), "byte 6, 0x80"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct words words = {"", 0};
        cr_expect(basic_tokenize(bad[i].text, bad[i].bytes, take, &words) == ST_FAILED && words.count == 0);
        cr_expect(strstr(status_message(), bad[i].why) == status_message(), "%s", status_message());
    }
}
