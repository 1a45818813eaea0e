#include "result/own_process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int apart(void (*work)(const void *of, void *result), const void *of, void *result, size_t bytes)
{
    void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int state = 0;
    if (shared == MAP_FAILED) return -1;
    memcpy(shared, result, bytes);
    fflush(NULL);
    const pid_t worker = fork();
    if (worker == 0) {
        work(of, shared);
        _exit(0);
    }
    pid_t ended = worker;
    while (worker > 0 && (ended = waitpid(worker, &state, 0)) < 0 && errno == EINTR) {
    }
    memcpy(result, shared, bytes);
    munmap(shared, bytes);
    return ended < 0 ? -1 : WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}
