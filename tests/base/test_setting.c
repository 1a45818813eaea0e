/* Fields: what is read and what is refused, judged by a list; that what is printed reads back; that every table of the
 * project can be walked. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/region.h"
#include "base/setting.h"
#include "base/text.h"
#include "datasets/dataset.h"
#include "model/layer.h"
#include "model/optimizer.h"
#include "policies/policy.h"
#include "train/learning_rate.h"

static struct region *region;

static void begin(void) { cr_assert((region = region_create()) != NULL); }
static void end(void) { region_destroy(region); }

TestSuite(setting, .init = begin, .fini = end);

struct all {
    int64_t integer;
    double real;
    bool truth;
    uint64_t bytes;
    int choice;
    const char *text;
    struct setting_list ints, texts, reals;
};
static const char *const colours[] = {"red", "green", "blue", NULL};
enum { INTEGER, REAL, TRUTH, BYTES, CHOICE, TEXT, WORD, INTS, TEXTS, LIST_OF_REALS };
static const struct setting keys[] = {
    [INTEGER] = {"integer", SETTING_INT, offsetof(struct all, integer), -5, 0x1p63, "7", NULL, "an int"},
    [REAL] = {"real", SETTING_REAL, offsetof(struct all, real), -1e308, 1e308, "", NULL, "a real"},
    [TRUTH] = {"truth", SETTING_BOOL, offsetof(struct all, truth), 0, 0, "true", NULL, "a bool"},
    [BYTES] = {"bytes", SETTING_BYTES, offsetof(struct all, bytes), 0, 0, "1.5KiB", NULL, "a size"},
    [CHOICE] = {"choice", SETTING_CHOICE, offsetof(struct all, choice), 0, 0, "blue", colours, "a choice"},
    [TEXT] = {"text", SETTING_TEXT, offsetof(struct all, text), 0, 0, "", NULL, "a text"},
    [WORD] = {"word", SETTING_TEXT, offsetof(struct all, text), 0, 0, "green", colours, "a schedule"},
    [INTS] = {"ints", SETTING_INTS, offsetof(struct all, ints), 1, 3, "[1, 2]", NULL, "ints"},
    [TEXTS] = {"texts", SETTING_TEXTS, offsetof(struct all, texts), 0, 0, "", NULL, "texts"},
    [LIST_OF_REALS] = {"reals", SETTING_REALS, offsetof(struct all, reals), 0, 2, "", NULL, "reals"},
    {.key = NULL}};

Test(setting, reads_what_it_should)
{
    static const struct {
        int setting;
        const char *text;
        double value; /* exact in all cases here */
    } cases[] = {
        {INTEGER, "0", 0},
        {INTEGER, "64", 64},
        {INTEGER, "-5", -5},
        {REAL, "0.01", 0.01},
        {REAL, "-3", -3},
        {REAL, "1e3", 1000},
        {REAL, "2.5E-1", 0.25},
        {REAL, "0", 0},
        {REAL, "1e+2", 100},
        {REAL, "0e999", 0},
        {REAL, "5e-324", 5e-324},
        {TRUTH, "true", 1},
        {TRUTH, "false", 0},
        {BYTES, "4096", 4096},
        {BYTES, "64MiB", 67108864},
        {BYTES, "16GB", 16e9},
        {BYTES, "1.5GiB", 1610612736},
        {BYTES, "0", 0},
        {BYTES, "0.1GB", 1e8},
        {BYTES, "7B", 7},
        {BYTES, "2kB", 2000},
        {BYTES, "2KB", 2000},
        {BYTES, "5KiB", 5120},
        {BYTES, "3MB", 3e6},
        {BYTES, "3TB", 3e12},
        {BYTES, "3TiB", 3298534883328},
        {CHOICE, "red", 0},
        {CHOICE, "green", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct all all = {0};
        const struct setting *f = &keys[cases[i].setting];
        cr_assert(setting_set(f, &all, cases[i].text, region) == ST_OK, "%s: %s", cases[i].text, status_message());
        double got[] = {[INTEGER] = (double)all.integer,
                        [REAL] = all.real,
                        [TRUTH] = all.truth,
                        [BYTES] = (double)all.bytes,
                        [CHOICE] = all.choice};
        cr_expect(got[cases[i].setting] == cases[i].value, "%s read as %g", cases[i].text, got[cases[i].setting]);
    }
    struct all all;
    cr_assert(setting_set(&keys[INTEGER], &all, "9223372036854775807", region) == ST_OK && all.integer == INT64_MAX);
    cr_assert(setting_set(&keys[BYTES], &all, "18446744073709551615", region) == ST_OK && all.bytes == UINT64_MAX);
    cr_assert(setting_set(&keys[BYTES], &all, "16777215.999999TiB", region) == ST_SPEC); /* not whole */
    cr_assert(setting_set(&keys[BYTES], &all, "16777215.5TiB", region) == ST_OK);
    cr_expect(all.bytes == UINT64_MAX - (UINT64_C(1) << 39) + 1);
}

