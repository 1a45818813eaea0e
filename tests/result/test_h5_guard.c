/* Files that crash the HDF5 library: the program reports an error instead. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "build.h"
#include "report/show.h"
#include "result/result_read.h"
#include "tests/support/altered_files.h"
#include "tests/support/made_runs.h"

static char folder[256], path[1024]; /* of a valid file */

static void set_up(void)
{
    struct fake fake;
    folder_make(folder);
    fake_open(&fake, &nets[0], folder);
    fake_write(&fake, "baseline", 4, NULL, path);
    fake_close(&fake);
}

static void tear_down(void) { folder_remove(folder); }

TestSuite(h5_guard, .init = set_up, .fini = tear_down);

/* How a process that reads the file ends. */
static int state_of_reader(void)
{
    int state;
    pid_t reader = fork();
    if (reader == 0) {
        FILE *nowhere = freopen("/dev/null", "w", stderr);
        _exit((int)show_file(path, true, false, nowhere));
    }
    waitpid(reader, &state, 0);
    return state;
}

/* Heap objects that claim more bytes than their heap has crash the library on some of them (1.10.8). */
Test(h5_guard, a_crash_of_the_library_is_an_error, .timeout = 60)
{
    enum { OBJECTS = 12, SIZE_AT = 8 };
    static char content[1 << 16];
    if (strcmp(BUILD_VARIANT, "san") == 0) cr_skip_test("the sanitizer ends the reader where the library goes wrong");
    int file = open(path, O_RDWR);
    const ssize_t bytes = read(file, content, sizeof content);
    const char *object = memmem(content, bytes > 0 ? (size_t)bytes : 0, "GCOL", 4);
    cr_assert(object != NULL, "no heap in %zd bytes", bytes);
    object += 16;
    for (int i = 0; i < OBJECTS; i++) {
        uint64_t size, wrong;
        memcpy(&size, object + SIZE_AT, sizeof size);
        wrong = size | 0xac0000;
        cr_assert(pwrite(file, &wrong, sizeof wrong, object + SIZE_AT - content) == sizeof wrong);
        const int state = state_of_reader();
        cr_assert(WIFEXITED(state), "object %d of %llu bytes: signal %d", i, (unsigned long long)size, WTERMSIG(state));
        cr_assert(WEXITSTATUS(state) == ST_OK || WEXITSTATUS(state) == ST_FAILED);
        cr_assert(pwrite(file, &size, sizeof size, object + SIZE_AT - content) == sizeof size);
        object += 16 + (size + 7) / 8 * 8;
    }
    close(file);
}

Test(h5_guard, an_endless_loop_of_the_library_is_an_error, .timeout = 120)
{
    alter_endless(path);
    const int state = state_of_reader();
    cr_assert(WIFEXITED(state) && WEXITSTATUS(state) == ST_FAILED, "%x", (unsigned)state);
}

/* A fault outside of the library's calls is the program's own. */
Test(h5_guard, a_fault_outside_the_library_is_not_blamed_on_the_file, .signal = SIGABRT)
{
    struct result *open_file;
    cr_assert(result_open(path, &open_file) == ST_OK, "%s", status_message());
    tear_down(); /* the crash skips it */
    abort();
}
