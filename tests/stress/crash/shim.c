/* Preloaded into a process: makes the n-th write-class system call below one folder fail, or records
 * all of them.
 *
 *   CRASH_FOLDER  only files below this folder are watched
 *   CRASH_MODE    count | kill | torn | fail | record
 *   CRASH_CALLS   the calls that are counted: all, or those that write, sync, name (rename or link)
 *                 or open (make a file by opening it)
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

enum kind { WRITE = 1, SYNC = 2, NAME = 4, OPEN = 8 };

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
    wanted = !strcmp(which, "write")  ? WRITE
             : !strcmp(which, "sync") ? SYNC
             : !strcmp(which, "name") ? NAME
             : !strcmp(which, "open") ? OPEN
                                      : WRITE | SYNC;
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
    return path && folder && !strncmp(path, folder, strlen(folder));
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

/* Makes a call under the lock. If it succeeded, records this line and so many bytes. */
#define RECORDED(type, call, ok, bytes, length, ...)              \
    do {                                                          \
        char line[9000];                                          \
        pthread_mutex_lock(&in_order);                            \
        type result = call;                                       \
        if (ok) {                                                 \
            snprintf(line, sizeof line, __VA_ARGS__);             \
            record(line, bytes, (size_t)(length));                \
        }                                                         \
        pthread_mutex_unlock(&in_order);                          \
        return result;                                            \
    } while (0)

#define RECORDED_NAME(call, ...) RECORDED(int, call, !result, NULL, 0, __VA_ARGS__)

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
static int action(int kind) {
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

/* Makes a call, or a part of it and dies, or fails. A part of 0: "torn" dies before the call. */
#define FAULTY(kind, is_watched, call, part)          \
    do {                                              \
        int fault = (is_watched) ? action(kind) : 0;  \
        if (fault == 1) return -1;                    \
        if (fault == 2) {                             \
            (void)!(part);                            \
            die();                                    \
        }                                             \
        return call;                                  \
    } while (0)

ssize_t write(int descriptor, const void *data, size_t size) {
    if (log_file >= 0 && descriptor == 1) {
        RECORDED(ssize_t, NEXT(write)(descriptor, data, size), result > 0, data, result,
                 "said %zd\n", result);
    }
    if (is_recording(descriptor)) {
        RECORDED(ssize_t, NEXT(write)(descriptor, data, size), result > 0, data, result,
                 "write %llu %lld %zd\n", inode(descriptor),
                 (long long)lseek(descriptor, 0, SEEK_CUR) - result, result);
    }
    FAULTY(WRITE, watched(descriptor), NEXT(write)(descriptor, data, size),
           NEXT(write)(descriptor, data, before_boundary(lseek(descriptor, 0, SEEK_CUR), size)));
}

#define DEFINE_PWRITE(name, offset)                                                              \
    ssize_t name(int descriptor, const void *data, size_t size, offset at) {                     \
        if (is_recording(descriptor)) {                                                          \
            RECORDED(ssize_t, NEXT(name)(descriptor, data, size, at), result > 0, data, result,  \
                     "write %llu %lld %zd\n", inode(descriptor), (long long)at, result);         \
        }                                                                                        \
        FAULTY(WRITE, watched(descriptor), NEXT(name)(descriptor, data, size, at),               \
               NEXT(name)(descriptor, data, before_boundary(at, size), at));                     \
    }
DEFINE_PWRITE(pwrite, off_t)
DEFINE_PWRITE(pwrite64, off64_t)

#define DEFINE_FTRUNCATE(name, offset)                                     \
    int name(int descriptor, offset size) {                                \
        if (is_recording(descriptor)) {                                    \
            RECORDED_NAME(NEXT(name)(descriptor, size), "cut %llu %lld\n", \
                          inode(descriptor), (long long)size);             \
        }                                                                  \
        FAULTY(WRITE, watched(descriptor), NEXT(name)(descriptor, size), 0); \
    }
DEFINE_FTRUNCATE(ftruncate, off_t)
DEFINE_FTRUNCATE(ftruncate64, off64_t)

#define DEFINE_SYNC(name)                                                                \
    int name(int descriptor) {                                                           \
        if (is_recording(descriptor)) {                                                  \
            RECORDED_NAME(NEXT(name)(descriptor), "sync %llu\n", inode(descriptor));     \
        }                                                                                \
        FAULTY(SYNC, watched(descriptor), NEXT(name)(descriptor), 0);                    \
    }
DEFINE_SYNC(fsync)
DEFINE_SYNC(fdatasync)

int unlink(const char *path) {
    if (log_file >= 0 && below(path)) {
        RECORDED_NAME(NEXT(unlink)(path), "unlink\t%s\n", path);
    }
    FAULTY(WRITE, below(path), NEXT(unlink)(path), 0);
}

int rename(const char *from, const char *to) {
    if (log_file >= 0 && below(to)) {
        RECORDED_NAME(NEXT(rename)(from, to), "rename\t%s\t%s\n", from, to);
    }
    FAULTY(WRITE | NAME, below(to), NEXT(rename)(from, to), 0);
}

/* Calls that "all" does not count. */
#define NAMING(name, word, ...)                                                    \
    {                                                                              \
        if (log_file >= 0 && below(to)) {                                          \
            RECORDED_NAME(NEXT(name)(__VA_ARGS__), word "\t%s\t%s\n", from, to);   \
        }                                                                          \
        FAULTY(NAME, below(to), NEXT(name)(__VA_ARGS__), 0);                       \
    }

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
    NAMING(renameat2, "rename", from_folder, from, to_folder, to, flags)

int link(const char *from, const char *to) NAMING(link, "link", from, to)

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
    NAMING(linkat, "link", from_folder, from, to_folder, to, flags)

/* A file that is made by opening it. */
static int opened(int (*next)(const char *, int, ...), const char *path, int flags, mode_t mode) {
    unsigned long long before = inode_of(path);
    RECORDED(int, next(path, flags, mode), result >= 0 && (!before || flags & O_TRUNC), NULL, 0,
             before ? "cut %llu 0\n" : "make\t%llu\t%s\n", inode(result), path);
}

#define DEFINE_OPEN(name)                                                    \
    int name(const char *path, int flags, ...) {                             \
        mode_t permissions = 0;                                              \
        if (flags & (O_CREAT | O_TMPFILE)) {                                 \
            va_list rest;                                                    \
            va_start(rest, flags);                                           \
            permissions = va_arg(rest, mode_t);                              \
            va_end(rest);                                                    \
        }                                                                    \
        if (log_file >= 0 && flags & (O_CREAT | O_TRUNC) && below(path)) {   \
            return opened(NEXT(name), path, flags, permissions);             \
        }                                                                    \
        FAULTY(OPEN, flags & O_CREAT && below(path),                         \
               NEXT(name)(path, flags, permissions), 0);                     \
    }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)
