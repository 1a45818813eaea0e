/* The program: a table of sub-commands. Exit codes: 0 done or equal, 1 differs, 2 usage or spec, 3 a run failed, 4
 * equal but no proof, 77 a prerequisite is missing, 128 + n on signal n. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "analysis/compare.h"
#include "analysis/plan_summary.h"
#include "analysis/verify.h"
#include "base/text.h"
#include "build.h"
#include "bundle/bundle.h"
#include "console/abrupt_end.h"
#include "console/arguments.h"
#include "console/manual.h"
#include "console/standard_input.h"
#include "console/terminal.h"
#include "experiment.h"
#include "job/cuda_program.h"
#include "job/thread_waiting.h"
#include "report/commands.h"
#include "report/show.h"
#include "result/plan_file.h"
#include "run/job_plans.h"
#include "spec/full_keys.h"
#include "spec/graph_file.h"
#include "spec/spec.h"
#include "yaml/yaml_write.h"

/* choices: with the plans of other policies. */
static enum status plan_one(const struct arguments *a, const struct job *job, bool choices)
{
    struct plan_summary *summary = NULL;
    if (a->given[OPTION_OUT]) TRY(plan_file_write(job, a->value[OPTION_OUT]));
    TRY(plan_summary_create(job, choices, &summary));
    if (a->given[OPTION_JSON]) {
        plan_summary_json(summary, a->given[OPTION_OPS], stdout);
    } else {
        plan_summary_print(summary, stdout);
        for (int i = 0; i < job->spec->axes; i++)
            printf(i ? ", %s" : "note: this is the spec's own point; a run sweeps %s", job->spec->axis[i].key);
        if (job->spec->axes) putchar('\n');
        if (a->given[OPTION_OPS]) plan_print_ops(job->plan, stdout);
    }
    plan_summary_destroy(summary);
    return ST_OK;
}

/* Without a policy the plan is that of store_all, as for a spec, and the other policies are listed. */
static enum status plan_graph(const struct arguments *a, const struct plan_query *query)
{
    spec_auto *spec = NULL;
    struct network *network;
    job_auto *job = NULL;
    TRY(graph_file_load(a->operand[0], a->overrides, a->override, &spec, &network));
    const bool choices = !spec->policy && !a->given[OPTION_ALONE];
    if (!spec->policy) spec->policy = policy_find("store_all");
    spec->placed |= a->given[OPTION_OUT]; /* what is stored has addresses */
    if (a->given[OPTION_OUT]) spec->resolved = graph_file_print(spec, spec->region);
    TRY(job_create_abstract(spec, network, &job));
    return query->question ? plan_query_answer(query, job, stdout) : plan_one(a, job, choices);
}

static enum status run_plan(struct arguments *a)
{
    const char *path;
    spec_auto *spec = NULL;
    job_auto *job = NULL;
    struct plan_query query;
    TRY(plan_query_read(a, &query));
    if (a->given[OPTION_GRAPH]) return plan_graph(a, &query);
    TRY(arguments_spec(a, &path));
    TRY(spec_load(path, a->overrides, a->override, &spec));
    enum status status = job_create(spec, &job);
    if (status == ST_OK) status = job_check_plans(job);
    if (status == ST_OK) {
        job_warn(job);
        status = query.question ? plan_query_answer(&query, job, stdout) : plan_one(a, job, !a->given[OPTION_ALONE]);
    }
    return spec_place(spec, status);
}

/* 0 where the option is not given. */
static enum status read_count(const struct arguments *a, enum option option, const char *name, int64_t *value)
{
    const int64_t most = 1000000;
    const char *wrong = a->given[option] ? text_to_int(a->value[option], value) : NULL;
    if (!a->given[option] || (!wrong && *value >= 1 && *value <= most)) return ST_OK;
    return fail(ST_SPEC, "run: %s %s: expected an integer of 1..%lld", name, a->value[option], (long long)most);
}

static enum status read_sweep_options(const struct arguments *a, struct request *request)
{
    const char *shard = a->given[OPTION_SHARD] ? a->value[OPTION_SHARD] : NULL;
    int end = 0;
    if (shard && a->given[OPTION_POINT]) return fail(ST_SPEC, "run: --shard and --point; expected one of them at most");
    if (shard && (sscanf(shard, "%6d/%6d%n", &request->shard, &request->shards, &end) != 2 || shard[end] ||
                  request->shard < 1 || request->shard > request->shards))
        return fail(ST_SPEC, "run: --shard %s: expected I/N, I of 1..N, as in 2/8", shard);
    TRY(read_count(a, OPTION_POINT, "--point", &request->point));
    return read_count(a, OPTION_JOBS, "--jobs", &request->jobs);
}

