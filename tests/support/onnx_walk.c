#include "onnx_walk.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REASONS_MOST = 40 };

struct tally {
    int ran, outside;
    struct {
        const char *text;
        int count;
    } reason[REASONS_MOST];
};

static void tally_add(struct tally *tally, const char *reason)
{
    int i = 0;
    if (reason == NULL) {
        tally->ran++;
        return;
    }
    while (tally->reason[i].text && strcmp(tally->reason[i].text, reason) != 0) i++;
    cr_assert(i < REASONS_MOST - 1);
    tally->reason[i].text = reason;
    tally->reason[i].count++;
    tally->outside++;
}

static void tally_print(const struct tally *tally)
{
    printf("of ONNX's nodes %d ran, %d are outside", tally->ran, tally->outside);
    for (int i = 0; tally->reason[i].text; i++)
        printf("%s %d for %s", i ? "," : ":", tally->reason[i].count, tally->reason[i].text);
    printf("\n");
}

static int tests_alone(const struct dirent *entry) { return strncmp(entry->d_name, "test_", 5) == 0; }

/* Calls judge for the tests in one folder of folders. */
static void walk(const char *collection, bool (*known)(const char *op_type),
                 const char *(*judge)(const struct onnx_test *test, struct region *region), struct tally *tally)
{
    struct dirent **entry;
    const int entries = scandir(collection, &entry, tests_alone, alphasort);
    cr_assert(entries > 0, "%s has no tests", collection);
    for (int i = 0; i < entries; i++) {
        struct region *region = region_create();
        struct onnx_test test;
        cr_assert(onnx_read_model(region_text(region, "%s/%s", collection, entry[i]->d_name), region, &test) == ST_OK,
                  "%s", status_message());
        if (test.nodes == 1 && known(test.op_type)) {
            cr_assert(onnx_read_operands(&test, region) == ST_OK, "%s", status_message());
            tally_add(tally, judge(&test, region));
        }
        region_destroy(region);
        free(entry[i]);
    }
    free(entry);
}

void onnx_walk(bool (*known)(const char *op_type),
               const char *(*judge)(const struct onnx_test *test, struct region *region), int least)
{
    static const char *const collections[] = {ONNX_TESTS "/node", ONNX_TESTS "/pytorch-converted",
                                              ONNX_TESTS "/pytorch-operator", ONNX_TESTS "/simple"};
    struct tally tally = {0};
    if (access(ONNX_TESTS, F_OK) != 0) {
        printf("%s is missing (Debian: libonnx-testdata): ONNX judges nothing\n", ONNX_TESTS);
        cr_skip_test("no tests of ONNX");
    }
    for (size_t i = 0; i < sizeof collections / sizeof *collections; i++) walk(collections[i], known, judge, &tally);
    tally_print(&tally);
    cr_assert(tally.ran >= least, "%d of ONNX's nodes ran, not %d", tally.ran, least);
}

void onnx_agree(const struct onnx_test *test, const char *where, const char *what, const float *ours,
                const float *theirs, int64_t count, double cancelled)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)theirs[i]));
    for (int64_t i = 0; i < count; i++) {
        const double difference = fabs((double)ours[i] - (double)theirs[i]);
        cr_assert(difference <= 1e-5 * fabs((double)theirs[i]) + cancelled * largest,
                  "%s, %s: element %lld of %s is %.9g, not %.9g", test->folder, where, (long long)i, what,
                  (double)ours[i], (double)theirs[i]);
    }
}