Test(setting, refuses_what_it_should)
{
    static const struct {
        int setting;
        const char *texts[16];
        const char *message;
    } cases[] = {
        {INTEGER,
         {"64x", "x64", "6 4", " 64", "64 ", "+5", "0x10", "1e3", "1.0", "", "-", "--1", "-x", "1_000"},
         "is not an integer"},
        {INTEGER, {"010", "00", "-01", "-0"}, "has a leading zero"},
        {INTEGER, {"9223372036854775808", "99999999999999999999999"}, "does not fit 64 bits"},
        {INTEGER, {"-6"}, "is out of range; expected an integer of at least -5"},
        {REAL, {"1e400", "-1e400"}, "is too large for a double"},
        {REAL, {"1e-400"}, "is too small for a double"},
        {REAL,
         {"nan", "NaN", ".nan", "inf", "-inf", ".5", "5.", "1e", "1e+", "0x1p3", "+1", "1,5", "1.5f", "", "1 "},
         "is not a number"},
        {REAL, {"01", "00.5"}, ""},
        {TRUTH, {"yes", "no", "True", "TRUE", "on", "1", "0", "", "truely"}, "expected true or false"},
        {BYTES,
         {"-1", "+1", "1e9", "MiB", "", "1.MiB", "0x10", "01MiB", "1PB", "16 PB", "G"},
         "is not a size; expected a size such as 64MiB"},
        {BYTES, {"64Mb", "64 MB", "64M", "64m"}, "is not a size (did you mean '64MB'?); expected a size such as 64MiB"},
        {BYTES, {"1.5gib", "1.5Gi", "1.5 GiB"}, "is not a size (did you mean '1.5GiB'?); "},
        {BYTES, {"0.3KiB", "1.5", "0.1B"}, "is not a whole number of bytes"},
        {BYTES,
         {"18446744073709551616", "16777216TiB", "18446744.1TB", "18446744073709551615KiB", "17179869184GiB"},
         "does not fit 64 bits"},
        {BYTES, {"1.0000001TB"}, "has more than 6 decimals"},
        {CHOICE, {"gren"}, "is not known (did you mean 'green'?); expected one of red|green|blue"},
        {CHOICE, {"yellow", "", "redgreen"}, "is not known; expected one of red|green|blue"},
        {CHOICE, {"Red"}, "is not known (did you mean 'red'?); expected one of red|green|blue"},
        {WORD, {"rde"}, "(did you mean 'red'?); expected one of red|green|blue"},
        {TEXT, {""}, "is empty; expected a text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (const char *const *text = cases[i].texts; *text; text++) {
            struct all all, untouched;
            memset(&all, 0x5A, sizeof all);
            memset(&untouched, 0x5A, sizeof untouched);
            cr_expect(setting_set(&keys[cases[i].setting], &all, *text, region) == ST_SPEC, "'%s' was read", *text);
            cr_expect(strstr(status_message(), cases[i].message) != NULL, "'%s': %s", *text, status_message());
            cr_expect(!memcmp(&all, &untouched, sizeof all), "'%s' left something", *text);
        }
}

Test(setting, a_long_wrong_value_is_cut_between_characters)
{
    char text[400] = "";
    for (int i = 0; i < 100; i++) strcat(text, i % 2 ? "\xC3\xA9" : "e");
    struct all all;
    cr_assert(setting_set(&keys[INTEGER], &all, text, region) == ST_SPEC);
    const char *end = strstr(status_message(), "'...");
    cr_assert(end && end - status_message() <= 62);
    cr_expect((end[-1] & 0x80) == 0 || ((unsigned char)end[-2] == 0xC3 && (unsigned char)end[-1] == 0xA9));
}

Test(setting, lists)
{
    struct all all = {0};
    int bad;
    static const char *const numbers[] = {"3", "0", "12"}, *const wrong[] = {"3", "x"}, *const words[] = {"a b", "c"};
    cr_assert(setting_set_list(&keys[INTS], &all, 3, numbers, region, &bad) == ST_OK);
    cr_expect(all.ints.count == 3 && all.ints.ints[0] == 3 && all.ints.ints[1] == 0 && all.ints.ints[2] == 12);
    cr_expect(!strcmp(setting_print(&keys[INTS], &all, region), "[3, 0, 12]"));
    cr_expect(setting_set_list(&keys[INTS], &all, 2, wrong, region, &bad) == ST_SPEC && bad == 1);
    cr_expect(all.ints.count == 3);
    cr_expect(setting_set_list(&keys[INTS], &all, 0, NULL, region, &bad) == ST_SPEC && bad == -1);
    cr_expect(strstr(status_message(), "0 items; expected a list of 1 to 3 integers") != NULL, "%s", status_message());
    cr_assert(setting_set_list(&keys[TEXTS], &all, 2, words, region, &bad) == ST_OK);
    cr_expect(!strcmp(setting_print(&keys[TEXTS], &all, region), "[\"a b\", c]"));
    cr_assert(setting_set_list(&keys[LIST_OF_REALS], &all, 2, (const char *[]){"0.5", "3"}, region, &bad) == ST_OK);
    cr_expect(all.reals.count == 2 && all.reals.reals[0] == 0.5 && all.reals.reals[1] == 3);
    cr_expect(!strcmp(setting_print(&keys[LIST_OF_REALS], &all, region), "[0.5, 3]"));
    struct all other = {0};
    setting_share(&keys[LIST_OF_REALS], &other, &keys[LIST_OF_REALS], &all);
    cr_expect(other.reals.count == 2 && other.reals.reals == all.reals.reals && !other.texts.count);
    cr_expect(setting_set_list(&keys[LIST_OF_REALS], &all, 2, (const char *[]){"1", "-1"}, region, &bad) == ST_SPEC &&
              bad == 1);
    cr_expect(setting_set_list(&keys[LIST_OF_REALS], &all, 2, (const char *[]){"1", "x"}, region, &bad) == ST_SPEC &&
              bad == 1);
    cr_expect(setting_set(&keys[LIST_OF_REALS], &all, "x", region) == ST_SPEC &&
              strstr(status_message(), "'x' is no list"));
    cr_expect(!strcmp(setting_expected(&keys[LIST_OF_REALS], region), "a list of 0 to 2 numbers"));
    cr_assert(setting_set(&keys[INTS], &all, "9", region) == ST_OK);
    cr_expect(all.ints.count == 1 && all.ints.ints[0] == 9);
}

Test(setting, defaults)
{
    struct all all;
    memset(&all, 0xFF, sizeof all);
    cr_assert(setting_defaults(keys, &all, region) == ST_OK, "%s", status_message());
    cr_expect(all.integer == 7 && isnan(all.real) && all.truth && all.bytes == 1536 && all.choice == 2);
    cr_expect(!strcmp(all.text, "green")); /* the last row of the member decides */
    cr_expect(all.ints.count == 2 && all.ints.ints[1] == 2 && all.texts.count == 0);
    cr_expect(setting_unset(&keys[REAL], &all) && setting_unset(&keys[TEXTS], &all));
    cr_expect(!setting_unset(&keys[INTEGER], &all) && !setting_unset(&keys[INTS], &all));
    all.integer = -6;
    cr_expect(setting_unset(&keys[INTEGER], &all)); /* a value outside its range means unset */
}

static uint64_t next(uint64_t *state) { return *state = *state * 6364136223846793005u + 1442695040888963407u; }

Test(setting, what_is_printed_reads_back)
{
    uint64_t state = 1;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = next(&state) ^ next(&state) >> 29;
        struct all all = {.integer = (int64_t)(bits >> (i % 60 + 1)), .bytes = bits << i % 50}, again = {0};
        memcpy(&all.real, &bits, sizeof all.real);
        if (!isfinite(all.real) || fabs(all.real) > 1e308) all.real = (double)bits * 0x1p-40;
        for (int f = 0; f <= BYTES; f++) {
            const char *text = setting_print(&keys[f], &all, region);
            cr_assert(setting_set(&keys[f], &again, text, region) == ST_OK, "%s: %s", text, status_message());
        }
        cr_assert(all.integer == again.integer && all.bytes == again.bytes && all.truth == again.truth);
        cr_assert(!memcmp(&all.real, &again.real, sizeof all.real), "%a became %a", all.real, again.real);
    }
}