static enum status run_run(struct arguments *a)
{
    const char *resume = a->given[OPTION_RESUME] ? a->value[OPTION_RESUME] : "auto";
    struct request request = {.overrides = a->overrides,
                              .override = a->override,
                              .quiet = a->given[OPTION_QUIET],
                              .json = a->given[OPTION_JSON],
                              .verbose = a->given[OPTION_VERBOSE],
                              .force = a->given[OPTION_FORCE],
                              .print_commands = a->given[OPTION_PRINT_COMMANDS],
                              .resume = !strcmp(resume, "auto")   ? RESUME_AUTO
                                        : !strcmp(resume, "must") ? RESUME_MUST
                                                                  : RESUME_NEVER};
    spec_auto *spec = NULL;
    if (request.quiet && request.verbose)
        return fail(ST_SPEC, "run: --quiet and --verbose; expected one of them at most");
    if (request.json && (request.verbose || request.print_commands || a->given[OPTION_FOLLOW]))
        return fail(ST_SPEC, "run: --json and %s are two forms; choose one",
                    request.verbose          ? "--verbose"
                    : request.print_commands ? "--print-commands"
                                             : "--follow");
    request.quiet |= request.json;
    TRY(arguments_spec(a, &request.spec));
    TRY(read_sweep_options(a, &request));
    for (int i = 0; i < SIDES; i++)
        request.only[i] = a->given[OPTION_ONLY] && strcmp(a->value[OPTION_ONLY], side_names[i]) == 0;
    TRY(spec_load(request.spec, request.overrides, request.override, &spec));
    if (!spec->axes && (request.point || request.shards || request.jobs || request.print_commands))
        return fail(ST_SPEC, "run: %s sweeps nothing: no --jobs, --shard, --point or --print-commands", request.spec);
    if (request.print_commands && !strcmp(request.spec, standard_input))
        return fail(ST_SPEC,
                    "run: --print-commands: commands cannot read standard input or a pipe again; expected a file");
    if (a->given[OPTION_FOLLOW]) return follow_experiment(spec, stdout);
    child_name_invocation();
    struct spec *const own = spec; /* which is destroyed by what runs it */
    spec = NULL;
    a->code = own->axes ? sweep_run(&request, own) : experiment_run(&request, own);
    return ST_OK;
}

static enum status run_compare(struct arguments *a)
{
    struct comparison comparison;
    const enum status status = compare_files(a->operand[0], a->operand[1], &comparison);
    json_auto_t *json = comparison.json; /* to be freed, whatever the status */
    TRY(status);
    a->code = (int)comparison_status(&comparison);
    if (a->given[OPTION_JSON]) {
        json_answer(comparison_json(&comparison), "compare", stdout);
    } else {
        comparison_print_numbers(&comparison, stdout);
        comparison_print_verdict(&comparison, true, stdout);
    }
    return ST_OK;
}

static enum status run_show(struct arguments *a)
{
    static const enum option forms[] = {OPTION_PROVENANCE, OPTION_JSON, OPTION_CSV_TABLE, OPTION_FOLLOW};
    int given = 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) given += a->given[forms[i]];
    if (given > 1) return fail(ST_SPEC, "show: expected one of --provenance, --json, --csv and --follow at most");
    if (a->given[OPTION_CSV_TABLE]) return show_csv(a->operand[0], a->value[OPTION_CSV_TABLE], stdout);
    if (a->given[OPTION_FOLLOW]) return follow_file(a->operand[0], stdout);
    return show_file(a->operand[0], a->given[OPTION_PROVENANCE], a->given[OPTION_JSON], stdout);
}

static enum status run_verify(struct arguments *a)
{
    child_name_invocation();
    const bool json = a->given[OPTION_JSON];
    const struct verify_request request = {.plan_only = a->given[OPTION_PLAN_ONLY]};
    json_t *found = NULL;
    a->code = tarball_is_one(a->operand[0]) ? bundle_verify(a->operand[0], request.plan_only, json, stdout)
                                            : verify_file(a->operand[0], &request, json ? &found : NULL, stdout);
    if (found) json_answer(found, "verify", stdout);
    return ST_OK;
}

static enum status run_bundle(struct arguments *a)
{
    if (!a->given[OPTION_OUT]) return fail(ST_SPEC, "bundle: --out is missing; expected --out NAME.tar.zst");
    return bundle_write(a->operands, a->operand, a->value[OPTION_OUT], stdout);
}

static enum status run_help(struct arguments *a);

enum { SWEEP_OPTIONS = BIT(FORCE) | BIT(JOBS) | BIT(SHARD) | BIT(POINT) | BIT(PRINT_COMMANDS) };

