/* Preloaded into a process: makes the n-th write-class system call below one folder fail, or records
 * all of them.
 *
 *   CRASH_FOLDER  only files below this folder are watched
 *   CRASH_MODE    count | kill | torn | fail | record
 *   CRASH_CALLS   write | sync | all: the calls that are counted
 *   CRASH_AT      the number of the call, from 1; with "fail" the next `CRASH_TIMES` - 1 fail too
 *   CRASH_TIMES   how many calls fail (1)
 *   CRASH_ERRNO   the error of these calls
 *   CRASH_TALLY   the number of calls is written to this file when the process exits
 *   CRASH_LOG     with "record": the calls that succeeded, in their order, and each write to standard
 *                 output, are appended to this file
 *
 * "kill" ends the process before the call; "torn" writes up to the first page boundary, then ends
 * the process: a kill can split a write only there, never within a page.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum kind { WRITE = 1, SYNC = 2 };

static atomic_long calls;
static long fail_at, fail_times = 1;
static int wanted, error_number;
static const char *folder, *mode;
static int log_file = -1;
static pthread_mutex_t in_order = PTHREAD_MUTEX_INITIALIZER;

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
    const char *log = getenv("CRASH_LOG");
    if (log && !strcmp(mode, "record")) {
        log_file = NEXT(open)(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
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

/* Appends one record: a line, and so many bytes. The caller holds the lock. */
static void record(const char *line, const void *bytes, size_t length) {
    int before = errno;
    (void)!NEXT(write)(log_file, line, strlen(line));
    if (length) (void)!NEXT(write)(log_file, bytes, length);
    errno = before;
}

/* The number of the file, by which the records of one file are known whatever its name is. */
static unsigned long long inode(int descriptor) {
    struct stat file;
    return fstat(descriptor, &file) ? 0 : (unsigned long long)file.st_ino;
}

static unsigned long long inode_of(const char *path) {
    struct stat file;
    return lstat(path, &file) ? 0 : (unsigned long long)file.st_ino;
}

static int is_recording(int descriptor) {
    return log_file >= 0 && descriptor != log_file && watched(descriptor);
}

/* Makes a call under the lock, and records it if it succeeded. */
#define RECORDED(type, call, ok, ...)                             \
    do {                                                          \
        char line[9000];                                          \
        pthread_mutex_lock(&in_order);                            \
        type result = call;                                       \
        if (ok) {                                                 \
            int length = 0;                                       \
            const void *bytes = NULL;                             \
            (void)length, (void)bytes;                            \
            __VA_ARGS__;                                          \
            record(line, bytes, (size_t)length);                  \
        }                                                         \
        pthread_mutex_unlock(&in_order);                          \
        return result;                                            \
    } while (0)

#define LINE(...) snprintf(line, sizeof line, __VA_ARGS__)

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

/* A call that syncs has no part, so "torn" ends the process before it. */
#define SYNCING(call)                                       \
    do {                                                    \
        int fault = watched(descriptor) ? action(SYNC) : 0; \
        if (fault == 1) return -1;                          \
        if (fault == 2) die();                              \
        return call;                                        \
    } while (0)

ssize_t write(int descriptor, const void *data, size_t size) {
    if (log_file >= 0 && descriptor == 1) {
        RECORDED(ssize_t, NEXT(write)(descriptor, data, size), result > 0,
                 bytes = data, length = (int)result, LINE("said %d\n", length));
    }
    if (is_recording(descriptor)) {
        RECORDED(ssize_t, NEXT(write)(descriptor, data, size), result > 0, bytes = data,
                 length = (int)result,
                 LINE("write %llu %lld %d\n", inode(descriptor),
                      (long long)lseek(descriptor, 0, SEEK_CUR) - length, length));
    }
    const void *bytes = data;
    size_t length = size;
    WRITING(NEXT(write)(descriptor, bytes, length),
            NEXT(write)(descriptor, bytes,
                        before_boundary(lseek(descriptor, 0, SEEK_CUR), length)));
}

