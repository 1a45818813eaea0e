/* Bundles: written the same each time, verified elsewhere, and refused where they were changed or are none. */
#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/altered_files.h"
#include "tests/support/cli.h"
#include "tests/support/dataset_files.h"
#include "tests/support/made_runs.h"

/* Two runs of small.yaml, and x.tar.zst of them. */
static void open_bundle(struct cli *cli)
{
    cli_open(cli);
    cli_expect(cli, 0, "run small.yaml --quiet");
    cli_expect(cli, 0, "bundle results/small/*.h5 -o x.tar.zst");
}

static void shell(const struct cli *cli, const char *command)
{
    char line[2048];
    snprintf(line, sizeof line, "cd '%s' && { %s; } >log 2>&1", cli->folder, command);
    cr_assert(system(line) == 0, "%s", command);
}

/* From other folders, in another order, with a run given twice, under another name, HOME and umask. */
Test(bundle, the_same_runs_give_the_same_bytes)
{
    static const char *const ways[] = {
        "cd results/small && \"$REMATCH_BIN\" bundle *.h5 -o ../../y.tar.zst",
        "cd / && umask 077 && HOME=/no \"$REMATCH_BIN\" bundle $(ls -r $OLDPWD/results/small/*.h5) --out "
        "$OLDPWD/y.tar.zst",
        "\"$REMATCH_BIN\" bundle results/small/*.h5 $PWD/results/small/*.h5 -o y.tar.zst",
        "cp -r results away && touch away/small/* && \"$REMATCH_BIN\" bundle away/small/*.h5 --out=y.tar.zst"};
    struct cli cli;
    open_bundle(&cli);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char command[512];
        snprintf(command, sizeof command, "(%s) && cmp x.tar.zst y.tar.zst && rm y.tar.zst", ways[i]);
        shell(&cli, command);
    }
    cli_close(&cli);
}

static void holds(struct cli *cli, const char *before, const char *arguments, int code, const char *says)
{
    cli_run(cli, before, arguments);
    cr_assert(cli->code == code, "%s: exit code %d\n%s%s", arguments, cli->code, cli->out, cli->err);
    cli_says(cli, says);
}

/* Nothing but the bundle is there; nothing is left of what was unpacked. */
Test(bundle, it_holds_elsewhere, .timeout = 240)
{
    static const char before[] = "mkdir -p away/tmp; export TMPDIR=$PWD/away/tmp HOME=/nonexistent";
    struct cli cli;
    open_bundle(&cli);
    shell(&cli, "rm -r results small.yaml");
    holds(&cli, before, "--version >version; (cd away && \"$REMATCH_BIN\" verify ../x.tar.zst)", 0,
          "verdict   HOLDS: of 2 runs 2 hold");
    cli_says(&cli, "as bundled: small/");
    cli_says(&cli, "as run again: small/");
    holds(&cli, before, "verify x.tar.zst --plan-only", 0, "HOLDS");
    cr_expect(!strstr(cli.out, "as run again"), "%s", cli.out);
    json_t *all = cli_json(&cli, 0, "verify x.tar.zst --json");
    cr_expect(json_is_true(json_object_get(all, "holds")));
    cr_expect(json_array_size(json_object_get(all, "runs")) == 2 &&
              json_array_size(json_object_get(all, "pairs")) == 2);
    json_decref(all);
    shell(&cli,
          "[ -z \"$(ls away/tmp)\" ] && [ -z \"$(ls -d ${TMPDIR:-/tmp}/rematch-bundle-* 2>/dev/null)\" ] || true");
    shell(&cli, "[ -z \"$(ls away/tmp)\" ]");
    cli_close(&cli);
}

/* Of a file and of a bundle: a second run would need the folder of TMPDIR, and leave its pair. */
Test(bundle, plan_only_runs_nothing)
{
    struct cli cli;
    open_bundle(&cli);
    shell(&cli, "for f in results/small/*.h5; do TMPDIR=/none \"$REMATCH_BIN\" verify --plan-only $f || exit; done");
    shell(&cli, "for f in results/small/*.h5; do TMPDIR=/none \"$REMATCH_BIN\" verify $f; [ $? = 3 ] || exit 1; done");
    holds(&cli, "", "verify x.tar.zst --plan-only", 0, "pair      as bundled");
    cr_expect(!strstr(cli.out, "as run again") && !strstr(cli.out, "steps     "), "%s", cli.out);
    holds(&cli, "", "verify x.tar.zst", 0, "as run again");
    cli_says(&cli, "steps     ");
    cli_close(&cli);
}

