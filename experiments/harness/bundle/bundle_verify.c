#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/json_tree.h"
#include "analysis/result_row.h"
#include "analysis/verify.h"
#include "base/file.h"
#include "base/text.h"
#include "bundle/bundle.h"
#include "console/terminal.h"
#include "console/utf8.h"
#include "report/commands.h"
#include "run/signals.h"

/* What was found of all runs, and of pairs of a baseline and a variant. */
struct findings {
    struct region *region;
    const char *folder, *again; /* where the bundle is unpacked, and where its runs are repeated */
    bool plan_only, json;
    FILE *out;
    int runs, hold, partly, wrong, untested;
    int equal, unequal, unproven; /* pairs; a variant without a baseline is unproven */
    enum status described;        /* ST_DIFFERS: wrongly; ST_UNPROVEN: could not be tested */
    const char *difference;       /* how; NULL: rightly */
    int signal;                   /* 128 + the signal that stopped it */
    json_t *run, *pairs;
};

static void count_run(struct findings *f, int code)
{
    int *const found = code == ST_OK         ? &f->hold
                       : code == ST_UNPROVEN ? &f->partly
                       : code == ST_DIFFERS  ? &f->wrong
                                             : &f->untested;
    f->runs++;
    ++*found;
    if (code > 128) f->signal = code;
}

static void verify_run(struct findings *f, const struct tar_file *file)
{
    const struct verify_request request = {.plan_only = f->plan_only, .elsewhere = true, .results = f->again};
    json_t *found = NULL;
    if (!f->json) fprintf(f->out, "\nrun       %s\n", file->name);
    const int code = verify_file(file->path, &request, f->json ? &found : NULL, f->out);
    count_run(f, code);
    json_array_append_new(f->run, json_pack("{s:s, s:i, s:o?}", "file", file->name, "exit_code", code, "found", found));
}

/* The first line of a file that is not that of the text. What the file has is shown without control characters. */
static const char *line_that_differs(struct findings *f, const struct tar_file *file, const char *text)
{
    char *is;
    int line = 1;
    if (file_read_text(file->path, file->bytes, f->region, &is) != ST_OK) return status_message();
    for (size_t end; strncmp(is, text, end = strcspn(text, "\n") + 1) == 0 && text[end - 1]; line++)
        is += end, text += end;
    char *found = region_text(f->region, "%s: line %d is '%.*s'; expected '%.*s'", file->name, line,
                              (int)strcspn(is, "\n"), is, (int)strcspn(text, "\n"), text);
    utf8_clean(found, "");
    return found;
}

static const char *first_difference(struct findings *f, const struct bundle *b, const struct tar_file *file, int files)
{
    int i = 0;
    while (i < files && i < b->files && !strcmp(file[i].name, b->file[i].name) &&
           !strcmp(file[i].sha256, b->file[i].sha256))
        i++;
    if (i == files && i == b->files) return NULL;
    const int order = i == files ? 1 : i == b->files ? -1 : tarball_order(&file[i], &b->file[i]);
    if (order < 0) return region_text(f->region, "%s: belongs to no run", file[i].name);
    if (order > 0) return region_text(f->region, "%s: is missing", b->file[i].name);
    return line_that_differs(f, &file[i], b->file[i].text);
}

/* Everything beside the runs must be what the program makes of them; another version may use other words. */
static void check_description(struct findings *f, const struct tar_file *file, int files)
{
    struct bundle b = {.region = f->region};
    const char **run;
    int runs = 0;
    NEW(f->region, run, (size_t)files + 1);
    for (int i = 0; i < files; i++)
        if (text_ends(file[i].name, ".h5")) run[runs++] = file[i].path;
    const bool made = bundle_collect(&b, runs, run) == ST_OK;
    f->difference =
        made ? first_difference(f, &b, file, files) : region_text(f->region, "not tested: %s", status_message());
    f->described = !f->difference ? ST_OK : made && !b.other ? ST_DIFFERS : ST_UNPROVEN;
    if (f->json) return;
    fprintf(f->out, "\ndescribed %s%s\n", f->difference ? f->difference : "right: by files that belong to the runs",
            made && f->described == ST_UNPROVEN ? "; another version did the runs" : "");
}

