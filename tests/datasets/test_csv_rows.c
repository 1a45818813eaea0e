/* CSV files against RFC 4180: texts with their rows, or with the error. */
#include "datasets/csv_rows.h"

#include "tests/support/dataset_files.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Rows as "line:field|field;", fields bounded by their bytes. */
struct rows {
    char text[4096];
    int count;
};

static enum status take(void *context, const struct csv_row *row)
{
    struct rows *rows = context;
    size_t used = strlen(rows->text);
    snprintf(rows->text + used, sizeof rows->text - used, "%lld:%.*s|%.*s;", (long long)row->line,
             (int)row->field[0].bytes, row->field[0].text, (int)row->field[1].bytes, row->field[1].text);
    rows->count++;
    return ST_OK;
}

static enum status read_as(const char *text, size_t bytes,
                           enum status (*taker)(void *context, const struct csv_row *row), struct rows *rows)
{
    static const char *const columns[] = {"b", "a", NULL};
    static const struct dataset_kind kind = {.name = "a test"};
    struct dataset_file file;
    struct dataset dataset = {.kind = &kind, .region = region_create(), .file = &file};
    struct files_handle handle;
    hand_write("rows.csv", text, bytes, false);
    cr_assert(files_open(&dataset, hand_made_folder(), "rows.csv", &handle) == ST_OK, "%s", status_message());
    memset(rows, 0, sizeof *rows);
    enum status status = csv_rows(&handle, columns, taker, rows);
    close(handle.descriptor);
    region_destroy(dataset.region);
    return status;
}

Test(csv_rows, follow_rfc_4180)
{
    static const struct {
        const char *text, *rows;
    } cases[] = {
        {"a,b\n1,2\n", "2:2|1;"},
        {"a,b\r\n1,2\r\n3,4", "2:2|1;3:4|3;"},
        {"a,c,b,d\n1,2,3,4\n", "2:3|1;"},
        {"\"a\",\"b\"\n\"1\",\"2\"", "2:2|1;"},
        {"a,b\n\"x, \"\"y\"\"\",\"l1\nl2\r\nl3\"\nnext,row\n", "2:l1\nl2\r\nl3|x, \"y\";5:row|next;"},
        {"a,b\n 1 ,\t2 \n", "2:\t2 | 1 ;"}, /* spaces belong to the field */
        {"a,b\n,\n\"\",\"\"\n", "2:|;3:|;"},
        {"\n\r\na,b\n\n\n1,2\n\r\n\n3,4\n\n", "6:2|1;9:4|3;"},
        {"\xEF\xBB\xBF"
         "a,b\n1,2\n",
         "2:2|1;"},
        {"\xEF\xBB\xBF\"a\",b\n1,2\n", "2:2|1;"},
        {"a,b\n\"\"\"\"\"\",'\n", "2:'|\"\";"},
        {"a,b\n", ""},
        {"a,b", ""},
    };
    struct rows rows;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum status status = read_as(cases[i].text, strlen(cases[i].text), take, &rows);
        cr_expect(status == ST_OK, "%s: %s", cases[i].text, status_message());
        cr_expect(strcmp(rows.text, cases[i].rows) == 0, "%s: %s", cases[i].text, rows.text);
    }
}

Test(csv_rows, malformed_files_are_refused_by_line)
{
    static const struct {
        const char *text, *why;
        int rows; /* given before the error */
    } cases[] = {
        {"a,b\n1,2\n1,2,3\n", ":3: 3 fields; expected: 2, as in the header", 1},
        {"a,b\n\n1\n", ":3: 1 fields; expected: 2", 0},
        {"a,b\n\"x\ny\",2\n\"x\ny\"\n", ":4: 1 fields; expected: 2", 1},
        {"a,b\n1,2\n\"open,2\n3,4\n", ":3: a quote is not closed in the row that begins here", 1},
        {"a,b\n1,2\n3,\"4\"\"\n", ":3: a quote is not closed in the row that begins here", 1},
        {"a,b\n1,x\"y\n", ":2: a misplaced quote in the row that begins on line 2", 0},
        {"a,b\n\"1\" ,2\n", ":2: a misplaced quote", 0},
        {"a,b\n\"1,2\n3,\"4\"\n", ":3: a misplaced quote in the row that begins on line 2", 0},
        {"a,c\n1,2\n", ":1: no column is called 'b'; expected: a header with the names", 0},
        {"\n\nb\n1\n", ":3: no column is called 'a'", 0},
        {"a,b,a\n1,2,3\n", ":1: two columns are called 'a'", 0},
        {"A,b\n1,2\n", ":1: no column is called 'a'", 0},
        {"\n\n", ": no header; expected: the names of the columns", 0},
        {"a,b\n1,2\r3,4,5\n", ":2: 3 fields", 1}, /* a CR alone ends a row too */
    };
    struct rows rows;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_expect(read_as(cases[i].text, strlen(cases[i].text), take, &rows) == ST_FAILED, "%s", cases[i].text);
        const char *named = strstr(status_message(), "rows.csv");
        cr_expect(named && strncmp(named + 8, cases[i].why, strlen(cases[i].why)) == 0, "%s: %s", cases[i].text,
                  status_message());
        cr_expect(rows.count == cases[i].rows, "%s: %d rows", cases[i].text, rows.count);
    }
}

Test(csv_rows, fields_may_hold_zero_bytes)
{
    static const char text[] = "a,b\nx\0y,\"\0\"\n";
    struct rows rows;
    cr_assert(read_as(text, sizeof text - 1, take, &rows) == ST_OK && rows.count == 1, "%s", status_message());
    cr_expect(strncmp(rows.text, "2:", 2) == 0, "%s", rows.text);
}

Test(csv_rows, are_read_from_large_files)
{
    enum { ROWS = 5000, LONG = 2 << 20 };
    char *text = malloc(LONG + 64), *at = text + sprintf(text, "a,b\r\n");
    struct rows rows;
    for (int i = 0; i < ROWS; i++) at += sprintf(at, "\"%d\r\n\"\"%*d\",%d\r\n", i, i % 97 + 1, i, i);
    rows.count = 0;
    enum status status = read_as(text, (size_t)(at - text), take, &rows);
    cr_expect(status == ST_OK && rows.count == ROWS, "%d: %s", rows.count, status_message());
    at += sprintf(at, "1,2,3");
    cr_expect(read_as(text, (size_t)(at - text), take, &rows) == ST_FAILED);
    char where[64];
    snprintf(where, sizeof where, ":%d: 3 fields", 2 * ROWS + 2);
    cr_expect(strstr(status_message(), where), "%s", status_message());
    memset(text, 'x', LONG);
    memcpy(text, "a,b\n1,2\n\"", 9);
    cr_expect(read_as(text, LONG, take, &rows) == ST_FAILED);
    cr_expect(strstr(status_message(), ":3: a quote is not closed in the row that begins here"), "%s",
              status_message());
    free(text);
}

static enum status refuse(void *context, const struct csv_row *row)
{
    struct rows *rows = context;
    return ++rows->count == 2 ? fail(ST_DIFFERS, "line %lld", (long long)row->line) : ST_OK;
}

Test(csv_rows, stop_when_take_fails)
{
    struct rows rows;
    cr_expect(read_as("a,b\n1,2\n3,4\n5,6\n\"", 18, refuse, &rows) == ST_DIFFERS);
    cr_expect(rows.count == 2 && strcmp(status_message(), "line 3") == 0, "%s", status_message());
}