/* Kernels of one definition have the same bits on every machine, but for the functions of its C library: one of another
 * version, whose log() is then another one by 1e-6. */
Test(bundle, with_another_c_library_the_claim_is_shown_again, .timeout = 240)
{
    static const struct {
        const char *before, *verdict, *steps;
        int code;
    } rows[] = {{"LD_PRELOAD=$REMATCH_FAILING FAILING_LIBC=1.0", "HOLDS: of 2 runs 2 hold",
                 "run again elsewhere, by the same definition", 0},
                {"LD_PRELOAD=$REMATCH_FAILING FAILING_LIBC=1.0 FAILING_LOG=1000",
                 "HOLDS AS FAR AS TESTED: of 2 runs 0 hold, 2 partly", "now 1.0", 4},
                {"LD_PRELOAD=$REMATCH_FAILING FAILING_LOG=1000", "of 2 runs 0 hold", "DIFFER", 1}};
    struct cli cli;
    cli_open(&cli);
    cli_run(&cli, "", "run small.yaml backend.name=cpu --quiet");
    if (cli.code == 77) cr_skip_test("no cpu backend");
    cli_expect(&cli, 0, "bundle results/small/*.h5 -o x.tar.zst");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char before[256];
        snprintf(before, sizeof before, "export %s", rows[i].before);
        holds(&cli, before, "verify x.tar.zst", rows[i].code, rows[i].verdict);
        cli_says(&cli, rows[i].steps);
    }
    cli_close(&cli);
}

Test(bundle, what_cannot_be_repeated_is_said, .timeout = 240)
{
    struct cli cli;
    cli_open(&cli);
    setenv("REMATCH_DATA", hand_made_folder(), 1);
    cli_expect(&cli, 0, "run small.yaml 'data={name: cifar10}' batch=2 steps=2 --quiet");
    cli_expect(&cli, 0, "bundle results/small/*.h5 -o x.tar.zst");
    holds(&cli, "", "verify x.tar.zst", 0, "HOLDS");
    holds(&cli, "export REMATCH_DATA=$PWD", "verify x.tar.zst", 4, "2 could not be repeated here");
    cli_says(&cli, "bounds    not judged: data set cifar10: no data_batch_1.bin");
    cli_says(&cli, "as bundled: small/");
    cli_close(&cli);
}