/* The verdict of each variant in folder beside its baseline there. */
static void compare_pairs(struct findings *f, const char *folder, const char *what)
{
    json_auto_t *rows = list_runs(folder);
    EACH (rows, i, row) {
        const char *verdict = json_string_at(row, "verdict"), *baseline = json_string_at(row, "baseline");
        if (!result_row_is_whole(row) || strcmp(json_string_at(row, "side"), "variant") != 0) continue;
        const bool equal = !strcmp(verdict, "equal"), unequal = !strcmp(verdict, "DIFFERS");
        f->equal += equal;
        f->unequal += unequal;
        f->unproven += !equal && !unequal;
        const char *a = *baseline ? baseline + strlen(folder) + 1 : "no baseline",
                   *b = json_string_at(row, "file") + strlen(folder) + 1;
        if (!f->json) fprintf(f->out, "pair      %s: %s and %s: %s\n", what, a, b, verdict);
        json_array_append_new(f->pairs, json_pack("{s:s, s:s, s:s, s:s}", "which", what, "baseline", a, "variant", b,
                                                  "verdict", verdict));
    }
}

static int print_verdict(const struct findings *f)
{
    const bool wrong = f->wrong || f->unequal || f->described == ST_DIFFERS,
               all = f->hold == f->runs && f->equal && !f->unproven && f->described == ST_OK;
    const int code = f->signal ? f->signal : wrong ? ST_DIFFERS : all ? ST_OK : ST_UNPROVEN;
    if (f->json) return code;
    fprintf(f->out, "\nverdict   %s: of %d run%s %d hold%s, %d partly, %d could not be repeated here, %d %s wrong",
            wrong ? "DOES NOT HOLD"
            : all ? "HOLDS"
                  : "HOLDS AS FAR AS TESTED",
            f->runs, text_plural(f->runs), f->hold, f->hold == 1 ? "s" : "", f->partly, f->untested, f->wrong,
            f->wrong == 1 ? "is" : "are");
    fprintf(f->out, "; of %d comparison%s of a variant with its baseline %d found every bit equal\n",
            f->equal + f->unequal + f->unproven, text_plural(f->equal + f->unequal + f->unproven), f->equal);
    return code;
}

static int verify_all(struct findings *f, const char *path)
{
    struct tar_file *file, whole = {.path = path};
    int files;
    enum status status = tarball_read(path, f->folder, f->region, &file, &files);
    if (status == ST_OK) status = tarball_digest(&whole);
    if (report_error(status) != ST_OK) return (int)status;
    if (!f->json) fprintf(f->out, "bundle    %s: %d files, unchanged\nsha256    %s\n", path, files, whole.sha256);
    for (int i = 0; i < files && !f->signal; i++) {
        const int stop = signals_pending();
        if (stop) f->signal = 128 + stop;
        if (!stop && text_ends(file[i].name, ".h5")) verify_run(f, &file[i]);
    }
    check_description(f, file, files);
    if (!f->json) fputc('\n', f->out);
    if (!f->json) verify_print_not_checked(f->out);
    compare_pairs(f, region_text(f->region, "%s/runs", f->folder), "as bundled");
    struct stat there;
    if (stat(f->again, &there) == 0) compare_pairs(f, f->again, "as run again");
    const int code = print_verdict(f);
    if (f->json)
        json_answer(json_pack("{s:s, s:s, s:i, s:b, s:s, s:O, s:O}", "bundle", path, "sha256", whole.sha256, "files",
                              files, "holds", code == ST_OK, "described", f->difference ? f->difference : "right",
                              "runs", f->run, "pairs", f->pairs),
                    "verify-bundle", f->out);
    return code;
}

static int remove_entry(const char *path, const struct stat *file, int flag, struct FTW *place)
{
    (void)file, (void)flag, (void)place;
    return remove(path);
}

int bundle_verify(const char *path, bool plan_only, bool json, FILE *out)
{
    const char *set = getenv("TMPDIR"), *temporary = set && *set ? set : P_tmpdir;
    region_auto *region = region_create();
    json_auto_t *runs = json_array(), *pairs = json_array();
    struct findings f = {
        .region = region, .plan_only = plan_only, .json = json, .out = out, .run = runs, .pairs = pairs};
    char *folder = region_text(f.region, "%s/rematch-bundle-XXXXXX", temporary);
    int code = ST_FAILED;
    const sigset_t before = signals_block(SIGPIPE); /* until the folder is removed */
    if (mkdtemp(folder)) {
        f.folder = folder;
        f.again = region_text(f.region, "%s/again", folder);
        code = verify_all(&f, path);
        nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    } else {
        report_error(fail(ST_FAILED, "%s: cannot make a temporary folder: %s", temporary, strerror(errno)));
    }
    if (!f.signal) sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}
