/* The index of texts beside a search through all of them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"

enum { ADDED = 5000, DIFFERENT = 700 };

static char text[ADDED][12];

static void expect_entries(const struct names *names, const char *wanted, int added)
{
    int entry = -1;
    for (int i = added - 1; i >= 0; i--) {
        if (strcmp(text[i], wanted) != 0) continue;
        entry = names_next(names, wanted, entry);
        cr_assert(entry >= 0, "'%s': number %d is not found", wanted, i);
        cr_expect(names_number(names, entry) == i, "'%s': %d, expected %d", wanted, names_number(names, entry), i);
    }
    cr_expect(entry < 0 ? names_find(names, wanted) == -1 : names_next(names, wanted, entry) == -1, "'%s'", wanted);
}

/* Texts come several times, and some are prefixes of others. */
Test(names, the_newest_number_comes_first)
{
    struct region *region = region_create();
    struct names *names = names_create(region);
    unsigned random = 1;
    for (int i = 0; i < ADDED; i++) {
        random = random * 1664525 + 1013904223;
        snprintf(text[i], sizeof text[i], "n%u", (random >> 8) % DIFFERENT);
        names_add(names, text[i], i);
        if (i % 500 == 0) expect_entries(names, text[i], i + 1);
    }
    char wanted[12];
    for (int i = -1; i <= DIFFERENT; i++) {
        snprintf(wanted, sizeof wanted, i < 0 ? "" : "n%d", i);
        expect_entries(names, wanted, ADDED);
    }
    region_destroy(region);
}