/* Runs that are right, but prove nothing. */
Test(bundle, runs_without_a_proof_hold_as_far_as_tested, .timeout = 240)
{
    static const struct {
        const char *run;
        int code;
        const char *says;
    } cases[] = {
        {"run small.yaml --quiet policy=store_all", 4, "-repeat.h5: unproven"},
        {"run small.yaml --quiet --only variant", 0, "pair      as bundled: no baseline and small/"},
        {"run small.yaml --quiet --only baseline", 0, "of 0 comparisons"},
        {"run small.yaml --quiet 'policy={name: segments, segments: 1}'", 4, ": unproven"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cli cli;
        cli_open(&cli);
        cli_expect(&cli, cases[i].code, cases[i].run);
        cli_expect(&cli, 0, "bundle results/small/*.h5 -o x.tar.zst");
        holds(&cli, "", "verify x.tar.zst", 4, "verdict   HOLDS AS FAR AS TESTED: ");
        cli_says(&cli, cases[i].says);
        cli_says(&cli, "0 partly, 0 could not be repeated here, 0 are wrong");
        cli_close(&cli);
    }
}

#define SUMS  "(cd u/rematch-bundle; find * -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum >SHA256SUMS); "
#define TAR   "tar --zstd -cf bad.tar.zst -C u "
#define FILES " rematch-bundle/SHA256SUMS $(cd u; find rematch-bundle -type f ! -name SHA256SUMS | LC_ALL=C sort)"

/* Commands that make bad.tar.zst of x.tar.zst, which is unpacked in u; the exit code of verify, and what it says. */
static const struct {
    const char *make;
    int code;
    const char *says;
} bad[] = {
    {"echo >>u/rematch-bundle/README.md; " TAR FILES, 1, "README.md was changed: its SHA-256 is "},
    {"printf x | dd conv=notrunc bs=1 seek=9999 of=$(ls u/rematch-bundle/runs/small/*.h5 | head -1); " TAR FILES, 1,
     ".h5 was changed: its SHA-256 is "},
    {"rm u/rematch-bundle/README.md; " TAR FILES, 1, "README.md was removed"},
    {"echo x >u/rematch-bundle/extra; " TAR FILES, 1, "extra was added"},
    {TAR "--hard-dereference" FILES " rematch-bundle/README.md", 1, "README.md is there twice"},
    {TAR "-P --transform 's,rematch-bundle/README.md,/rematch-escaped,'" FILES, 2,
     "no bundle has a file called '/rematch-escaped'"},
    {TAR "-P --transform 's,/README.md,/../../rematch-escaped,'" FILES, 2,
     "no bundle has a file called 'rematch-bundle/../../rematch-escaped'"},
    {TAR "--transform 's,/README.md,/.hidden,'" FILES, 2, "no bundle has a file called"},
    {TAR "--transform 's,/README.md,/a\\tb,'" FILES, 2, "no bundle has a file called"},
    {"ln -sf /etc/passwd u/rematch-bundle/README.md; " TAR FILES " rematch-bundle/README.md", 2, "is not a plain file"},
    {"ln u/rematch-bundle/README.md u/rematch-bundle/link; " TAR FILES, 2, "is not a plain file"},
    {"rm u/rematch-bundle/README.md; mkfifo u/rematch-bundle/README.md; " TAR FILES " rematch-bundle/README.md", 2,
     "is not a plain file"},
    {"truncate -s 1200M u/rematch-bundle/zeros; printf '%064d  zeros\\n' 0 >>u/rematch-bundle/SHA256SUMS; " TAR FILES,
     3, "zeros is larger than the "},
    {"(cd u/rematch-bundle; seq 8200 | xargs touch); " TAR FILES, 3, "refused: it has more than 8192 entries"},
    {"yes rematch-bundle | head -8193 >list; " TAR "--no-recursion -T list", 3, "it has more than 8192 entries"},
    {"mkdir -p u/rematch-bundle/1/2/3/4/5/6/7/8; touch u/rematch-bundle/1/2/3/4/5/6/7/8/f; " TAR FILES, 1,
     "1/2/3/4/5/6/7/8/f was added"},
    {"mkdir -p u/rematch-bundle/1/2/3/4/5/6/7/8/9; touch u/rematch-bundle/1/2/3/4/5/6/7/8/9/f; " TAR FILES, 2,
     "no bundle has a file called 'rematch-bundle/1/2/3/4/5/6/7/8/9/f'"},
    {"head -c 9000 x.tar.zst >bad.tar.zst", 3, "cut off or damaged"},
    {"head -c 20 x.tar.zst >bad.tar.zst", 3, "cut off or damaged"},
    {"cp x.tar.zst bad.tar.zst; head -c 64 /dev/zero | dd conv=notrunc bs=1 seek=5000 of=bad.tar.zst", -1,
     "bad.tar.zst: "}, /* 1 or 3, by what the bytes mean */
    {"echo hello >bad.tar.zst", 2, "not a bundle"},
    {"echo hello | zstd >bad.tar.zst", 2, "not a bundle"},
    {": >bad.tar.zst", 2, "not a bundle"},
    {"mkdir bad.tar.zst", 3, "bad.tar.zst: is not a plain file"},
    {":", 2, "bad.tar.zst: No such file"},
    {"rm u/rematch-bundle/SHA256SUMS; " TAR "$(cd u; find rematch-bundle -type f)", 2, "it has no SHA256SUMS"},
    {"echo odd >>u/rematch-bundle/SHA256SUMS; " TAR FILES, 2, "not a bundle: line 11 of SHA256SUMS is wrong"},
    {"sort -r -k2 -o u/rematch-bundle/SHA256SUMS u/rematch-bundle/SHA256SUMS; " TAR FILES, 2, "of SHA256SUMS is wrong"},
};

Test(bundle, a_changed_one_is_refused, .timeout = 240)
{
    struct cli cli;
    open_bundle(&cli);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        shell(&cli, "rm -rf u bad.tar.zst tmp && mkdir u tmp && tar --zstd -C u -xf x.tar.zst");
        shell(&cli, bad[i].make);
        cli_run(&cli, "export TMPDIR=$PWD/tmp", "verify bad.tar.zst");
        cr_expect(bad[i].code < 0 ? cli.code == 1 || cli.code == 3 : cli.code == bad[i].code, "%s: exit code %d\n%s%s",
                  bad[i].make, cli.code, cli.out, cli.err);
        cr_expect(strstr(cli.err, bad[i].says) && cli_complaints(&cli) == 1 && !*cli.out, "%s: no '%s' in\n%s%s",
                  bad[i].make, bad[i].says, cli.err, cli.out);
        shell(&cli, "[ -z \"$(ls tmp)\" ] && ! [ -e rematch-escaped ] && ! [ -e /rematch-escaped ]");
    }
    cli_close(&cli);
}

