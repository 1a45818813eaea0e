/* Whatever happens to the writer, every committed step can be read, also by plain HDF5 calls. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "result/record_file.h"
#include "result/result_read.h"
#include "tests/support/file_writes.h"
#include "tests/support/made_runs.h"

enum { STEPS = 24, KILLS = 30, LIMITS = 24, CUT_STEPS = 3, CRASHES = 200, PAGE = 4096 };

/* The writer's messages: numbers of committed steps, from 1 in each run, and finally why it failed. */
struct news {
    uint32_t committed;
    char message[512];
};

static enum status write_run(struct fake *fake, int pipe_end, const float *x, const int32_t *labels)
{
    struct record *record;
    struct run_summary summary = {.high_water = 1};
    TRY(record_create(&fake->job, "variant", &record));
    for (uint32_t i = 0; i < STEPS; i++) {
        struct step_record step = fake_step(fake, i);
        struct news news = {.committed = i + 1};
        TRY(record_batch(record, i, x, labels));
        TRY(record_step(record, &step));
        if (write(pipe_end, &news, sizeof news) != sizeof news) _exit(9);
    }
    return record_finish(record, "completed", &summary, NULL);
}

/* The writer's process: one run after the other, with the same id. */
static void write_runs(const char *folder, int pipe_end, int runs)
{
    struct fake fake;
    fake_open(&fake, &nets[0], folder);
    fake.spec.record_state = true;
    float *x = calloc(fake.job.graph->value[0].bytes, 1);
    int32_t *labels = calloc((size_t)fake.job.graph->batch, sizeof *labels);
    enum status status = ST_OK;
    for (int run = 0; status == ST_OK && run < runs; run++) status = write_run(&fake, pipe_end, x, labels);
    struct news news = {0};
    if (status != ST_OK) snprintf(news.message, sizeof news.message, "%.511s", status_message());
    if (status != ST_OK && write(pipe_end, &news, sizeof news) != sizeof news) status = ST_DIFFERS;
    _exit((int)status);
}

static pid_t start_writer(const char *folder, int runs, rlim_t limit, int *read_end)
{
    int ends[2];
    cr_assert(pipe(ends) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, limit});
        write_runs(folder, ends[1], runs);
    }
    close(ends[1]);
    *read_end = ends[0];
    return pid;
}

/* The last committed step of at most so many, and the message, if any. */
static uint32_t hear(int read_end, int most, char message[512])
{
    struct news news;
    uint32_t last = 0;
    message[0] = 0;
    while (most-- > 0 && read(read_end, &news, sizeof news) == sizeof news) {
        if (news.committed) last = news.committed;
        snprintf(message, 512, "%.511s", news.message);
    }
    return last;
}

/* Every committed row holds what fake_step() wrote; returns their number. */
static size_t check_rows(hid_t file, const char *path)
{
    static const char *const columns[] = {"/steps/committed", "/steps/loss_bits", "/steps/rss"};
    hsize_t rows[3];
    for (int i = 0; i < 3; i++) {
        hid_t id = H5Dopen2(file, columns[i], H5P_DEFAULT), space = H5Dget_space(id);
        cr_assert(H5Sget_simple_extent_dims(space, &rows[i], NULL) == 1);
        cr_assert(rows[i] >= rows[0], "%s: %s has %llu rows of %llu", path, columns[i], (unsigned long long)rows[i],
                  (unsigned long long)rows[0]);
        H5Sclose(space);
        H5Dclose(id);
    }
    uint32_t *bits = calloc(rows[1] + 1, sizeof *bits);
    hid_t id = H5Dopen2(file, columns[1], H5P_DEFAULT);
    cr_assert(H5Dread(id, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, bits) >= 0);
    for (uint32_t i = 0; i < rows[0]; i++) {
        cr_assert(bits[i] == bits_of(2.0F / (float)(i + 1)), "%s: step %u is not what was written", path, i);
    }
    H5Dclose(id);
    free(bits);
    return rows[0];
}

