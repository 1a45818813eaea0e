#include "base/units.h"

#include <stdio.h>
#include <string.h>

/* value divided by base until it is below it, with three or four significant digits. */
static char *scaled_text(double value, double base, const char *const *names, char text[UNIT_TEXT])
{
    int unit = 0;
    while (value >= base && names[unit + 1]) {
        value /= base;
        unit++;
    }
    int digits = unit == 0 ? 0 : value < 10 ? 2 : value < 1000 ? 1 : 0;
    snprintf(text, UNIT_TEXT, "%.*f %s", digits, value, names[unit]);
    return text;
}

char *bytes_text(double bytes, char text[UNIT_TEXT])
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", NULL};
    return scaled_text(bytes, 1024, names, text);
}

char *exact_bytes_text(size_t bytes, char text[UNIT_TEXT])
{
    const size_t length = strlen(bytes_text((double)bytes, text));
    if (bytes >= 1024) snprintf(text + length, UNIT_TEXT - length, " (%zu bytes)", bytes);
    return text;
}

char *flops_text(double flops, char text[UNIT_TEXT])
{
    static const char *const names[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", NULL};
    return scaled_text(flops, 1000, names, text);
}

char *duration_text(uint64_t ns, char text[UNIT_TEXT])
{
    double seconds = (double)ns * 1e-9;
    if (seconds >= 120) {
        uint64_t whole = (ns + 500000000) / 1000000000;
        snprintf(text, UNIT_TEXT, "%llu min %02llu s", (unsigned long long)(whole / 60),
                 (unsigned long long)(whole % 60));
    } else if (seconds >= 1) {
        snprintf(text, UNIT_TEXT, "%.*f s", seconds < 10 ? 2 : 1, seconds);
    } else if (seconds >= 1e-3) {
        snprintf(text, UNIT_TEXT, "%.1f ms", seconds * 1e3);
    } else {
        snprintf(text, UNIT_TEXT, "%.0f us", seconds * 1e6);
    }
    return text;
}