/* While it is unpacked, and while its digests are computed: the program ends within a second or two, without a trace.
 */
Test(bundle, a_signal_ends_the_reading, .timeout = 120)
{
    static const char *const delays[] = {"0.1", "0.5", "1.2"}, *const signals[] = {"TERM", "USR1", "HUP"};
    struct cli cli;
    open_bundle(&cli);
    shell(&cli, "mkdir u tmp && tar --zstd -C u -xf x.tar.zst && truncate -s 900M u/rematch-bundle/zeros && "
                "echo \"$(printf '%064d' 0)  zeros\" >>u/rematch-bundle/SHA256SUMS; " TAR FILES);
    shell(&cli, "TMPDIR=$PWD/tmp \"$REMATCH_BIN\" verify bad.tar.zst; test $? = 1");
    for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
        char command[512];
        snprintf(command, sizeof command,
                 "export TMPDIR=$PWD/tmp; \"$REMATCH_BIN\" verify bad.tar.zst & p=$!; sleep %s; kill -%s $p && "
                 "sleep 2 && ! kill -0 $p && ! wait $p && [ -z \"$(ls tmp)\" ]",
                 delays[i], signals[i]);
        shell(&cli, command);
    }
    cli_close(&cli);
}

/* With all digests of files computed again, what remains is what the files say of each other and of a second run. */
Test(bundle, a_consistent_forgery_does_not_hold, .timeout = 120)
{
    struct cli cli;
    glob_t found;
    char pattern[512];
    open_bundle(&cli);
    shell(&cli, "mkdir u && tar --zstd -C u -xf x.tar.zst");
    snprintf(pattern, sizeof pattern, "%s/u/rematch-bundle/runs/small/*.h5", cli.folder);
    cr_assert(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 2);
    alter_digest(found.gl_pathv[0], 2, 1);
    shell(&cli, SUMS TAR FILES);
    holds(&cli, "", "verify bad.tar.zst", 1, "verdict   DOES NOT HOLD: of 2 runs 1 holds");
    cli_says(&cli, "DIFFER: first at step 2");
    cli_says(&cli, ": DIFFERS\n");
    alter_element(found.gl_pathv[1], "/steps/loss_bits", 2, 1);
    globfree(&found);
    shell(&cli, SUMS TAR FILES);
    holds(&cli, "", "verify bad.tar.zst", 1,
          "verdict   DOES NOT HOLD: of 2 runs 0 hold, 0 partly, 0 could not be "
          "repeated here, 2 are wrong");
    cli_complains(&cli, "step 2: loss and loss_bits disagree");
    cli_close(&cli);
}