/* Committed steps found by our reader; they hold what fake_step() wrote. */
static size_t check_result(const char *path, bool whole)
{
    struct result *result;
    cr_assert(result_open(path, &result) == ST_OK, "%s", status_message());
    cr_assert(result->whole == whole && !result->written);
    cr_assert(!whole || (result->steps == STEPS && strcmp(result->status, "completed") == 0));
    for (uint32_t i = 0; i < result->steps; i++) {
        cr_assert(result->loss_bits[i] == bits_of(2.0F / (float)(i + 1)), "%s: step %u", path, i);
        for (int k = DIGESTS_GRADIENT; k <= DIGESTS_STATE; k++) {
            const struct digest *digests = result_digests(result, (enum digests)k, i);
            cr_assert(digests && digest_equal(digests[1], (struct digest){i * 1000 + 1, (uint64_t)k + 1}),
                      "%s: step %u: %s", path, i, result->h5.message);
        }
    }
    const size_t steps = result->steps;
    result_close(result);
    return steps;
}

/* Rows of the file found by plain calls and by ours, -1: there is no file. */
static long check_file(const char *path, bool whole)
{
    struct stat there;
    if (stat(path, &there) < 0) return -1;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_metadata_read_attempts(access,
                                  10); /* with 100 attempts, each waiting twice as long, reading would never end */
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, access);
    H5Pclose(access);
    cr_assert(file >= 0, "%s cannot be opened", path);
    size_t rows = check_rows(file, path);
    H5Fclose(file);
    cr_assert(check_result(path, whole) == rows, "%s: %zu rows by bare calls", path, rows);
    return (long)rows;
}

static void check_folder(const char *path, uint32_t committed)
{
    char part[1100];
    snprintf(part, sizeof part, "%s.part", path);
    long whole = check_file(path, true), rows = check_file(part, false);
    cr_assert(committed == 0 || rows >= (long)committed || (committed == STEPS && whole == STEPS),
              "%u steps committed, %ld in .part", committed, rows);
}

/* The path of the writer's file, the duration of a run, and its final size. */
static void measure(const char *folder, char path[1024], uint64_t *ns, rlim_t *bytes)
{
    struct fake fake;
    struct stat file;
    char message[512];
    int read_end;
    uint64_t start = clock_now_ns();
    fake_open(&fake, &nets[0], folder);
    fake_write(&fake, "variant", 1, NULL, path);
    fake_close(&fake);
    pid_t pid = start_writer(folder, 1, RLIM_INFINITY, &read_end);
    hear(read_end, INT_MAX, message);
    close(read_end);
    waitpid(pid, NULL, 0);
    *ns = clock_now_ns() - start;
    cr_assert(stat(path, &file) == 0 && check_file(path, true) == STEPS);
    *bytes = (rlim_t)file.st_size;
    unlink(path);
}

static void rest(double ns)
{
    nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / 1e9), .tv_nsec = (long)fmod(ns, 1e9)}, NULL);
}

/* Half of the kills are while a file is created or finished, half between the commits of two steps. */
Test(record_crash, a_kill_at_any_instant_keeps_committed_steps, .timeout = 300)
{
    char folder[256], path[1024], message[512];
    uint64_t ns;
    rlim_t bytes;
    int read_end, between = 0;
    folder_make(folder);
    measure(folder, path, &ns, &bytes);
    srand(1);
    for (int i = 0; i < KILLS; i++) {
        pid_t pid = start_writer(folder, 3, RLIM_INFINITY, &read_end);
        const double chance = (double)rand() / RAND_MAX;
        uint32_t heard = i % 2 ? hear(read_end, 1 + rand() % (2 * STEPS), message) : 0;
        rest(i % 2 ? chance * 1e6 : 2 * chance * (double)ns);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        uint32_t committed = hear(read_end, INT_MAX, message);
        close(read_end);
        if (!committed) committed = heard;
        cr_assert(!*message, "%s", message);
        check_folder(path, committed);
        between += committed > 0 && committed < STEPS;
    }
    cr_assert(between > KILLS / 4, "%d of %d kills fell between steps", between, KILLS);
    folder_remove(folder);
}

/* A refused writer leaves the files alone, at whatever instant. */
Test(record_crash, a_second_writer_is_refused_and_changes_nothing)
{
    static const char *const names[] = {"it is begun", "it is written", "its end is written"};
    char folder[256];
    struct record_file first, second;
    folder_make(folder);
    cr_assert(record_file_begin(&first, folder, "small", "id") == ST_OK, "%s", status_message());
    for (int i = 0; i < 3; i++) {
        if (i == 1) cr_assert(record_file_publish(&first, false) == ST_OK, "%s", status_message());
        if (i == 2) cr_assert(record_file_copy(&first) == ST_OK, "%s", status_message());
        cr_assert(record_file_begin(&second, folder, "small", "id") == ST_FAILED, "while %s", names[i]);
        cr_assert(strstr(status_message(), "id.h5.part: another process is writing it"), "%s", status_message());
    }
    cr_assert(record_file_publish(&first, true) == ST_OK, "%s", status_message());
    record_file_release(&first);
    cr_assert(folder_count(folder, ".h5") == 1 && folder_count(folder, "") == 1);
    cr_assert(record_file_begin(&second, folder, "small", "id") == ST_OK, "%s", status_message());
    record_file_release(&second);
    folder_remove(folder);
}

