/* Makes one call on files below a folder fail, as a full or a broken disk does.
   SITELINE_DISK_FAULT is "CALL NUMBER FOLDER": the call, the errno, the folder. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int fails(const char *call, const char *path) {
    char wanted[32], folder[1024];
    int number;
    const char *fault = getenv("SITELINE_DISK_FAULT");
    if (!fault || sscanf(fault, "%31s %d %1023s", wanted, &number, folder) != 3) return 0;
    if (strcmp(call, wanted) || !path || strncmp(path, folder, strlen(folder))) return 0;
    errno = number;
    return 1;
}

static int fails_on(const char *call, int file) {
    char link[64], path[2048];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    int before = errno;
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = before;
    if (length < 0) return 0;
    path[length] = 0;
    return fails(call, path);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int fsync(int file) { return fails_on("fsync", file) ? -1 : NEXT(fsync)(file); }
int fdatasync(int file) { return fails_on("fsync", file) ? -1 : NEXT(fdatasync)(file); }
int ftruncate(int file, off_t size) {
    return fails_on("ftruncate", file) ? -1 : NEXT(ftruncate)(file, size);
}
int ftruncate64(int file, off64_t size) {
    return fails_on("ftruncate", file) ? -1 : NEXT(ftruncate64)(file, size);
}
ssize_t write(int file, const void *bytes, size_t count) {
    return fails_on("write", file) ? -1 : NEXT(write)(file, bytes, count);
}
ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) {
    return fails_on("write", file) ? -1 : NEXT(pwrite)(file, bytes, count, at);
}
ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
    return fails_on("write", file) ? -1 : NEXT(pwrite64)(file, bytes, count, at);
}
int rename(const char *from, const char *to) {
    return fails("rename", to) ? -1 : NEXT(rename)(from, to);
}
int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    return fails("rename", to) ? -1 : NEXT(renameat2)(from_folder, from, to_folder, to, flags);
}
int link(const char *from, const char *to) { return fails("rename", to) ? -1 : NEXT(link)(from, to); }
int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    return fails("rename", to) ? -1 : NEXT(linkat)(from_folder, from, to_folder, to, flags);
}

#define MODE(flags)                         \
    mode_t mode = 0;                        \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { \
        va_list rest;                       \
        va_start(rest, flags);              \
        mode = va_arg(rest, mode_t);        \
        va_end(rest);                       \
    }

int open(const char *path, int flags, ...) {
    MODE(flags)
    return (flags & O_CREAT) && fails("open", path) ? -1 : NEXT(open)(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    MODE(flags)
    return (flags & O_CREAT) && fails("open", path) ? -1 : NEXT(open64)(path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
    MODE(flags)
    return (flags & O_CREAT) && fails("open", path) ? -1 : NEXT(openat)(folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) {
    MODE(flags)
    return (flags & O_CREAT) && fails("open", path) ? -1
                                                    : NEXT(openat64)(folder, path, flags, mode);
}
