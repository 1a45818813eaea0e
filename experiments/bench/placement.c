/* Places instances of static placement and prints their extents: placement FILE..., each a CSV of id, first instant,
 * instant after the last, bytes (MiniMalloc's format, a line of titles first). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "plan/placement.h"
#include "plan/placement_search.h"

enum { BUFFERS_MAX = 1 << 16 };

/* Reads the file into room for BUFFERS_MAX; returns how many buffers there are, -1: it is no such file. */
static int read_buffers(const char *path, struct buffer *buffer)
{
    char line[256];
    int buffers = 0;
    FILE *in = fopen(path, "r");
    bool good = in && fgets(line, sizeof line, in);
    while (good && fgets(line, sizeof line, in)) {
        struct buffer b = {.bytes = 0};
        good = buffers < BUFFERS_MAX && sscanf(line, "%*d,%d,%d,%zu", &b.birth, &b.death, &b.bytes) == 3 &&
               b.birth >= 0 && b.birth < b.death && b.bytes && b.bytes < (size_t)1 << 58;
        b.death--;
        if (good) buffer[buffers++] = b;
    }
    if (in) fclose(in);
    return good ? buffers : -1;
}

int main(int arguments, char **argument)
{
    static struct buffer buffer[BUFFERS_MAX];
    printf("%-40s %8s %12s %12s %12s %12s %8s\n", "file", "buffers", "live peak", "heuristic", "bytes", "at least",
           "CPU s");
    for (int i = 1; i < arguments; i++) {
        const int buffers = read_buffers(argument[i], buffer);
        if (buffers < 0) {
            fprintf(stderr, "%s: expected lines of id, first instant, instant after the last, bytes\n", argument[i]);
            return 2;
        }
        int ops = 1;
        for (int k = 0; k < buffers; k++)
            if (buffer[k].death >= ops) ops = buffer[k].death + 1;
        const clock_t start = clock();
        size_t *live = calloc((size_t)ops + 1, sizeof *live);
        if (!live) return 3;
        const size_t peak = buffers_live(buffer, buffers, ops, live), heuristic = placement_assign(buffer, buffers);
        size_t bound = peak;
        const size_t bytes = placement_search(buffer, buffers, heuristic, &bound);
        printf("%-40s %8d %12zu %12zu %12zu %12zu %8.2f\n", argument[i], buffers, peak, heuristic, bytes, bound,
               (double)(clock() - start) / CLOCKS_PER_SEC);
        fflush(stdout);
        free(live);
    }
    return 0;
}
