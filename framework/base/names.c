#include "base/names.h"

#include <stdint.h>
#include <string.h>

enum { BUCKETS_FIRST = 64 };

struct names {
    struct region *region;
    int entries, buckets; /* buckets: a power of two */
    struct entry {
        const char *text;
        uint64_t hash;
        int number, next; /* next: the one before it in its bucket; -1: none */
    } * entry;
    int *bucket; /* the newest entry */
};

/* FNV-1a. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    return hash ^ hash >> 32;
}

static void put(struct names *names, int entry)
{
    int *first = &names->bucket[names->entry[entry].hash & (uint64_t)(names->buckets - 1)];
    names->entry[entry].next = *first;
    *first = entry;
}

static void set_buckets(struct names *names, int buckets)
{
    NEW(names->region, names->bucket, (size_t)buckets);
    names->buckets = buckets;
    memset(names->bucket, -1, (size_t)buckets * sizeof *names->bucket);
    for (int i = 0; i < names->entries; i++) put(names, i);
}

struct names *names_create(struct region *region)
{
    struct names *names;
    NEW(region, names, 1);
    names->region = region;
    set_buckets(names, BUCKETS_FIRST);
    return names;
}

void names_add(struct names *names, const char *text, int number)
{
    if (names->entries == names->buckets) set_buckets(names, 2 * names->buckets);
    region_grow(names->region, &names->entry, names->entries, sizeof *names->entry);
    names->entry[names->entries] = (struct entry){text, hash_of(text), number, -1};
    put(names, names->entries++);
}

int names_next(const struct names *names, const char *text, int entry)
{
    const uint64_t hash = entry < 0 ? hash_of(text) : names->entry[entry].hash;
    int i = entry < 0 ? names->bucket[hash & (uint64_t)(names->buckets - 1)] : names->entry[entry].next;
    while (i >= 0 && (names->entry[i].hash != hash || strcmp(names->entry[i].text, text) != 0))
        i = names->entry[i].next;
    return i;
}

int names_number(const struct names *names, int entry) { return names->entry[entry].number; }

int names_find(const struct names *names, const char *text)
{
    const int entry = names_next(names, text, -1);
    return entry < 0 ? -1 : names->entry[entry].number;
}
