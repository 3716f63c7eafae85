// A faulty disk, preloaded under a process. Every change to a file below FAULT_DIR is written to a
// journal, from which a test can build what the disk would hold after a power failure at any moment.
//
// Whether a call fails is a function of the seed, the file, the kind of call and its number, so that
// different thread schedules still get the same faults.
//
// A failed fsync behaves as on Linux: the data may never reach the disk although it can be read back,
// and every descriptor of the file gets the error once.
//
// Journal: a kind, the length of the file's name, the name, an offset, a length, and the bytes of a
// write. Kinds: W write, T truncate to the offset, S synced, F sync failed, U unlinked, R renamed to the
// name that follows as bytes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_FD 1024
#define MAX_FILES 64
#define MAX_NAME 128

enum { WRITES, SYNCS, TRUNCATES, KINDS };

struct file {
    char name[MAX_NAME];
    uint64_t calls[KINDS];
    unsigned failed_syncs;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file files[MAX_FILES];
static int file_count;
static struct file *opened[MAX_FD];
static unsigned heard[MAX_FD];
static const char *directory;
static size_t directory_length;
static int journal = -1;
static uint64_t seed;
static uint64_t per_mille;
static uint64_t good_syncs;
static const char *failing_file;
static uint64_t failing_sync;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULT_JOURNAL");
    directory = getenv("FAULT_DIR");
    if (!directory || !path) { directory = 0; return; }
    directory_length = strlen(directory);
    seed = strtoull(getenv("FAULT_SEED"), 0, 10);
    per_mille = strtoull(getenv("FAULT_PER_MILLE"), 0, 10);
    good_syncs = strtoull(getenv("FAULT_GOOD_SYNCS"), 0, 10);
    // "name:number": this sync of this file fails, whatever else does.
    failing_file = getenv("FAULT_SYNC");
    const char *number = failing_file ? strchr(failing_file, ':') : 0;
    if (number) failing_sync = strtoull(number + 1, 0, 10);
    journal = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (journal < 0) abort();
}

// The process ends between two records: other threads may still write.
__attribute__((destructor)) static void end(void) { pthread_mutex_lock(&lock); }

static const char *name_below(const char *path) {
    if (!directory || !path || strncmp(path, directory, directory_length)) return 0;
    path += directory_length;
    while (*path == '/') path++;
    // The index of the WAL ends with its process, and the list of acknowledged commits is not part of the
    // disk: neither gets faults, and the former is not journaled.
    size_t length = strlen(path);
    if (!length || length >= MAX_NAME) return 0;
    if (length > 4 && !strcmp(path + length - 4, "-shm")) return 0;
    return path;
}

static struct file *file_of(const char *name) {
    for (int i = 0; i < file_count; i++)
        if (!strcmp(files[i].name, name)) return &files[i];
    if (file_count == MAX_FILES) abort();
    strcpy(files[file_count].name, name);
    return &files[file_count++];
}

static void put(const void *bytes, size_t length) {
    const char *at = bytes;
    while (length) {
        ssize_t done = syscall(SYS_write, journal, at, length);
        if (done <= 0) abort();
        at += done;
        length -= done;
    }
}

static void note(char kind, const char *name, uint64_t offset, const void *bytes, uint64_t length) {
    char head[1 + 8 + MAX_NAME + 16];
    uint64_t name_length = strlen(name);
    char *at = head;
    *at++ = kind;
    memcpy(at, &name_length, 8); at += 8;
    memcpy(at, name, name_length); at += name_length;
    memcpy(at, &offset, 8); at += 8;
    memcpy(at, &length, 8); at += 8;
    put(head, at - head);
    if (length) put(bytes, length);
}

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

// A number for this call of the file, or 0 when it does not fail.
static uint64_t roll(struct file *file, int kind) {
    uint64_t number = ++file->calls[kind];
    if (!strcmp(file->name, "acknowledged")) return 0;
    uint64_t hash = mix(seed ^ mix(kind + 1));
    for (const char *c = file->name; *c; c++) hash = mix(hash ^ (unsigned char) *c);
    hash = mix(hash ^ number);
    return hash % 1000 < per_mille ? mix(hash) | 1 : 0;
}

static int remember(int fd, const char *path, int flags) {
    const char *name = name_below(path);
    if (fd < 0 || !name) return fd;
    if (fd >= MAX_FD) abort();
    pthread_mutex_lock(&lock);
    opened[fd] = file_of(name);
    heard[fd] = opened[fd]->failed_syncs;
    if (flags & O_TRUNC) note('T', name, 0, 0, 0);
    pthread_mutex_unlock(&lock);
    return fd;
}

