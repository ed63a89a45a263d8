/* Count the file events of a process below one folder, and fail or kill it at one of them.
 *
 * Loaded with LD_PRELOAD, so that it sees the events of Python, NumPy, SQLite, Arrow and
 * safetensors alike. An event is a call that changes a file or a folder: open for writing, write,
 * truncate, sync, rename, mkdir, link, chmod, and delete. With the option "reads", an event is a
 * call that reads instead: open for reading, read, and map into memory. faults_arm() starts the
 * count.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

struct state {
    long events;   /* so far, of all processes */
    long at;       /* the event that fails; 0: none */
    int error;     /* errno of the failure; 0: SIGKILL */
    int lasting;   /* later events fail as well */
    int deletes;   /* whether deleting fails as well */
    int reads;     /* whether events are those that read, not those that write */
    char last[64]; /* the name of the event that failed */
    char folder[PATH_MAX];
};

static struct state *state; /* shared with the processes that are forked */
static volatile int armed;

void faults_arm(const char *folder, long at, int error, int lasting, int deletes, int reads) {
    state->events = 0;
    state->at = at;
    state->error = error;
    state->lasting = lasting;
    state->deletes = deletes;
    state->reads = reads;
    state->last[0] = 0;
    snprintf(state->folder, sizeof state->folder, "%s/", folder);
    armed = 1;
}

void faults_disarm(void) { armed = 0; }
long faults_events(void) { return state->events; }
const char *faults_last(void) { return state->last; }

__attribute__((constructor)) static void make_state(void) {
    state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static int inside(const char *path) {
    return strncmp(path, state->folder, strlen(state->folder)) == 0;
}

static int path_inside(int folder, const char *path) {
    char full[2 * PATH_MAX];
    if (path[0] == '/') return inside(path);
    if (folder == AT_FDCWD) {
        if (getcwd(full, PATH_MAX) == NULL) return 0;
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t size = readlink(link, full, PATH_MAX - 1);
        if (size < 0) return 0;
        full[size] = 0;
    }
    strcat(full, "/");
    strncat(full, path, PATH_MAX - 1);
    return inside(full);
}

static int fd_inside(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return inside(path);
}

enum kind { WRITE, DELETE, READ };

/* Count an event; return 1 if it fails. */
static int event(const char *name, enum kind kind) {
    if (state->reads != (kind == READ)) return 0;
    if (kind == DELETE && !state->deletes && state->error) return 0;
    long number = __atomic_add_fetch(&state->events, 1, __ATOMIC_SEQ_CST);
    if (!state->at || number < state->at || (number > state->at && !state->lasting)) return 0;
    if (number == state->at) snprintf(state->last, sizeof state->last, "%s", name);
    if (!state->error) kill(getpid(), SIGKILL);
    errno = state->error;
    return 1;
}

#define NEXT(result, name, ...)                                 \
    static result (*next)(__VA_ARGS__);                         \
    if (!next) next = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)
#define FAIL_IF(condition, name, kind, value) \
    if (armed && (condition) && event(name, kind)) return value

#define OPENS(flags) ((flags) & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC) ? WRITE : READ)
#define MODE(flags, mode)                                     \
    mode_t mode = 0;                                          \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {                  \
        va_list arguments;                                    \
        va_start(arguments, flags);                           \
        mode = va_arg(arguments, mode_t);                     \
        va_end(arguments);                                    \
    }