Test(setting, texts_are_quoted_where_yaml_would_take_them_for_something_else)
{
    static const struct {
        const char *text, *quoted;
    } cases[] = {{"conv1_1", "conv1_1"}, {"models/a.yaml", "models/a.yaml"},
                 {"a b", "\"a b\""},     {"true", "\"true\""},
                 {"No", "\"No\""},       {"nothing", "nothing"},
                 {"64", "\"64\""},       {"", "\"\""},
                 {"a: b", "\"a: b\""},   {"say \"x\\\"", "\"say \\\"x\\\\\\\"\""},
                 {"-a", "\"-a\""},       {"block[0]", "\"block[0]\""},
                 {"null", "\"null\""},   {"\x01", "\"\\x01\""},
                 {".5", "\".5\""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = text_quote(cases[i].text, region);
        cr_expect(!strcmp(got, cases[i].quoted), "%s became %s", cases[i].text, got);
    }
}

Test(setting, near_misses)
{
    static const char *const words[] = {"segments", "store_all", "sqrt", "every", "manual",
                                        "cpu",      "cuda",      "adam", "adamw", NULL};
    static const struct {
        const char *text, *word;
    } cases[] = {{"segmets", "segments"},
                 {"segmentss", "segments"},
                 {"sgements", "segments"},
                 {"sqrtn", "sqrt"},
                 {"storeall", "store_all"},
                 {"Every", "every"},
                 {"SQRT", "sqrt"},
                 {"adamW", "adamw"},
                 {"ADAN", "adam"},
                 {"gpu", "cuda"},
                 {"Host", "cpu"},
                 {"dense", NULL},
                 {"auto", NULL},
                 {"s", NULL},
                 {"", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *word = cases[i].word;
        char suggestion[TEXT_SUGGESTION], expected[TEXT_SUGGESTION] = "";
        if (word) snprintf(expected, sizeof expected, " (did you mean '%s'?)", word);
        cr_expect_str_eq(text_suggestion(cases[i].text, words, suggestion), expected);
    }
    char longer[200];
    memset(longer, 's', sizeof longer);
    longer[sizeof longer - 1] = 0;
    char suggestion[TEXT_SUGGESTION];
    cr_expect_str_empty(text_suggestion(longer, words, suggestion));
}

/* Every row of a table: a preset that can be read, within its range or meant as unset, that prints and reads back. */
static void walk(const char *what, const struct setting *table, void *object, size_t size)
{
    memset(object, 0xA5, size);
    cr_assert(setting_defaults(table, object, region) == ST_OK, "%s: %s", what, status_message());
    for (const struct setting *f = table; f && f->key; f++) {
        cr_expect(f->doc && *f->doc, "%s.%s says nothing of itself", what, f->key);
        cr_expect(f->type != SETTING_CHOICE || f->values, "%s.%s has no words", what, f->key);
        cr_expect(setting_find(table, f->key) == f, "%s.%s twice", what, f->key);
        cr_expect(setting_expected(f, region) != NULL);
        if (!f->preset || setting_unset(f, object) || setting_is_list(f)) continue;
        const char *text = setting_print(f, object, region);
        cr_expect(setting_set(f, object, text, region) == ST_OK, "%s.%s: %s", what, f->key, status_message());
        cr_expect(!strcmp(text, setting_print(f, object, region)), "%s.%s: %s", what, f->key, text);
    }
}

Test(setting, every_table_of_the_project)
{
    char layer[256] __attribute__((aligned(16)));
    struct dataset_settings dataset;
    struct policy_settings policy;
    struct optimizer_settings optim;
    for (int i = 0; layer_table[i]; i++) walk(layer_table[i]->name, layer_table[i]->keys, layer, sizeof layer);
    for (int i = 0; dataset_table[i]; i++)
        walk(dataset_table[i]->name, dataset_table[i]->keys, &dataset, sizeof dataset);
    for (int i = 0; policy_table[i]; i++) walk(policy_table[i]->name, policy_table[i]->keys, &policy, sizeof policy);
    struct learning_rate_settings rates;
    for (int i = 0; learning_rate_table[i]; i++)
        walk(learning_rate_table[i]->name, learning_rate_table[i]->keys, &rates, sizeof rates);
    for (int i = 0; optimizer_table[i]; i++)
        walk(optimizer_table[i]->name, optimizer_table[i]->keys, &optim, sizeof optim);
}
