/* Preloaded into a program: lets the Nth call of one kind fail, as a full disk or a tired kernel would.
 *
 *   FAULT_CALL   its name in the C library: write, fsync, rename, open, close, ftruncate, mkdir, unlink, read, fork,
 *                pipe, pthread_create, flock
 *   FAULT_NTH    which one, from 1; 0: none, they are only counted
 *   FAULT_ERRNO  what errno becomes; 0: half of what was to be written is, and no error
 *   FAULT_ON     how many fail from the Nth on; 0: all
 *   FAULT_BELOW  only calls about files below this folder; empty: all
 *   FAULT_ARM    counting begins when a file of this path is opened; empty: at once
 *   FAULT_SEEN   a file of 32 bytes, in which the count is kept
 *
 * Only the first process that finds the file empty is concerned, also after it has called exec.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct state {
  atomic_int pid, armed;
  atomic_long seen, failed;
};

static struct state *state;
static char call[32], below[4096], arm[4096];
static long nth, times;
static int error;

static long number(const char *name) {
  const char *text = getenv(name);
  return text ? atol(text) : 0;
}

static void text(const char *name, char *into, size_t size) {
  const char *given = getenv(name);
  snprintf(into, size, "%s", given ? given : "");
}

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("FAULT_SEEN");
  int file = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *shared = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  syscall(SYS_close, file);
  if (shared == MAP_FAILED) return;
  text("FAULT_CALL", call, sizeof call);
  text("FAULT_BELOW", below, sizeof below);
  text("FAULT_ARM", arm, sizeof arm);
  nth = number("FAULT_NTH");
  times = number("FAULT_ON");
  error = (int)number("FAULT_ERRNO");
  state = shared;
  int nobody = 0;
  atomic_compare_exchange_strong(&state->pid, &nobody, getpid());
  if (!*arm) state->armed = 1;
}

static int is_below(const char *path) { return !*below || (path && strncmp(path, below, strlen(below)) == 0); }

static int is_file_below(int file) {
  char link[64], path[4096];
  if (!*below) return 1;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = 0;
  return is_below(path);
}

/* Counts the call when it is one of those, and says whether it is to fail. */
static int fails(const char *name, int concerned) {
  if (!state || !state->armed || !concerned || strcmp(name, call) || state->pid != getpid()) return 0;
  long seen = atomic_fetch_add(&state->seen, 1) + 1;
  if (!nth || seen < nth || (times && seen >= nth + times)) return 0;
  atomic_fetch_add(&state->failed, 1);
  errno = error;
  return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *data, size_t size) {
  if (fails("write", is_file_below(file))) {
    if (error) return -1;
    size = (size + 1) / 2;
  }
  return REAL(write)(file, data, size);
}

ssize_t read(int file, void *data, size_t size) {
  return fails("read", is_file_below(file)) ? -1 : REAL(read)(file, data, size);
}

int fsync(int file) { return fails("fsync", is_file_below(file)) ? -1 : REAL(fsync)(file); }

int close(int file) {
  int failing = fails("close", is_file_below(file));
  int result = REAL(close)(file); /* Linux closes it, whatever it answers */
  if (!failing) return result;
  errno = error;
  return -1;
}

int ftruncate(int file, off_t size) { return fails("ftruncate", is_file_below(file)) ? -1 : REAL(ftruncate)(file, size); }

int ftruncate64(int file, off64_t size) {
  return fails("ftruncate", is_file_below(file)) ? -1 : REAL(ftruncate64)(file, size);
}

int flock(int file, int operation) {
  int (*real)(int, int) = dlsym(RTLD_NEXT, "flock");
  return fails("flock", is_file_below(file)) ? -1 : real(file, operation);
}

int rename(const char *from, const char *to) { return fails("rename", is_below(to)) ? -1 : REAL(rename)(from, to); }

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
  return fails("rename", is_below(to)) ? -1 : REAL(renameat)(from_folder, from, to_folder, to);
}

int mkdir(const char *path, mode_t mode) { return fails("mkdir", is_below(path)) ? -1 : REAL(mkdir)(path, mode); }

int unlink(const char *path) { return fails("unlink", is_below(path)) ? -1 : REAL(unlink)(path); }

static int opening(const char *path) {
  if (state && *arm && strcmp(path, arm) == 0 && state->pid == getpid()) state->armed = 1;
  return fails("open", is_below(path));
}

#define OPEN(name, ...)                                           \
  int mode = 0;                                                   \
  if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {                  \
    va_list more;                                                 \
    va_start(more, flags);                                        \
    mode = va_arg(more, int);                                     \
    va_end(more);                                                 \
  }                                                               \
  return opening(path) ? -1 : REAL(name)(__VA_ARGS__, flags, mode);

int open(const char *path, int flags, ...) { OPEN(open, path) }
int open64(const char *path, int flags, ...) { OPEN(open64, path) }
int openat(int folder, const char *path, int flags, ...) { OPEN(openat, folder, path) }
int openat64(int folder, const char *path, int flags, ...) { OPEN(openat64, folder, path) }

pid_t fork(void) { return fails("fork", 1) ? -1 : REAL(fork)(); }

/* A function that wraps vfork would return into a frame that its child has overwritten. */
pid_t vfork(void) { return fails("fork", 1) ? -1 : REAL(fork)(); }

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const argv[], char *const environment[]) {
  return fails("fork", 1) ? error : REAL(posix_spawn)(pid, path, actions, attributes, argv, environment);
}

int pipe(int ends[2]) { return fails("pipe", 1) ? -1 : REAL(pipe)(ends); }

int pipe2(int ends[2], int flags) { return fails("pipe", 1) ? -1 : REAL(pipe2)(ends, flags); }

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
  return fails("pthread_create", 1) ? error : REAL(pthread_create)(thread, attributes, start, argument);
}