ssize_t pwrite(int descriptor, const void *data, size_t size, off_t at) {
    if (is_recording(descriptor)) {
        RECORDED(ssize_t, NEXT(pwrite)(descriptor, data, size, at), result > 0, bytes = data,
                 length = (int)result,
                 LINE("write %llu %lld %d\n", inode(descriptor), (long long)at, length));
    }
    const void *bytes = data;
    size_t length = size;
    WRITING(NEXT(pwrite)(descriptor, bytes, length, at),
            NEXT(pwrite)(descriptor, bytes, before_boundary(at, length), at));
}

ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t at) {
    if (is_recording(descriptor)) {
        RECORDED(ssize_t, NEXT(pwrite64)(descriptor, data, size, at), result > 0, bytes = data,
                 length = (int)result,
                 LINE("write %llu %lld %d\n", inode(descriptor), (long long)at, length));
    }
    const void *bytes = data;
    size_t length = size;
    WRITING(NEXT(pwrite64)(descriptor, bytes, length, at),
            NEXT(pwrite64)(descriptor, bytes, before_boundary(at, length), at));
}

int ftruncate(int descriptor, off_t size) {
    if (is_recording(descriptor)) {
        RECORDED(int, NEXT(ftruncate)(descriptor, size), !result,
                 LINE("cut %llu %lld\n", inode(descriptor), (long long)size));
    }
    WRITING(NEXT(ftruncate)(descriptor, size), 0);
}

int ftruncate64(int descriptor, off64_t size) {
    if (is_recording(descriptor)) {
        RECORDED(int, NEXT(ftruncate64)(descriptor, size), !result,
                 LINE("cut %llu %lld\n", inode(descriptor), (long long)size));
    }
    WRITING(NEXT(ftruncate64)(descriptor, size), 0);
}

int fsync(int descriptor) {
    if (is_recording(descriptor)) {
        RECORDED(int, NEXT(fsync)(descriptor), !result, LINE("sync %llu\n", inode(descriptor)));
    }
    SYNCING(NEXT(fsync)(descriptor));
}

int fdatasync(int descriptor) {
    if (is_recording(descriptor)) {
        RECORDED(int, NEXT(fdatasync)(descriptor), !result, LINE("sync %llu\n", inode(descriptor)));
    }
    SYNCING(NEXT(fdatasync)(descriptor));
}

int unlink(const char *path) {
    if (log_file >= 0 && below(path)) {
        RECORDED(int, NEXT(unlink)(path), !result, LINE("unlink\t%s\n", path));
    }
    if (folder && below(path)) {
        int fault = action(WRITE);
        if (fault == 1) return -1;
        if (fault == 2) die();
    }
    return NEXT(unlink)(path);
}

int rename(const char *from, const char *to) {
    if (log_file >= 0 && below(to)) {
        RECORDED(int, NEXT(rename)(from, to), !result, LINE("rename\t%s\t%s\n", from, to));
    }
    if (folder && below(to)) {
        int fault = action(WRITE);
        if (fault == 1) return -1;
        if (fault == 2) die();
    }
    return NEXT(rename)(from, to);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    if (log_file >= 0 && below(to)) {
        RECORDED(int, NEXT(renameat2)(from_folder, from, to_folder, to, flags), !result,
                 LINE("rename\t%s\t%s\n", from, to));
    }
    return NEXT(renameat2)(from_folder, from, to_folder, to, flags);
}

int link(const char *from, const char *to) {
    if (log_file >= 0 && below(to)) {
        RECORDED(int, NEXT(link)(from, to), !result, LINE("link\t%s\t%s\n", from, to));
    }
    return NEXT(link)(from, to);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    if (log_file >= 0 && below(to)) {
        RECORDED(int, NEXT(linkat)(from_folder, from, to_folder, to, flags), !result,
                 LINE("link\t%s\t%s\n", from, to));
    }
    return NEXT(linkat)(from_folder, from, to_folder, to, flags);
}

/* A file that is made by opening it. */
static int opened(int (*next)(const char *, int, ...), const char *path, int flags, mode_t mode) {
    unsigned long long before = inode_of(path);
    RECORDED(int, next(path, flags, mode), result >= 0 && (!before || flags & O_TRUNC),
             LINE(before ? "cut %llu 0\n" : "make\t%llu\t%s\n", inode(result), path));
}

#define OPENING(name)                                                        \
    mode_t permissions = 0;                                                  \
    if (flags & (O_CREAT | O_TMPFILE)) {                                     \
        va_list rest;                                                        \
        va_start(rest, flags);                                               \
        permissions = va_arg(rest, mode_t);                                  \
        va_end(rest);                                                        \
    }                                                                        \
    if (log_file >= 0 && flags & (O_CREAT | O_TRUNC) && below(path)) {       \
        return opened(NEXT(name), path, flags, permissions);                 \
    }                                                                        \
    return NEXT(name)(path, flags, permissions)

int open(const char *path, int flags, ...) { OPENING(open); }

int open64(const char *path, int flags, ...) { OPENING(open64); }
