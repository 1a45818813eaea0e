/* The memory of a device: what is left, which plans are refused and suggested instead, and what a result file records.
 * The device is a backend of the host that claims to be one. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/policy_grid.h"
#include "base/units.h"
#include "job/machine.h"
#include "result/result_read.h"
#include "tests/support/made_runs.h"

static const size_t left = 123456789;

static size_t used(struct backend *backend)
{
    (void)backend;
    return left / 2;
}

static size_t available(struct backend *backend)
{
    (void)backend;
    return left;
}

/* A device needs additional static memory. */
static size_t room(const struct graph *graph, int states) { return (size_t)graph->parameters * (size_t)states; }

static const struct device_kind memory = {.used = used, .available = available};
static const struct update_kind update = {.bytes = room};

struct device {
    struct fake fake;
    struct backend_kind kind;
};

static void device_open(struct device *d, const char *results)
{
    fake_open(&d->fake, &nets[0], results);
    d->kind = *d->fake.job.backend->kind;
    d->kind.device = &memory;
    d->kind.update = &update;
    d->fake.job.backend->kind = &d->kind;
    d->fake.job.backend->device = "a device of tests";
}

Test(fits, a_device_reports_its_free_memory)
{
    struct device d;
    char folder[256];
    folder_make(folder);
    device_open(&d, folder);
    struct machine_memory found = memory_left(d.fake.job.backend);
    cr_expect(found.bytes == left && !strcmp(found.limit, "the device"), "%s", found.limit);
    d.kind.device = NULL;
    cr_expect(strcmp(memory_left(d.fake.job.backend).limit, "the device") != 0);
    fake_close(&d.fake);
    folder_remove(folder);
}

/* The least peak of all plans of the job by any policy. */
static size_t least_peak(const struct job *job)
{
    struct policy_grid grid = {.region = region_create(), .job = job, .slowdown = INFINITY};
    size_t least = SIZE_MAX;
    cr_assert(policy_grid_own(&grid) == ST_OK && policy_grid_all(&grid) == ST_OK, "%s", status_message());
    for (int i = 0; i < grid.trials; i++)
        if (grid.trial[i].plan.peak < least) least = grid.trial[i].plan.peak;
    region_destroy(grid.region);
    return least;
}

Test(fits, the_smallest_plan_is_named)
{
    static const char *const begins[] = {"the smallest plan that fits is policy ",
                                         "no policy's plan fits; the smallest is policy "};
    struct device d;
    char folder[256], text[SMALLEST_TEXT], bytes[UNIT_TEXT], end[UNIT_TEXT + 8];
    folder_make(folder);
    device_open(&d, folder);
    const size_t least = least_peak(&d.fake.job);
    snprintf(end, sizeof end, ", %s", bytes_text((double)least, bytes));
    for (size_t i = 0; i < 2; i++) {
        cr_assert(policy_grid_smallest(&d.fake.job, least - i, text) == ST_OK, "%s", status_message());
        cr_expect(!strncmp(text, begins[i], strlen(begins[i])), "%s", text);
        cr_expect(!strcmp(text + strlen(text) - strlen(end), end), "%s, not %s", text, end);
    }
    fake_close(&d.fake);
    folder_remove(folder);
}

/* The value of an attribute of the file at path. */
static uint64_t number_in(const char *path, const char *name)
{
    struct result *r;
    cr_assert(result_open(path, &r) == ST_OK, "%s", status_message());
    uint64_t value = h5_read_attribute_u64(&r->h5, "/summary", name, UINT64_MAX);
    result_close(r);
    return value;
}

Test(fits, a_result_file_names_the_device_and_its_overhead)
{
    struct device d;
    char folder[256], path[1024];
    folder_make(folder);
    device_open(&d, folder);
    const size_t ours = plan_peak(d.fake.job.plan), over = 1000;
    struct run_summary summary = {.high_water = 77, .device_start = 5, .device_used = ours + over};
    struct record *record;
    cr_assert(record_create(&d.fake.job, "variant", &record) == ST_OK, "%s", status_message());
    snprintf(path, sizeof path, "%s", record_path(record));
    cr_assert(record_finish(record, "completed", &summary, NULL) == ST_OK, "%s", status_message());
    cr_expect(number_in(path, "device_used_bytes") == ours + over && number_in(path, "device_start_bytes") == 5);
    cr_expect(number_in(path, "device_overhead_bytes") == over);
    cr_expect(number_in(path, "overhead_bytes") == 77); /* the planned memory is not the process's */
    struct result *r;
    cr_assert(result_open(path, &r) == ST_OK);
    cr_expect_str_eq(h5_read_attribute_text(&r->h5, "/provenance/gpu", "device", "", r->region), "a device of tests");
    result_close(r);
    fake_close(&d.fake);

    fake_open(&d.fake, &nets[0], folder);
    fake_write(&d.fake, "variant", 1, NULL, path);
    cr_expect(number_in(path, "device_used_bytes") == UINT64_MAX); /* a host has none */
    cr_assert(result_open(path, &r) == ST_OK);
    cr_expect(!h5_exists(&r->h5, "/provenance/gpu"));
    result_close(r);
    fake_close(&d.fake);
    folder_remove(folder);
}