/* Repeats a write on the copy page by page, as the kernel does, and checks every state in between; returns their
 * number. */
static size_t play(const char *path, int copy, const struct file_write *write, uint32_t committed)
{
    size_t states = 0;
    if (!write->data && write->at != SYNCED) cr_assert(ftruncate(copy, write->at) == 0);
    for (size_t done = 0, piece; done < write->bytes; done += piece, states++) {
        const off_t at = write->at + (off_t)done;
        piece = PAGE - (size_t)(at % PAGE);
        if (piece > write->bytes - done) piece = write->bytes - done;
        cr_assert(pwrite(copy, write->data + done, piece, at) == (ssize_t)piece);
        const long rows = check_file(path, false);
        cr_assert(rows >= (long)committed, "%ld rows of %u after %zu of %zu bytes at %ld", rows, committed,
                  done + piece, write->bytes, (long)write->at);
    }
    return states;
}

/* SIGKILL may interrupt a write between any two pages of the page cache: that must lose no committed step. */
static size_t cut_everywhere(const struct net *net, const char *folder)
{
    struct fake fake;
    struct record *record;
    struct record_file files;
    struct run_summary summary = {.high_water = 1};
    size_t written[CUT_STEPS], states = 0;
    fake_open(&fake, net, folder);
    cr_assert(record_create(&fake.job, "variant", &record) == ST_OK, "%s", status_message());
    snprintf(files.part, sizeof files.part, "%.1000s.part", record_path(record));
    snprintf(files.path, sizeof files.path, "%s/copy.h5.part", folder);
    cr_assert(record_file_copy(&files) == ST_OK, "%s", status_message());
    writes_watch(files.part);
    for (uint32_t i = 0; i < CUT_STEPS; i++) {
        struct step_record step = fake_step(&fake, i);
        cr_assert(record_step(record, &step) == ST_OK, "%s", status_message());
        written[i] = writes_seen();
    }
    cr_assert(record_finish(record, "completed", &summary, NULL) == ST_OK, "%s", status_message());
    writes_watch(NULL);
    int copy = open(files.fresh, O_WRONLY);
    for (size_t i = 0, committed = 0; i < writes_seen(); i++) {
        while (committed < CUT_STEPS && written[committed] <= i) committed++;
        states += play(files.fresh, copy, writes_get(i), (uint32_t)committed);
    }
    close(copy);
    fake_close(&fake);
    return states;
}

Test(record_crash, a_write_cut_at_any_page_keeps_committed_steps, .timeout = 300)
{
    char folder[256];
    folder_make(folder);
    for (const struct net *net = nets; net->name; net++) {
        const size_t states = cut_everywhere(net, folder);
        cr_assert(states > CUT_STEPS * 50, "%s: only %zu states seen", net->name, states);
        writes_forget();
    }
    folder_remove(folder);
}

/* The file as it is on the disk: bytes of it, and spare room. */
struct image {
    char *data;
    off_t bytes, room;
};

/* Applies the part of a write within [from, to). */
static void apply(struct image *image, const struct file_write *write, off_t from, off_t to)
{
    const off_t first = write->at > from ? write->at : from;
    const off_t end = write->at + (off_t)write->bytes < to ? write->at + (off_t)write->bytes : to;
    if (write->data && first < end)
        memcpy(image->data + first, write->data + (first - write->at), (size_t)(end - first));
}

/* The length of the file after a write. */
static off_t extend(off_t bytes, const struct file_write *write)
{
    const off_t end = write->at + (off_t)write->bytes;
    if (write->at == SYNCED) return bytes;
    return !write->data || end > bytes ? end : bytes;
}

/* A crash of the machine after `now` writes, of which `synced` are on the disk: of the others, each page may have been
 * written at any later time, and so may the length of the file. */
