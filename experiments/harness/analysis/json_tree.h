/* Numbers of an analysis as one tree of JSON: it is built once, written as JSON, and shown as text by
 * report/text_table.h.
 *
 *     json_t *row = OBJECT(KEY("policy", policy->name),        // a text; NULL: null
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

#define JSON_VALUE(value)                                                                                              \
    _Generic((value),                                                                                                  \
        int: json_of_integer,                                                                                           \
        long: json_of_integer,                                                                                          \
        long long: json_of_integer,                                                                                     \
        unsigned: json_of_unsigned,                                                                                     \
        unsigned long: json_of_unsigned,                                                                                \
        float: json_of_real,                                                                                            \
        double: json_of_real,                                                                                           \
        char *: json_of_text,                                                                                           \
        const char *: json_of_text,                                                                                     \
        json_t *: json_of_tree)(value)

#define PUT(object, key, value) json_object_set_new((object), (key), JSON_VALUE(value))
#define ADD(array, value)       json_array_append_new((array), JSON_VALUE(value))

/* A new object of keys, each as KEY("name", value); the same added to an object, which is returned. */
#define OBJECT(...)          PUT_ALL(json_object(), __VA_ARGS__)
#define PUT_ALL(object, ...) json_put((object), (const struct json_member[]){__VA_ARGS__, {NULL, NULL}})
#define KEY(key, value)                                                                                                \
    (struct json_member) { (key), JSON_VALUE(value) }
struct json_member {
    const char *key;
    json_t *value;
};
json_t *json_put(json_t *object, const struct json_member *json_member);

json_t *json_of_integer(int64_t value);
json_t *json_of_unsigned(uint64_t value); /* null above INT64_MAX */
json_t *json_of_real(double value);
json_t *json_of_text(const char *text);
json_t *json_of_tree(json_t *tree);

/* The values of a tree's members; 0 or NULL where there is none. */
double json_number_at(const json_t *object, const char *key);
const char *json_string_at(const json_t *object, const char *key);

/* Declares one, and runs the statement behind it for each of array's elements, whose number is i; for none where array
 * is NULL. */
#define EACH(array, i, one)                                                                                            \
    json_t *one;                                                                                                       \
    for (size_t i = 0; (one = json_array_get((array), i)); i++)

/* Appends a formatted text to an array. */
void json_note(json_t *texts, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A text of any origin, with '?' for what is no printable UTF-8; those that h5_read() returns are plain already. */
json_t *json_of_plain(const char *text);

/* An object of whole numbers. */
json_t *json_named(const char *const *name, const size_t *value, int count);

/* The rows of an object that has an array a column; other members are left out. */
json_t *json_rows(const json_t *columns);

/* Writes the tree as indented JSON and frees it. */
void json_write(json_t *json, FILE *out);

/* The same for an object of a command, whose first member is "schema": "rematch/NAME/1". The number goes up where a
 * member changes its meaning or is gone. */
void json_answer(json_t *json, const char *name, FILE *out);