static int do_open(int at, const char *path, int flags, mode_t mode) {
    return remember(syscall(SYS_openat, at, path, flags, mode), path, flags);
}

#define MODE(flags) mode_t mode = 0; if ((flags) & (O_CREAT | O_TMPFILE)) { \
    va_list args; va_start(args, flags); mode = va_arg(args, mode_t); va_end(args); }

int open(const char *path, int flags, ...) { MODE(flags) return do_open(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return do_open(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE(flags) return do_open(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags) return do_open(at, path, flags, mode); }

int close(int fd) {
    if (fd >= 0 && fd < MAX_FD && opened[fd]) {
        pthread_mutex_lock(&lock);
        opened[fd] = 0;
        pthread_mutex_unlock(&lock);
    }
    return syscall(SYS_close, fd);
}

static struct file *known(int fd) { return fd >= 0 && fd < MAX_FD ? opened[fd] : 0; }

// Writes as much as the fault allows: all, nothing, or the beginning.
static ssize_t write_at(struct file *file, int fd, const void *bytes, size_t length, off_t offset, int seeks) {
    pthread_mutex_lock(&lock);
    uint64_t fault = roll(file, WRITES);
    int error = fault & 2 ? ENOSPC : EIO;
    size_t wanted = length;
    if (fault) wanted = fault & 4 ? (mix(fault) % (length + 1)) : 0;
    ssize_t done = 0;
    if (wanted) {
        done = seeks ? syscall(SYS_write, fd, bytes, wanted) : syscall(SYS_pwrite64, fd, bytes, wanted, offset);
        if (done > 0) note('W', file->name, offset, bytes, done);
    }
    pthread_mutex_unlock(&lock);
    if (fault && done <= 0) { errno = error; return -1; }
    return done;
}

ssize_t write(int fd, const void *bytes, size_t length) {
    struct file *file = known(fd);
    if (!file) return syscall(SYS_write, fd, bytes, length);
    struct stat stat;
    int appends = syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND;
    off_t offset = lseek(fd, 0, SEEK_CUR);
    if (appends && !fstat(fd, &stat)) offset = stat.st_size;
    return write_at(file, fd, bytes, length, offset, 1);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    struct file *file = known(fd);
    if (!file) return syscall(SYS_pwrite64, fd, bytes, length, offset);
    return write_at(file, fd, bytes, length, offset, 0);
}
ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset) {
    return pwrite(fd, bytes, length, offset);
}

static int synced(int fd, long call) {
    struct file *file = known(fd);
    if (!file) return syscall(call, fd);
    pthread_mutex_lock(&lock);
    uint64_t fault = roll(file, SYNCS);
    int result = 0;
    size_t length = strlen(file->name);
    if (failing_sync && !strncmp(failing_file, file->name, length) && failing_file[length] == ':')
        fault |= file->calls[SYNCS] == failing_sync;
    // After a number of syncs, all further syncs fail.
    if (fault || file->calls[SYNCS] > good_syncs) {
        file->failed_syncs++;
        note('F', file->name, 0, 0, 0);
    }
    if (heard[fd] != file->failed_syncs) {
        heard[fd] = file->failed_syncs;
        errno = EIO;
        result = -1;
    } else {
        // Nothing is really synced: the journal records what would be on the disk.
        note('S', file->name, 0, 0, 0);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

int ftruncate(int fd, off_t length) {
    struct file *file = known(fd);
    if (!file) return syscall(SYS_ftruncate, fd, length);
    pthread_mutex_lock(&lock);
    int result = -1;
    if (roll(file, TRUNCATES)) {
        errno = EIO;
    } else {
        result = syscall(SYS_ftruncate, fd, length);
        if (!result) note('T', file->name, length, 0, 0);
    }
    pthread_mutex_unlock(&lock);
    return result;
}
int ftruncate64(int fd, off_t length) { return ftruncate(fd, length); }

int unlink(const char *path) {
    const char *name = name_below(path);
    pthread_mutex_lock(&lock);
    int result = syscall(SYS_unlink, path);
    if (!result && name) note('U', name, 0, 0, 0);
    pthread_mutex_unlock(&lock);
    return result;
}

int rename(const char *from, const char *to) {
    const char *old = name_below(from), *new = name_below(to);
    pthread_mutex_lock(&lock);
    int result = syscall(SYS_rename, from, to);
    if (!result && old && new) note('R', old, 0, new, strlen(new));
    pthread_mutex_unlock(&lock);
    return result;
}