static void crash(struct image *image, size_t synced, size_t now)
{
    off_t longest = image->bytes;
    for (size_t i = 0; i < synced; i++) {
        apply(image, writes_get(i), 0, image->room);
        longest = image->bytes = extend(image->bytes, writes_get(i));
    }
    for (size_t i = synced; i < now; i++) longest = extend(longest, writes_get(i));
    for (off_t page = 0; page < longest; page += PAGE) {
        const size_t until = synced + (size_t)rand() % (now - synced + 1);
        for (size_t i = synced; i < until; i++) apply(image, writes_get(i), page, page + PAGE);
    }
    for (size_t i = synced, until = synced + (size_t)rand() % (now - synced + 1); i < until; i++)
        image->bytes = extend(image->bytes, writes_get(i));
}

static struct image read_image(const char *path)
{
    struct stat file;
    struct image image = {.room = 16 << 20};
    int from = open(path, O_RDONLY);
    cr_assert(from >= 0 && fstat(from, &file) == 0 && file.st_size < image.room);
    image.data = calloc((size_t)image.room, 1);
    image.bytes = file.st_size;
    cr_assert(pread(from, image.data, (size_t)image.bytes, 0) == image.bytes);
    close(from);
    return image;
}

/* Two syncs per step: of its row, then of its commit. */
static void crash_anywhere(const char *first, const char *copy)
{
    for (int i = 0; i < CRASHES; i++) {
        const size_t now = (size_t)rand() % (writes_seen() + 1);
        size_t synced = 0, syncs = 0;
        for (size_t w = 0; w < now; w++)
            if (writes_get(w)->at == SYNCED) synced = w + 1, syncs++;
        struct image image = read_image(first);
        crash(&image, synced, now);
        int to = open(copy, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        cr_assert(write(to, image.data, (size_t)image.bytes) == image.bytes);
        close(to);
        free(image.data);
        const size_t rows = check_result(copy, false);
        cr_assert(rows >= syncs / 2, "%zu rows, %zu of %zu writes, %zu syncs", rows, now, writes_seen(), syncs);
    }
}

Test(record_crash, a_machine_crash_keeps_the_steps_forced_to_the_disk, .timeout = 300)
{
    char folder[256], first[1024], part[1024];
    struct fake fake;
    struct record *record;
    struct record_file files;
    folder_make(folder);
    fake_open(&fake, &nets[0], folder);
    fake.spec.record_fsync = 1;
    cr_assert(record_create(&fake.job, "variant", &record) == ST_OK, "%s", status_message());
    snprintf(files.part, sizeof files.part, "%.1000s.part", record_path(record));
    snprintf(files.path, sizeof files.path, "%s/first", folder);
    cr_assert(record_file_copy(&files) == ST_OK, "%s", status_message());
    snprintf(first, sizeof first, "%s", files.fresh);
    snprintf(part, sizeof part, "%s/copy.h5.part", folder);
    writes_watch(files.part);
    for (uint32_t i = 0; i < STEPS; i++) {
        struct step_record step = fake_step(&fake, i);
        cr_assert(record_step(record, &step) == ST_OK, "%s", status_message());
    }
    writes_watch(NULL);
    srand(1);
    crash_anywhere(first, part);
    writes_forget();
    record_abandon(record);
    fake_close(&fake);
    folder_remove(folder);
}

Test(record_crash, a_full_disk_at_any_byte_keeps_committed_steps, .timeout = 300)
{
    char folder[256], path[1024], message[512];
    uint64_t ns;
    rlim_t bytes;
    int read_end, state, full = 0, steps = 0;
    folder_make(folder);
    measure(folder, path, &ns, &bytes);
    for (int i = 0; i <= LIMITS; i++) {
        folder_remove(folder);
        mkdir(folder, 0700);
        pid_t pid = start_writer(folder, 1, bytes * (rlim_t)(i + 2) / LIMITS, &read_end);
        uint32_t committed = hear(read_end, INT_MAX, message);
        close(read_end);
        waitpid(pid, &state, 0);
        cr_assert(WIFEXITED(state) && WEXITSTATUS(state) == (*message ? ST_FAILED : ST_OK), "state %x",
                  (unsigned)state);
        cr_assert(!*message || (strstr(message, folder) && strstr(message, strerror(EFBIG))), "%s", message);
        check_folder(path, committed);
        full += *message != 0;
        steps += committed > 0 && committed < STEPS;
    }
    cr_assert(full > LIMITS / 2 && full <= LIMITS && steps > 2, "%d full, %d of them between steps", full, steps);
    folder_remove(folder);
}
