/* The status that a fallible call returns, and the message that explains it.
 *
 * The values are the program's exit codes, so a failure travels from the place that found it to main unchanged. */
#pragma once

enum status {
    ST_OK = 0,       /* done, or equal */
    ST_DIFFERS = 1,  /* a comparison or an expectation failed */
    ST_SPEC = 2,     /* usage, spec, model, policy or schedule is wrong; nothing ran */
    ST_FAILED = 3,   /* memory, NaN, I/O: it ran and had to stop */
    ST_UNPROVEN = 4, /* equal as far as compared, but the comparison was incomplete */
    ST_MISSING = 77, /* a prerequisite (data, initial values, backend, device) is missing */
};

/* Returns from the calling function when call() fails, passing its status on. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        enum status try_status = (call);                                                                               \
        if (try_status != ST_OK) return try_status;                                                                    \
    } while (0)

/* Records the message (printf format, no newline) for this thread and returns status. It stays one line: ASCII control
 * characters become '?'; of more than 2 KiB the middle is left out, and beyond 16 KiB the end. */
enum status fail(enum status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
#ifdef __clang_analyzer__ /* it sees only the prototype: tells it what fail() returns */
#define fail(status, ...) (fail(status, __VA_ARGS__), (status))
#endif

/* The message of this thread's last fail(), "" before the first; valid until the next fail(). */
const char *status_message(void);
