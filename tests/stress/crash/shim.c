/* Preloaded into a process: makes the n-th write-class system call below one folder fail.
 *
 *   CRASH_FOLDER  only files below this folder are watched
 *   CRASH_MODE    count | kill | torn | fail
 *   CRASH_CALLS   write | sync | all: the calls that are counted
 *   CRASH_AT      the number of the call, from 1; with "fail" the next `CRASH_TIMES` - 1 fail too
 *   CRASH_TIMES   how many calls fail (1)
 *   CRASH_ERRNO   the error of these calls
 *   CRASH_TALLY   the number of calls is written to this file when the process exits
 *
 * "kill" ends the process before the call; "torn" writes up to the first page boundary, then ends
 * the process: a kill can split a write only there, never within a page.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum kind { WRITE = 1, SYNC = 2 };

static atomic_long calls;
static long fail_at, fail_times = 1;
static int wanted, error_number;
static const char *folder, *mode;

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value ? value : otherwise;
}

__attribute__((constructor)) static void begin(void) {
    folder = setting("CRASH_FOLDER", NULL);
    mode = setting("CRASH_MODE", "count");
    const char *which = setting("CRASH_CALLS", "all");
    wanted = !strcmp(which, "write") ? WRITE : !strcmp(which, "sync") ? SYNC : WRITE | SYNC;
    fail_at = atol(setting("CRASH_AT", "0"));
    fail_times = atol(setting("CRASH_TIMES", "1"));
    error_number = atoi(setting("CRASH_ERRNO", "0"));
}

__attribute__((destructor)) static void end(void) {
    const char *tally = getenv("CRASH_TALLY");
    FILE *file = folder && tally ? fopen(tally, "w") : NULL;
    if (file) {
        fprintf(file, "%ld", atomic_load(&calls));
        fclose(file);
    }
}

static int below(const char *path) {
    return path && !strncmp(path, folder, strlen(folder));
}

static int watched(int descriptor) {
    char link[64], path[4096];
    if (!folder) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* The number of bytes before the first page boundary in a write at this offset; 0: no boundary. */
static size_t before_boundary(off_t at, size_t length) {
    size_t room = 4096 - (size_t)(at & 4095);
    return room < length ? room : 0;
}

/* 0: make the call. 1: fail with errno set. 2: write a part, then die. */
static int action(enum kind kind) {
    if (!(wanted & kind)) return 0;
    long number = atomic_fetch_add(&calls, 1) + 1;
    if (!fail_at || number < fail_at) return 0;
    if (!strcmp(mode, "kill") && number == fail_at) die();
    if (!strcmp(mode, "torn") && number == fail_at) return 2;
    if (!strcmp(mode, "fail") && number < fail_at + fail_times) {
        errno = error_number;
        return 1;
    }
    return 0;
}

#define WRITING(call, part)                                  \
    do {                                                     \
        int fault = watched(descriptor) ? action(WRITE) : 0; \
        if (fault == 1) return -1;                           \
        if (fault == 2) {                                    \
            (void)!(part);                                   \
            die();                                           \
        }                                                    \
        return call;                                         \
    } while (0)

ssize_t write(int descriptor, const void *bytes, size_t length) {
    WRITING(NEXT(write)(descriptor, bytes, length),
            NEXT(write)(descriptor, bytes,
                        before_boundary(lseek(descriptor, 0, SEEK_CUR), length)));
}

ssize_t pwrite(int descriptor, const void *bytes, size_t length, off_t at) {
    WRITING(NEXT(pwrite)(descriptor, bytes, length, at),
            NEXT(pwrite)(descriptor, bytes, before_boundary(at, length), at));
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off64_t at) {
    WRITING(NEXT(pwrite64)(descriptor, bytes, length, at),
            NEXT(pwrite64)(descriptor, bytes, before_boundary(at, length), at));
}

int ftruncate(int descriptor, off_t length) {
    WRITING(NEXT(ftruncate)(descriptor, length), 0);
}

int ftruncate64(int descriptor, off64_t length) {
    WRITING(NEXT(ftruncate64)(descriptor, length), 0);
}

int fsync(int descriptor) {
    if (watched(descriptor) && action(SYNC)) return -1;
    return NEXT(fsync)(descriptor);
}

int fdatasync(int descriptor) {
    if (watched(descriptor) && action(SYNC)) return -1;
    return NEXT(fdatasync)(descriptor);
}

int unlink(const char *path) {
    if (folder && below(path)) {
        int fault = action(WRITE);
        if (fault == 1) return -1;
        if (fault == 2) die();
    }
    return NEXT(unlink)(path);
}

int rename(const char *from, const char *to) {
    if (folder && below(to)) {
        int fault = action(WRITE);
        if (fault == 1) return -1;
        if (fault == 2) die();
    }
    return NEXT(rename)(from, to);
}