#define OPEN(name)                                                                       \
    int name(const char *path, int flags, ...) {                                         \
        MODE(flags, mode)                                                                \
        NEXT(int, name, const char *, int, ...);                                         \
        FAIL_IF(path_inside(AT_FDCWD, path), "open", OPENS(flags), -1);                  \
        return next(path, flags, mode);                                                  \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                     \
    int name(int folder, const char *path, int flags, ...) {                             \
        MODE(flags, mode)                                                                \
        NEXT(int, name, int, const char *, int, ...);                                    \
        FAIL_IF(path_inside(folder, path), "open", OPENS(flags), -1);                    \
        return next(folder, path, flags, mode);                                          \
    }
OPENAT(openat)
OPENAT(openat64)

#define FOPEN(name)                                                                      \
    FILE *name(const char *path, const char *mode) {                                     \
        NEXT(FILE *, name, const char *, const char *);                                  \
        enum kind kind = strpbrk(mode, "wa+") ? WRITE : READ;                            \
        FAIL_IF(path_inside(AT_FDCWD, path), "open", kind, NULL);                        \
        return next(path, mode);                                                         \
    }
FOPEN(fopen)
FOPEN(fopen64)

size_t fwrite(const void *data, size_t size, size_t count, FILE *file) {
    NEXT(size_t, fwrite, const void *, size_t, size_t, FILE *);
    FAIL_IF(fd_inside(fileno(file)), "write", WRITE, 0);
    return next(data, size, count, file);
}

ssize_t write(int fd, const void *data, size_t size) {
    NEXT(ssize_t, write, int, const void *, size_t);
    FAIL_IF(fd_inside(fd), "write", WRITE, -1);
    return next(fd, data, size);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    NEXT(ssize_t, writev, int, const struct iovec *, int);
    FAIL_IF(fd_inside(fd), "write", WRITE, -1);
    return next(fd, parts, count);
}

#define PWRITE(name, type)                                                               \
    ssize_t name(int fd, const void *data, size_t size, type place) {                    \
        NEXT(ssize_t, name, int, const void *, size_t, type);                            \
        FAIL_IF(fd_inside(fd), "write", WRITE, -1);                                          \
        return next(fd, data, size, place);                                              \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t read(int fd, void *data, size_t size) {
    NEXT(ssize_t, read, int, void *, size_t);
    FAIL_IF(fd_inside(fd), "read", READ, -1);
    return next(fd, data, size);
}

#define PREAD(name, type)                                                                \
    ssize_t name(int fd, void *data, size_t size, type place) {                          \
        NEXT(ssize_t, name, int, void *, size_t, type);                                  \
        FAIL_IF(fd_inside(fd), "read", READ, -1);                                        \
        return next(fd, data, size, place);                                              \
    }
PREAD(pread, off_t)
PREAD(pread64, off64_t)

#define PREADV(name, type)                                                               \
    ssize_t name(int fd, const struct iovec *parts, int count, type place) {             \
        NEXT(ssize_t, name, int, const struct iovec *, int, type);                       \
        FAIL_IF(fd_inside(fd), "read", READ, -1);                                        \
        return next(fd, parts, count, place);                                            \
    }
PREADV(preadv, off_t)
PREADV(preadv64, off64_t)

#define MMAP(name, type)                                                                 \
    void *name(void *start, size_t size, int access, int flags, int fd, type place) {    \
        NEXT(void *, name, void *, size_t, int, int, int, type);                         \
        FAIL_IF(fd >= 0 && fd_inside(fd), "map", READ, MAP_FAILED);                      \
        return next(start, size, access, flags, fd, place);                              \
    }
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

DIR *opendir(const char *path) {
    NEXT(DIR *, opendir, const char *);
    FAIL_IF(path_inside(AT_FDCWD, path), "open", READ, NULL);
    return next(path);
}

#define TRUNCATE(name, type)                                                             \
    int name(int fd, type size) {                                                        \
        NEXT(int, name, int, type);                                                      \
        FAIL_IF(fd_inside(fd), "truncate", WRITE, -1);                                       \
        return next(fd, size);                                                           \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

#define ON_FD(name, label)                                                               \
    int name(int fd) {                                                                   \
        NEXT(int, name, int);                                                            \
        FAIL_IF(fd_inside(fd), label, WRITE, -1);                                            \
        return next(fd);                                                                 \
    }
ON_FD(fsync, "sync")
ON_FD(fdatasync, "sync")

int rename(const char *old, const char *new) {
    NEXT(int, rename, const char *, const char *);
    FAIL_IF(path_inside(AT_FDCWD, old) || path_inside(AT_FDCWD, new), "rename", WRITE, -1);
    return next(old, new);
}

int renameat(int from, const char *old, int to, const char *new) {
    NEXT(int, renameat, int, const char *, int, const char *);
    FAIL_IF(path_inside(from, old) || path_inside(to, new), "rename", WRITE, -1);
    return next(from, old, to, new);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned int flags) {
    NEXT(int, renameat2, int, const char *, int, const char *, unsigned int);
    FAIL_IF(path_inside(from, old) || path_inside(to, new), "rename", WRITE, -1);
    return next(from, old, to, new, flags);
}

int mkdir(const char *path, mode_t mode) {
    NEXT(int, mkdir, const char *, mode_t);
    FAIL_IF(path_inside(AT_FDCWD, path), "mkdir", WRITE, -1);
    return next(path, mode);
}

int mkdirat(int folder, const char *path, mode_t mode) {
    NEXT(int, mkdirat, int, const char *, mode_t);
    FAIL_IF(path_inside(folder, path), "mkdir", WRITE, -1);
    return next(folder, path, mode);
}

int chmod(const char *path, mode_t mode) {
    NEXT(int, chmod, const char *, mode_t);
    FAIL_IF(path_inside(AT_FDCWD, path), "chmod", WRITE, -1);
    return next(path, mode);
}

int unlink(const char *path) {
    NEXT(int, unlink, const char *);
    FAIL_IF(path_inside(AT_FDCWD, path), "delete", DELETE, -1);
    return next(path);
}

int rmdir(const char *path) {
    NEXT(int, rmdir, const char *);
    FAIL_IF(path_inside(AT_FDCWD, path), "delete", DELETE, -1);
    return next(path);
}

int unlinkat(int folder, const char *path, int flags) {
    NEXT(int, unlinkat, int, const char *, int);
    FAIL_IF(path_inside(folder, path), "delete", DELETE, -1);
    return next(folder, path, flags);
}
