#include "console/standard_input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { BYTES_MAX = 1 << 24, PIECE = 1 << 16, WRITER_MS = 5000 };

const char standard_input[] = "/dev/stdin";

static enum status cannot(const char *word) { return fail(ST_SPEC, "%s: cannot be read: %s", word, strerror(errno)); }

static enum status copy(const char *word, int from, int to)
{
    char piece[PIECE];
    for (size_t all = 0;;) {
        const ssize_t got = read(from, piece, sizeof piece);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cannot(word);
        if (got == 0) return ST_OK;
        all += (size_t)got;
        if (all > BYTES_MAX) return fail(ST_SPEC, "%s: is larger than %d bytes", word, BYTES_MAX);
        for (ssize_t done = 0; done < got;) {
            const ssize_t put = write(to, piece + done, (size_t)(got - done));
            if (put < 0 && errno != EINTR) return cannot(word);
            done += put > 0 ? put : 0;
        }
    }
}

/* Opens a pipe or a terminal. A pipe that no program writes to would never end; a program that was just started may not
 * have opened it yet. */
static enum status open_stream(const char *word, bool pipe, int *descriptor)
{
    *descriptor = open(word, O_RDONLY | O_CLOEXEC | (pipe ? O_NONBLOCK : 0));
    if (*descriptor < 0) return cannot(word);
    struct pollfd writer = {.fd = *descriptor, .events = POLLIN};
    if (pipe && poll(&writer, 1, WRITER_MS) == 0) return fail(ST_SPEC, "%s: is a pipe that no program writes to", word);
    return fcntl(*descriptor, F_SETFL, O_RDONLY) == 0 ? ST_OK : cannot(word);
}

enum status standard_input_hold(char **word)
{
    static char path[sizeof standard_input];
    const bool own = strcmp(*word, "-") == 0 || strcmp(*word, standard_input) == 0;
    struct stat about;
    if ((own ? fstat(STDIN_FILENO, &about) : stat(*word, &about)) != 0) return own ? cannot(*word) : ST_OK;
    const bool once = S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode) || S_ISSOCK(about.st_mode);
    if (!own && !once) return ST_OK;
    if (once) {
        descriptor_auto int opened = -1;
        descriptor_auto int memory = memfd_create("spec", MFD_CLOEXEC);
        if (memory < 0) return cannot(*word);
        if (!own) TRY(open_stream(*word, S_ISFIFO(about.st_mode), &opened));
        TRY(copy(*word, own ? STDIN_FILENO : opened, memory));
        if (dup2(memory, STDIN_FILENO) < 0) return cannot(*word);
    }
    *word = strcpy(path, standard_input);
    return ST_OK;
}