static const struct command commands[] = {
    {"list", "list [FOLDER] [--json]",
     "Lists the experiments, or the runs in a folder of results.\n"
     "FOLDER: experiments/ where none is given.",
     BIT(JSON), 0, 1, false, list_folder},
    {"plan",
     "plan SPEC | --graph FILE [key=value...] [--ops | --alone | --pareto | --max-batch | --min-memory | --explain] "
     "[--json | --csv] [--out FILE]",
     "Plans a training step without running it, or compares other plans.\n"
     "SPEC: a file, - for standard input, or a name in experiments/. FILE: a graph file; without policy.name=... its "
     "policies are compared.",
     BIT(JSON) | BIT(OPS) | BIT(ALONE) | BIT(GRAPH) | BIT(OUT) | QUERY_OPTIONS, 1, 1, true, run_plan,
     "write the plan to FILE, for the key plan:; -o too"},
    {"run",
     "run SPEC [key=value...] [--only baseline|variant] [--resume auto|must|never] [--quiet | --verbose | --follow] "
     "[--force] [--jobs N] [--shard I/N | --point K] [--print-commands] [--json]",
     "Runs a spec storing everything, then as written; compares every bit.\n"
     "Each is a process of its own. SPEC: a file, - for standard input, or a name in experiments/. SIGTERM and SIGUSR1 "
     "end a run after its "
     "step and leave a state file, as does state_every=N every N steps; the same command then goes on from there. Of a "
     "sweep, finished points are not run again.",
     BIT(JSON) | BIT(ONLY) | BIT(QUIET) | BIT(VERBOSE) | BIT(RESUME) | BIT(FOLLOW) | SWEEP_OPTIONS, 1, 1, true,
     run_run},
    {"schema", "schema [NAME] [--json]",
     "Prints every key of specs and models: values, default, meaning.\n"
     "NAME: of one section, policy, layer or key.",
     BIT(JSON), 0, 1, false, schema_print},
    {"compare", "compare A B [--json]",
     "Compares two result files bit by bit.\n"
     "Exit code 1 where they differ, 4 where their equality proves nothing or not everything.",
     BIT(JSON), 2, 2, false, run_compare},
    {"show", "show FILE [--provenance | --json | --csv steps|ops|tensors | --follow]",
     "Prints what a result file holds.\n"
     "As JSON it includes the provenance.",
     BIT(PROVENANCE) | BIT(JSON) | BIT(CSV_TABLE) | BIT(FOLLOW), 1, 1, false, run_show},
    {"bundle", "bundle RUN... --out NAME.tar.zst",
     "Packs runs for a reviewer: specs, plans, results, expected values.\n"
     "RUN: a complete result file. The archive has a README.md with the commands, and RO-Crate metadata; the same runs "
     "give the same bytes. rematch verify NAME.tar.zst says elsewhere what holds.",
     BIT(OUT), 1, INT_MAX, false, run_bundle, "write the archive to FILE; -o too"},
    {"report", "report FILE... [-o PAGE] [--figures FOLDER [--width single|double]] [--trace FILE] [--pareto]",
     "Shows runs on one page: verdicts, memory, time, losses, provenance.\n"
     "FILE: result files of baselines and variants, or plan files. PAGE: one HTML file that needs no network; "
     "report.html where nothing else is asked for. Every variant stands beside its baseline; two files stand side by "
     "side. --pareto: of a large network, too.",
     BIT(OUT) | BIT(FIGURES) | BIT(WIDTH) | BIT(TRACE) | BIT(PARETO), 1, INT_MAX, false, report_make,
     "write the page to FILE; -o too"},
    {"verify", "verify FILE [--plan-only] [--json]",
     "Checks a file's plan, then runs its spec again: the same bits?\n"
     "FILE: a plan or result file, or a bundle, all of whose files are checked; with other kernels its runs may round "
     "differently, and exit code 4 means that what could be tested holds. The plan of a file is run on symbols, and "
     "its lower bounds are computed again. Exit code 1 where "
     "something is wrong or differs.",
     BIT(PLAN_ONLY) | BIT(JSON), 1, 1, false, run_verify},
    {"doctor", "doctor [--json]",
     "Prints what this machine has, and what is missing to build and run.\n"
     "Each missing thing comes with the command that mends it. Exit code 77 where one is MISSING or DAMAGED; what is "
     "absent is needed by some experiments only.",
     BIT(JSON), 0, 0, false, doctor},
    {"help", "help [COMMAND | --man | --completion bash|zsh]",
     "Prints this text, or the usage and options of a command.\n"
     "So do --help and -h, alone or after a command.",
     BIT(MAN) | BIT(COMPLETION), 0, 1, false, run_help},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0) return &commands[i];
    const char *names[COMMANDS + 1] = {NULL};
    char suggestion[TEXT_SUGGESTION];
    for (int i = 0; i < COMMANDS; i++) names[i] = commands[i].name;
    fail(ST_SPEC, "unknown command '%s'%s; rematch help lists them", name, text_suggestion(name, names, suggestion));
    return NULL;
}

