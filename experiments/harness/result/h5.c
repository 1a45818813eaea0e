#include "result/h5.h"

#include <hdf5_hl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "console/utf8.h"

/* Attempts of a reader while another process may be writing, with doubling waits: some 70 ms in all. */
enum { READ_ATTEMPTS = 26 };

/* SIGKILL may interrupt a write between two pages of the kernel. Metadata must be written as a whole, so the library
 * lets no block of metadata that fits a page cross one (an array's index fits up to some 8000 chunks). */
enum { PAGE_BYTES = 4096 };

/* The library's innermost error, or the system's error message where the library quotes it. */
static herr_t find_reason(unsigned n, const H5E_error2_t *error, void *text)
{
    static const char quote[] = "error message = '";
    const char *said = error->desc ? strstr(error->desc, quote) : NULL;
    if (said) {
        said += sizeof quote - 1;
        snprintf(text, 256, "%.*s", (int)strcspn(said, "'"), said);
        return 1;
    }
    if (n == 0 && error->desc) snprintf(text, 256, "%s", error->desc);
    return 0;
}

bool h5_check(struct h5 *h5, bool ok, const char *what, const char *name)
{
    if (ok || h5->broken) return !h5->broken;
    char reason[256] = "no reason given";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_reason, reason);
    h5->broken = true;
    snprintf(h5->message, sizeof h5->message, "%s: cannot %s%s%s: %s", h5->path, what, *name ? " " : "", name, reason);
    fail(ST_FAILED, "%s", h5->message);
    return false;
}

enum status h5_status(struct h5 *h5) { return h5->broken ? fail(ST_FAILED, "%s", h5->message) : ST_OK; }

void h5_drop_ids(struct h5 *h5, const char *name, const hid_t *id)
{
    for (; *id; id++)
        if (*id > 0 && (!h5->broken || h5->reading))
            h5_check(h5, H5Idec_ref(*id) >= 0, h5->reading ? "close" : "write", name);
}

/* ---- a crash or endless loop of the library on a damaged file ends the process with a message that says so ---- */

/* Contract: little but the library runs within a guard; outside of it, every signal has its former handler. */
enum { SECONDS = 3, STACK = 64 * 1024, SHOWN = 1024 };

static const int ends[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGPROF};
enum { ENDS = sizeof ends / sizeof *ends };

static char stack[STACK]; /* for the handler: a damaged file may make the library recurse until its own is full */
static stack_t stack_before;
static struct sigaction before[ENDS];
static const char *volatile guarded; /* path of the file that is being read */
static int depth;

static void report_end(int signal)
{
    char path[SHOWN] = "";
    memcpy(path, (const char *)guarded, strnlen((const char *)guarded, sizeof path - 1));
    utf8_clean(path, "");
    char begin[] = "rematch: ", cause[] = ": cannot read: the HDF5 library ", end[] = ", as on some damaged files\n";
    char *what = signal == SIGPROF ? "does not finish reading it" : "crashes on it";
    const struct iovec parts[] = {{begin, sizeof begin - 1},
                                  {path, strlen(path)},
                                  {cause, sizeof cause - 1},
                                  {what, strlen(what)},
                                  {end, sizeof end - 1}};
    const ssize_t written = writev(STDERR_FILENO, parts, 5);
    (void)written;
    _exit(ST_FAILED);
}

static void limit(time_t seconds) { setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = seconds}, NULL); }

void h5_guard(const struct h5 *h5)
{
    if (!h5->reading || depth++) return;
    guarded = h5->path;
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = STACK}, &stack_before);
    for (size_t i = 0; i < ENDS; i++)
        sigaction(ends[i], &(struct sigaction){.sa_handler = report_end, .sa_flags = SA_ONSTACK}, &before[i]);
    limit(SECONDS);
}

void h5_release(const struct h5 *h5)
{
    if (!h5->reading || --depth) return;
    limit(0);
    for (size_t i = 0; i < ENDS; i++) sigaction(ends[i], &before[i], NULL);
    sigaltstack(&stack_before, NULL);
}

/* ---- opening and closing ---- */

/* Property lists for opening and creating a file, -1 on failure. The library's own locks are off: a reader that opens
 * the file would make the writer fail. record_file.h ensures that one process at a time writes it. */
