/* The suite as make runs it: where its shell is ended, so are its tests, and it prints its summary. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A shell that runs the suite's slow tests of bounds, with both outputs into a pipe; *shell gets its process. */
static int start(pid_t *shell)
{
    int ends[2];
    char command[512], self[256] = "";
    cr_assert(readlink("/proc/self/exe", self, sizeof self - 1) > 0 && pipe(ends) == 0);
    snprintf(command, sizeof command, "env -i PATH=\"$PATH\" '%s' --filter 'bounds/*' 2>&1; exit 0", self);
    *shell = fork();
    if (*shell == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    return ends[0];
}

/* Reading ends once every process that has the pipe has ended. */
Test(suite, ends_with_its_shell_and_prints_its_summary, .timeout = 60)
{
    pid_t shell;
    char text[8192];
    size_t bytes = 0;
    const int pipe = start(&shell);
    sleep(2);
    cr_assert(kill(shell, SIGTERM) == 0 && waitpid(shell, NULL, 0) == shell);
    const time_t ended = time(NULL);
    for (ssize_t n; (n = read(pipe, text + bytes, sizeof text - 1 - bytes)) > 0;) bytes += (size_t)n;
    text[bytes] = '\0';
    cr_expect(time(NULL) - ended < 10, "the tests ran on for %ld s", (long)(time(NULL) - ended));
    cr_expect(strstr(text, "interrupted: ") && strstr(text, " passed, "), "%s", text);
}
