/* Figures of an analysis as one tree of JSON: it is built once, written as JSON, and shown as text by
 * report/figures_text.h.
 *
 *     json_t *row = FIGURES(KEY("policy", policy->name),        // a text; NULL: null
 *                           KEY("slowdown", plan->slowdown));   // a real number; not finite: null
 *     PUT(row, "peak_bytes", plan_peak(plan));                  // a whole number
 *     PUT(row, "tensors", tensors);                             // another tree, which it takes
 *     PUT(row, "fits", json_boolean(needed <= left));
 *     ADD(rows, row);                                           // at the end of an array
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define FIGURE(value)                                                                                                  \
    _Generic((value),                                                                                                  \
        int: figure_integer,                                                                                           \
        long: figure_integer,                                                                                          \
        long long: figure_integer,                                                                                     \
        unsigned: figure_unsigned,                                                                                     \
        unsigned long: figure_unsigned,                                                                                \
        float: figure_real,                                                                                            \
        double: figure_real,                                                                                           \
        char *: figure_text,                                                                                           \
        const char *: figure_text,                                                                                     \
        json_t *: figure_tree)(value)

#define PUT(object, key, value) json_object_set_new((object), (key), FIGURE(value))
#define ADD(array, value)       json_array_append_new((array), FIGURE(value))

/* A new object of keys, each as KEY("name", value); the same added to an object, which is returned. */
#define FIGURES(...)         PUT_ALL(json_object(), __VA_ARGS__)
#define PUT_ALL(object, ...) figures_put((object), (const struct figure[]){__VA_ARGS__, {NULL, NULL}})
#define KEY(key, value)                                                                                                \
    (struct figure) { (key), FIGURE(value) }
struct figure {
    const char *key;
    json_t *value;
};
json_t *figures_put(json_t *object, const struct figure *figure);

json_t *figure_integer(int64_t value);
json_t *figure_unsigned(uint64_t value); /* null above INT64_MAX */
json_t *figure_real(double value);
json_t *figure_text(const char *text);
json_t *figure_tree(json_t *tree);

/* The values of a tree's members; 0 or NULL where there is none. */
double figure_number(const json_t *object, const char *key);
const char *figure_string(const json_t *object, const char *key);

/* Declares one, and runs the statement behind it for each of array's elements, whose number is i; for none where array
 * is NULL. */
#define EACH(array, i, one)                                                                                            \
    json_t *one;                                                                                                       \
    for (size_t i = 0; (one = json_array_get((array), i)); i++)

/* Appends a formatted text to an array. */
void figures_note(json_t *texts, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A text of any origin, with '?' for what is no printable UTF-8; those that h5_read() returns are plain already. */
json_t *figure_plain(const char *text);

/* An object of whole numbers. */
json_t *figures_named(const char *const *name, const size_t *value, int count);

/* The rows of an object that has an array a column; other members are left out. */
json_t *figures_rows(const json_t *columns);

/* Writes the tree as indented JSON and frees it. */
void figures_write(json_t *figures, FILE *out);

/* The same for an object of a command, whose first member is "schema": "rematch/NAME/1". The number goes up where a
 * member changes its meaning or is gone. */
void figures_answer(json_t *figures, const char *name, FILE *out);
