/* Numbers with units. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { UNIT_TEXT = 48 }; /* bytes of every text below */

/* "412.3 MiB", "3.71 GiB", "96 B"; returns text. */
char *bytes_text(double bytes, char text[UNIT_TEXT]);

/* The same with the exact number: "3.71 GiB (3983582208 bytes)", "96 B". */
char *exact_bytes_text(size_t bytes, char text[UNIT_TEXT]);

/* "1.24 TFLOP", "310 kFLOP"; returns text. */
char *flops_text(double flops, char text[UNIT_TEXT]);

/* "1.82 s", "4.1 ms", "2 min 05 s"; returns text. */
char *duration_text(uint64_t ns, char text[UNIT_TEXT]);

/* The same in room of their own, which lasts as long as the block around them. */
#define BYTES_TEXT(bytes) bytes_text((double)(bytes), (char[UNIT_TEXT]){""})
#define FLOPS_TEXT(flops) flops_text((flops), (char[UNIT_TEXT]){""})
#define DURATION_TEXT(ns) duration_text((uint64_t)(ns), (char[UNIT_TEXT]){""})