/* Changes to what the bundle says about its runs, and what verify reports; the digests are computed again. */
static const struct {
    const char *change, *says;
} forged[] = {
    {"sed -i '/^| runs/s/[^|]*|/ 0.5 |/7' README.md", "described README.md: line 15 is '| runs/small/"},
    {"sed -i 's/\"high_water_bytes\": /&9/' $(ls runs/small/*.json | tail -1)", ": 9"},
    {"sed -i 's/^seed: .*/seed: 9/' $(ls runs/small/*.resolved.yaml | head -1)", "is 'seed: 9'; expected 'seed: "},
    {"sed -i 's/not stated: /\\o033[2J/' ro-crate-metadata.json", "is '   \"license\": \"?[2Jthe authors"},
    {"echo odd >>README.md", "is 'odd'; expected ''"},
    {"head -n -1 README.md >cut; mv cut README.md", "is ''; expected '- Software licence"},
    {"rm README.md", "described README.md: is missing"},
    {"cp README.md extra.md", "described extra.md: belongs to no run"},
};

Test(bundle, a_forged_description_does_not_hold, .timeout = 120)
{
    struct cli cli;
    open_bundle(&cli);
    for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
        char command[1024];
        snprintf(
            command, sizeof command,
            "rm -rf u && mkdir u && tar --zstd -C u -xf x.tar.zst && cd u/rematch-bundle && %s && cd ../.. && " SUMS TAR
                FILES,
            forged[i].change);
        shell(&cli, command);
        holds(&cli, "", "verify bad.tar.zst --plan-only", 1, "verdict   DOES NOT HOLD: of 2 runs 2 hold");
        cli_says(&cli, forged[i].says);
    }
    json_t *all = cli_json(&cli, 1, "verify bad.tar.zst --plan-only --json");
    cr_expect_str_eq(json_string_value(json_object_get(all, "described")), "extra.md: belongs to no run");
    json_decref(all);
    cli_close(&cli);
}

/* As tar packs a folder: with entries of folders, in any order. */
Test(bundle, one_that_was_packed_again_holds)
{
    struct cli cli;
    open_bundle(&cli);
    shell(&cli, "mkdir u && tar --zstd -C u -xf x.tar.zst && " TAR "rematch-bundle");
    holds(&cli, "", "verify bad.tar.zst --plan-only", 0, "verdict   HOLDS: of 2 runs 2 hold");
    cli_close(&cli);
}

/* Command lines of bundle that fail, and what they say; out.tar.zst must be what it was. */
static const struct {
    const char *before, *arguments;
    int code;
    const char *says;
} refused[] = {
    {"", "bundle results/small/*.h5", 2, "--out is missing"},
    {"", "bundle -o out.tar.zst", 2, "too few arguments"},
    {"", "bundle small.yaml -o out.tar.zst", 2, "small.yaml: not an HDF5 file"},
    {"", "bundle nothing.h5 -o out.tar.zst", 2, "nothing.h5: cannot read: No such file"},
    {"cp $(ls results/small/*.h5 | head -1) a.h5.part", "bundle a.h5.part -o out.tar.zst", 2,
     "expected a completed run"},
    {"cp $(ls results/small/*.h5 | head -1) 'a b.h5'", "bundle 'a b.h5' -o out.tar.zst", 2,
     "cannot be called 'runs/small/a b.h5' in a bundle"},
    {"mkdir -p o; cp $(ls results/small/*.h5 | tail -1) o/$(basename $(ls results/small/*.h5 | head -1))",
     "bundle o/*.h5 results/small/*.h5 -o out.tar.zst", 2, "is in the bundle"},
    {"echo mine >mine.txt", "bundle results/small/*.h5 -o mine.txt", 2, "mine.txt: exists and is no bundle"},
    {"", "bundle results/small/*.h5 -o no/folder/out.tar.zst", 3, "cannot create a file beside it"},
    {"trap '' XFSZ; ulimit -f 8", "bundle results/small/*.h5 -o out.tar.zst", 3, "cannot be written: "},
};

Test(bundle, a_bundle_that_cannot_be_made_changes_nothing)
{
    struct cli cli;
    open_bundle(&cli);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        shell(&cli, "echo kept | zstd >kept && cp kept out.tar.zst; echo mine >mine.txt");
        cli_run(&cli, refused[i].before, refused[i].arguments);
        cr_expect(cli.code == refused[i].code, "%s: exit code %d\n%s", refused[i].arguments, cli.code, cli.err);
        cr_expect(strstr(cli.err, refused[i].says) && cli_complaints(&cli) == 1, "%s: no '%s' in\n%s",
                  refused[i].arguments, refused[i].says, cli.err);
        shell(&cli, "cmp kept out.tar.zst && grep -q mine mine.txt && [ \"$(ls out.tar.zst*)\" = out.tar.zst ]");
    }
    cli_close(&cli);
}

