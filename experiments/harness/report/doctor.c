#include "report/commands.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/json_tree.h"
#include "base/text.h"
#include "base/units.h"
#include "build.h"
#include "console/terminal.h"
#include "job/cuda_program.h"
#include "job/machine.h"
#include "report/show.h"
#include "result/provenance.h"
#include "spec/spec_settings.h"

const char doctor_command[] = "child-backend";

enum state { STATE_OK, STATE_ABSENT, STATE_MISSING, STATE_DAMAGED }; /* ABSENT: missing, but not needed */
static const char *const state_names[] = {"ok", "absent", "MISSING", "DAMAGED"};

struct doctor {
    struct region *region;
    json_t *checks;
    enum state worst;
};

static void check(struct doctor *d, enum state state, const char *what, const char *said)
{
    ADD(d->checks,
        json_pack("{s:s, s:s, s:o}", "state", state_names[state], "what", what, "text", json_of_plain(said)));
    if (state > d->worst) d->worst = state;
}

/* What a shell command prints, as one line, and its exit code. */
static const char *output_of(struct doctor *d, const char *command, int *code)
{
    freed_auto char *all = command_output(command, 4096, code);
    char *text = region_text(d->region, "%s", all);
    for (char *c = text; (c = strchr(c, '\n'));) *c = c[1] ? ' ' : '\0';
    return text;
}

/* ---- what is looked at ---- */

static void check_packages(struct doctor *d)
{
    static const char command[] = "cd \"$REMATCH_FOLDER/../..\" && "
                                  "[ -x .ci/deps.sh ] || exit 9; "
                                  ".ci/deps.sh -n build test 2>&1",
                      elsewhere[] = "not looked at: this program is not in the repository that it was built in";
    int code;
    const char *text = output_of(d, command, &code);
    const enum state state = code == 9 ? STATE_ABSENT : code ? STATE_MISSING : STATE_OK;
    check(d, state, "packages", code == 9 ? elsewhere : code ? text : "all that make and make test need");
}

enum status doctor_backend(const char *name)
{
    const struct backend_options options = {.scratch_limit = 1};
    struct backend *b;
    TRY(cuda_program_become(name));
    TRY(backend_open(name, &options, &b));
    printf("%s%s%s, %s, %lld threads%s%s\n", b->device ? b->device : "", b->device ? ", " : "", b->libraries, b->isa,
           (long long)b->options.threads, b->convolutions ? ", " : "", b->convolutions ? b->convolutions : "");
    backend_close(b);
    return ST_OK;
}

static void check_backends(struct doctor *d)
{
    static const char mistake[] = "rematch: ";
    const struct registry *backends = spec_section("backend")->registry;
    for (int i = 0; backends->choice(i).name; i++) {
        const char *name = backends->choice(i).name;
        const enum state lacking = strcmp(name, backends->preset) ? STATE_ABSENT : STATE_MISSING;
        int code;
        const char *command = region_text(d->region, "/proc/$PPID/exe %s %s 2>&1", doctor_command, name);
        const char *text = output_of(d, command, &code);
        if (!strncmp(text, mistake, sizeof mistake - 1)) text += sizeof mistake - 1;
        check(d, code ? lacking : STATE_OK, region_text(d->region, "backend %s", name),
              *text ? text : "opening it ends the program");
    }
}

static void check_files(struct doctor *d, const char *what, const struct dataset *data)
{
    uint64_t bytes = 0;
    const char *path = data->file[0].path, *slash = strrchr(path, '/');
    for (int i = 0; i < data->files; i++) bytes += data->file[i].bytes;
    check(d, STATE_OK, what,
          region_text(d->region, "%.*s: %d file%s, %s, %lld training and %lld test samples, digest %s",
                      slash ? (int)(slash - path) : 1, slash ? path : ".", data->files, text_plural(data->files),
                      BYTES_TEXT(bytes), (long long)data->count[SPLIT_TRAIN], (long long)data->count[SPLIT_TEST],
                      DIGEST_TEXT(data->digest)));
}

/* Those that are read from files; where another stands in, the notice says why. */
static void check_data(struct doctor *d)
{
    struct stat folder;
    const char *root = getenv("REMATCH_DATA");
    if (root && *root && (stat(root, &folder) != 0 || !S_ISDIR(folder.st_mode)))
        check(d, STATE_MISSING, "REMATCH_DATA",
              region_text(d->region, "'%s' is no folder; export REMATCH_DATA=FOLDER, or unset it", root));
    for (const struct dataset_kind *const *kind = dataset_table; *kind; kind++) {
        struct dataset_settings settings = {.samples = 0};
        struct dataset *data;
        const char *what = region_text(d->region, "data %s", (*kind)->name);
        if (!setting_find((*kind)->keys, "path")) continue;
        terminal_note(stderr, region_text(d->region, "  reading %s", what));
        enum status status = setting_defaults((*kind)->keys, &settings, d->region);
        if (status == ST_OK) status = dataset_open((*kind)->name, &settings, 0, &data);
        terminal_note(stderr, "");
        if (status != ST_OK)
            check(d, status == ST_MISSING ? STATE_ABSENT : STATE_DAMAGED, what, status_message());
        else if (data->kind != *kind)
            check(d, STATE_ABSENT, what, data->notice);
        else
            check_files(d, what, data);
        if (status == ST_OK) dataset_close(data);
    }
}

static json_t *json_of_system(struct doctor *d)
{
    struct provenance_text text[PROVENANCE_TEXTS];
    const int count = provenance_system(NULL, d->region, text);
    const struct machine_memory left = machine_memory("");
    json_t *all = json_object();
    PUT(all, "commit", BUILD_COMMIT);
    for (int i = 0; i < count; i++) PUT(all, text[i].name, text[i].text);
    PUT_ALL(all, KEY("cores", sysconf(_SC_NPROCESSORS_ONLN)), KEY("memory_bytes", machine_bytes()),
            KEY("memory_left_bytes", left.bytes), KEY("memory_limit", left.limit));
    return all;
}

enum status doctor(struct arguments *arguments)
{
    const bool json = arguments->given[OPTION_JSON];
    struct doctor d = {.region = arguments->region, .checks = json_array()};
    json_auto_t *system = json_of_system(&d), *checks = d.checks;
    check_packages(&d);
    check_backends(&d);
    check_data(&d);
    arguments->code = d.worst > STATE_ABSENT ? ST_MISSING : ST_OK;
    if (json)
        json_answer(json_pack("{s:b, s:O, s:O}", "fine", !arguments->code, "system", system, "checks", checks),
                    "doctor", stdout);
    else
        show_group("system", system, stdout);
    EACH (json ? NULL : checks, i, row)
        printf("%-18s  %-7s  %s\n", json_string_at(row, "what"), json_string_at(row, "state"),
               json_string_at(row, "text"));
    return ST_OK;
}