static hid_t access_list(void)
{
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    const bool ok = list >= 0 && H5Pset_libver_bounds(list, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0 &&
                    H5Pset_fclose_degree(list, H5F_CLOSE_STRONG) >= 0 && H5Pset_file_locking(list, false, true) >= 0 &&
                    H5Pset_metadata_read_attempts(list, READ_ATTEMPTS) >= 0;
    return ok ? list : -1;
}

static hid_t creation_list(void)
{
    const hid_t list = H5Pcreate(H5P_FILE_CREATE);
    const bool ok = list >= 0 && H5Pset_obj_track_times(list, false) >= 0 &&
                    H5Pset_link_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0 &&
                    H5Pset_file_space_strategy(list, H5F_FSPACE_STRATEGY_PAGE, false, 1) >= 0 &&
                    H5Pset_file_space_page_size(list, PAGE_BYTES) >= 0;
    return ok ? list : -1;
}

enum status h5_open(struct h5 *h5, const char *path, enum h5_mode mode)
{
    struct stat file;
    *h5 = (struct h5){.file = -1, .text = -1, .path = path, .reading = mode == H5_READ};
    h5_guard(h5);
    if (stat(path, &file) == 0) h5->bytes = (uint64_t)file.st_size;
    /* before the library's constants, which initialise it: its exit handler crashes after a failed flush; later calls
     * fail, harmlessly */
    H5dont_atexit();
    const unsigned flags[] = {[H5_CREATE] = H5F_ACC_TRUNC,
                              [H5_APPEND] = H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE,
                              [H5_EDIT] = H5F_ACC_RDWR,
                              [H5_READ] = H5F_ACC_RDONLY | H5F_ACC_SWMR_READ};
    const char *what = mode == H5_CREATE ? "create" : "open";
    h5_check(h5, H5Eset_auto2(H5E_DEFAULT, NULL, NULL) >= 0, what, "");
    const hid_t access = access_list(), creation = creation_list();
    h5->text = H5Tcopy(H5T_C_S1);
    if (access >= 0 && creation >= 0 && h5->text >= 0 && H5Tset_size(h5->text, H5T_VARIABLE) >= 0 &&
        H5Tset_cset(h5->text, H5T_CSET_UTF8) >= 0)
        h5->file =
            mode == H5_CREATE ? H5Fcreate(path, flags[mode], creation, access) : H5Fopen(path, flags[mode], access);
    h5_check(h5, h5->file >= 0, what, "");
    h5_drop(h5, "", creation, access);
    h5_release(h5);
    return h5_status(h5);
}

void h5_flush(struct h5 *h5)
{
    if (!h5->broken) h5_check(h5, H5Fflush(h5->file, H5F_SCOPE_GLOBAL) >= 0, "write", "");
}

enum status h5_close(struct h5 *h5)
{
    h5_guard(h5);
    h5_drop(h5, "", h5->text);
    if (h5->file >= 0) h5_check(h5, H5Fclose(h5->file) >= 0, h5->reading ? "close" : "write", "");
    h5->file = -1;
    h5_release(h5);
    return h5_status(h5);
}

hid_t h5_type(const struct h5 *h5, enum number number, bool in_memory)
{
    const hid_t types[NUMBERS][2] = {[NUMBER_U8] = {H5T_STD_U8LE, H5T_NATIVE_UINT8},
                                     [NUMBER_I32] = {H5T_STD_I32LE, H5T_NATIVE_INT32},
                                     [NUMBER_U32] = {H5T_STD_U32LE, H5T_NATIVE_UINT32},
                                     [NUMBER_U64] = {H5T_STD_U64LE, H5T_NATIVE_UINT64},
                                     [NUMBER_F32] = {H5T_IEEE_F32LE, H5T_NATIVE_FLOAT},
                                     [NUMBER_F64] = {H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE},
                                     [NUMBER_TEXT] = {h5->text, h5->text}};
    return types[number][in_memory];
}

size_t h5_number_bytes(enum number number)
{
    static const size_t bytes[NUMBERS] = {1, 4, 4, 8, 4, 8, sizeof(const char *)};
    return bytes[number];
}