static const json_t *entity(const json_t *crate, const char *id)
{
    size_t i;
    json_t *one;
    json_array_foreach (json_object_get(crate, "@graph"), i, one) {
        if (strcmp(json_string_value(json_object_get(one, "@id")), id) == 0) return one;
    }
    cr_assert_fail("no entity is called %s", id);
    return NULL;
}

static const char *id_of(const json_t *object) { return json_string_value(json_object_get(object, "@id")); }

/* What RO-Crate 1.1 requires; digests by sha256sum, sizes by wc. */
Test(bundle, its_metadata_is_a_crate)
{
    struct cli cli;
    char path[512];
    size_t i, k, actions = 0;
    json_t *one, *part;
    open_bundle(&cli);
    shell(&cli, "tar --zstd -xf x.tar.zst && cd rematch-bundle && sha256sum --strict -c SHA256SUMS");
    shell(&cli, "cd rematch-bundle && [ $(find . -type f | wc -l) = $(($(wc -l <SHA256SUMS) + 1)) ] && [ $(stat -c %a "
                "README.md) = 644 ]");
    /* where the program comes from, and at which commit */
    shell(&cli, "cd rematch-bundle && grep -q '^    git clone ADDRESS' README.md && grep -q \"^- Software: commit of "
                "rematch: .$(\"$REMATCH_BIN\" --version | sed 's/.*commit \\([0-9a-z]*\\).*/\\1/')\" README.md");
    snprintf(path, sizeof path, "%s/rematch-bundle/ro-crate-metadata.json", cli.folder);
    json_t *crate = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    cr_assert(crate);
    cr_expect_str_eq(json_string_value(json_array_get(json_object_get(crate, "@context"), 0)),
                     "https://w3id.org/ro/crate/1.1/context");
    const json_t *about = entity(crate, "ro-crate-metadata.json"), *root = entity(crate, "./");
    cr_expect_str_eq(json_string_value(json_object_get(about, "@type")), "CreativeWork");
    cr_expect_str_eq(id_of(json_object_get(about, "conformsTo")), "https://w3id.org/ro/crate/1.1");
    cr_expect_str_eq(id_of(json_object_get(about, "about")), "./");
    cr_expect_str_eq(json_string_value(json_object_get(root, "@type")), "Dataset");
    for (const char *const *key = (const char *const[]){"name", "description", "datePublished", "license", NULL}; *key;
         key++)
        cr_expect(json_is_string(json_object_get(root, *key)), "%s", *key);
    json_array_foreach (json_object_get(root, "hasPart"), i, part) {
        const json_t *file = entity(crate, id_of(part));
        char command[1024];
        cr_expect_str_eq(json_string_value(json_object_get(file, "@type")), "File");
        snprintf(command, sizeof command, "cd rematch-bundle && echo '%s  %s' | sha256sum -c && [ $(wc -c <%s) = %s ]",
                 json_string_value(json_object_get(file, "sha256")), id_of(file), id_of(file),
                 json_string_value(json_object_get(file, "contentSize")));
        shell(&cli, command);
    }
    cr_expect(i == 9, "%zu files", i); /* four of each run and the README */
    json_array_foreach (json_object_get(crate, "@graph"), i, one) {
        if (strcmp(json_string_value(json_object_get(one, "@type")), "CreateAction") != 0) continue;
        actions++;
        cr_expect_str_eq(
            json_string_value(json_object_get(entity(crate, id_of(json_object_get(one, "instrument"))), "@type")),
            "SoftwareApplication");
        json_array_foreach (json_object_get(one, "object"), k, part) entity(crate, id_of(part));
        entity(crate, id_of(json_array_get(json_object_get(one, "result"), 0)));
    }
    cr_expect(actions == 2);
    json_decref(crate);
    cli_close(&cli);
}