static enum status run_help(struct arguments *a)
{
    const struct command *command = a->operands ? find_command(a->operand[0]) : NULL;
    if (a->operands && !command) return ST_SPEC;
    if (a->operands + a->given[OPTION_MAN] + a->given[OPTION_COMPLETION] > 1)
        return fail(ST_SPEC, "help: expected one of COMMAND, --man and --completion");
    if (command)
        arguments_help(command, stdout);
    else if (a->given[OPTION_MAN])
        manual_page(commands, COMMANDS, stdout);
    else if (a->given[OPTION_COMPLETION])
        complete_script(a->value[OPTION_COMPLETION], stdout);
    else
        manual_help(commands, COMMANDS, stdout);
    return ST_OK;
}

/* Output for programs, whose lines are not wrapped on a terminal. */
static bool is_data(const struct arguments *a)
{
    return a->given[OPTION_JSON] || a->given[OPTION_CSV] || a->given[OPTION_CSV_TABLE] || a->given[OPTION_MAN] ||
           a->given[OPTION_COMPLETION];
}

static int run_command(const struct command *command, int count, char **words)
{
    struct arguments arguments = {.region = region_create()};
    if (command->overrides) arguments.keys = full_key_names(arguments.region);
    enum status status = arguments_read(command, count, words, &arguments);
    const bool data = is_data(&arguments), help = arguments.given[OPTION_HELP] || command->run == run_help;
    terminal_wrap(&stdout, !data);
    if (help && !data && !terminal_width(stdout)) stdout = terminal_lines(stdout, terminal_columns());
    const bool runs = status == ST_OK && !arguments.given[OPTION_HELP];
    if (runs) status = arguments_results(command, &arguments);
    if (runs && status == ST_OK && command->overrides) status = arguments_hold(count, words, &arguments);
    if (status == ST_OK && arguments.given[OPTION_HELP])
        arguments_help(command, stdout);
    else if (status == ST_OK)
        status = command->run(&arguments);
    report_error(status);
    region_destroy(arguments.region);
    return status == ST_OK ? arguments.code : (int)status;
}

/* Output that could not be written, as on a full disk, is a failure. */
static int flushed(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    fprintf(stderr, "rematch: the output cannot be written\n");
    return code == ST_OK ? ST_FAILED : code;
}

/* The next file opened would get the descriptor of a closed standard stream, and messages could be written into a
 * result file. /dev/null takes its place, opened so that output to the stream still fails. */
static bool hold_streams(void)
{
    for (int stream = 0; stream < 3; stream++)
        if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", stream ? O_RDONLY : O_WRONLY) != stream) return false;
    return true;
}

static int run_program(int count, char **words)
{
    const char *name = count > 1 ? words[1] : "";
    signal(SIGCHLD, SIG_DFL); /* if it were ignored, there would be no child to wait for */
    terminal_wrap(&stderr, true);
    cuda_program_remember(words);
    if (strcmp(name, child_command) == 0) return child_main(count - 2, (const char *const *)words + 2);
    if (strcmp(name, doctor_command) == 0 && count == 3) return flushed((int)report_error(doctor_backend(words[2])));
    if (strcmp(name, complete_command) == 0) {
        complete_words(commands, COMMANDS, count - 2, words + 2, stdout);
        return flushed(ST_OK);
    }
    if (strcmp(name, "--version") == 0) {
        terminal_wrap(&stdout, true);
        printf("rematch %s, commit %.12s%s, %s build, backends: %s\n", BUILD_VERSION, BUILD_COMMIT,
               *BUILD_DIRTY ? " with changes" : "", BUILD_VARIANT, BUILD_BACKENDS);
        return flushed(ST_OK);
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
    if (*name) {
        const struct command *command = find_command(name);
        return command ? flushed(run_command(command, count - 2, words + 2)) : (int)report_error(ST_SPEC);
    }
    fprintf(stderr, "rematch: no command given\n");
    manual_usage(commands, COMMANDS, stderr);
    return ST_SPEC;
}

int main(int count, char **words)
{
    if (!hold_streams()) return ST_FAILED;
    abrupt_end_watch();
    const int code = run_program(count, words);
    abrupt_end_unwatch();
    return code;
}
