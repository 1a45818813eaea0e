/* One step of each run in the Trace Event Format (Chrome's), which Perfetto opens: a process a run, an event an op, a
 * counter of live bytes by category. An op takes its least measured time; where none was measured, 1 us. */
#include "report/report_tree.h"

static void add_event(json_t *events, const char *kind, const char *name, size_t run, double us, json_t *arguments)
{
    ADD(events, json_pack("{s:s, s:s, s:i, s:i, s:f, s:o}", "ph", kind, "name", name, "pid", (int)run + 1, "tid", 1,
                          "ts", us, "args", arguments));
}

static json_t *live_at(const json_t *live, size_t op)
{
    json_t *all = json_object(), *bytes;
    const char *category;
    json_object_foreach ((json_t *)live, category, bytes) {
        PUT(all, category, json_incref(json_array_get(bytes, op)));
    }
    return all;
}

static void add_run(json_t *events, const json_t *tree, const json_t *run, size_t number)
{
    const json_t *plan = json_array_get(json_object_get(tree, "plans"), (size_t)json_number_at(run, "plan")),
                 *ops = json_object_get(plan, "ops"), *times = json_object_get(run, "op_least_ns"),
                 *text = json_object_get(ops, "text");
    const size_t count = json_array_size(text);
    const bool timed = json_array_size(times) == count;
    double now = 0;
    add_event(events, "M", "process_name", number, 0,
              json_pack("{s:o}", "name", json_incref(json_object_get(run, "path"))));
    for (size_t i = 0; i < count; i++) {
        const size_t phase = (size_t)json_integer_value(json_array_get(json_object_get(ops, "phase"), i));
        const double us = timed ? json_number_value(json_array_get(times, i)) * 1e-3 : 1;
        add_event(events, "C", "live bytes", number, now, live_at(json_object_get(ops, "live_bytes"), i));
        add_event(events, "X", json_string_value(json_array_get(text, i)), number, now,
                  live_at(json_object_get(ops, "live_bytes"), i));
        json_t *event = json_array_get(events, json_array_size(events) - 1);
        PUT_ALL(event, KEY("dur", us), KEY("cat", report_phases[phase]));
        now += us;
    }
}

const char report_trace_begins[] = "{\n  \"displayTimeUnit\"";

void report_print_trace(const void *tree, FILE *out)
{
    json_t *events = json_array();
    EACH (json_object_get(tree, "runs"), i, run)
        if (json_is_integer(json_object_get(run, "plan"))) add_run(events, tree, run, i);
    json_write(json_pack("{s:s, s:o}", "displayTimeUnit", "ms", "traceEvents", events), out);
}
