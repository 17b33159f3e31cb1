/* Preloaded into a program: lets the Nth call of one kind fail, as a full disk or a tired kernel would.
 *
 *   FAULT_CALL   its name in the C library: write, fsync, rename, open, close, ftruncate, mkdir, unlink, read, fork,
 *                pipe, pthread_create, flock, execve, send, recv, sendmsg, recvmsg, socketpair, kill, waitpid, prctl,
 *                poll, setsid, chdir, dup2, setrlimit, opendir, syscall
 *   FAULT_NTH    which one, from 1; 0: none, they are only counted
 *   FAULT_ERRNO  what errno becomes; 0: half of what was to be written is, and no error; below 0: the process is killed
 *                in its place, after half of what was to be written
 *   FAULT_ON     how many fail from the Nth on; 0: all
 *   FAULT_BELOW  only calls about files below this folder, or after a ! about all others; empty: all
 *   FAULT_ARM    counting begins when a file of this path is opened; empty: at once
 *   FAULT_SEEN   a file of 32 bytes, in which the count is kept
 *   FAULT_FORKS  1: what it forks is concerned as well, until that calls exec
 *
 * Only the first process that finds the file empty is concerned, also after it has called exec.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct state {
  atomic_int pid, armed;
  atomic_long seen, failed;
};

static struct state *state;
static char call[32], below[4096], arm[4096];
static long nth, times;
static int error, forks;

static long number(const char *name) {
  const char *text = getenv(name);
  return text ? atol(text) : 0;
}

static void text(const char *name, char *into, size_t size) {
  const char *given = getenv(name);
  snprintf(into, size, "%s", given ? given : "");
}

/* Called again by a fork that has an environment of its own. */
__attribute__((constructor)) void begin(void) {
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
  forks = (int)number("FAULT_FORKS");
  state = shared;
  int nobody = 0;
  atomic_compare_exchange_strong(&state->pid, &nobody, getpid());
  if (!*arm) state->armed = 1;
}

static int is_below(const char *path) {
  int others = *below == '!';
  const char *folder = below + others;
  return !*below || others != (path && strncmp(path, folder, strlen(folder)) == 0);
}

static int is_file_below(int file) {
  char link[64], path[4096];
  if (!*below) return 1;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t size = readlink(link, path, sizeof path - 1);
  path[size < 0 ? 0 : size] = 0;
  return is_below(path);
}

static void die(void) { syscall(SYS_kill, getpid(), SIGKILL); }

/* Counts the call when it is one of those, and says whether it is to fail. */
static int fails(const char *name, int concerned) {
  if (!state || !state->armed || !concerned || strcmp(name, call)) return 0;
  if (!forks && state->pid != getpid()) return 0;
  long seen = atomic_fetch_add(&state->seen, 1) + 1;
  if (!nth || seen < nth || (times && seen >= nth + times)) return 0;
  atomic_fetch_add(&state->failed, 1);
  if (error < 0 && strcmp(name, "write")) die();
  errno = error;
  return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *data, size_t size) {
  if (fails("write", is_file_below(file))) {
    if (error > 0) return -1;
    size = (size + 1) / 2;
    if (error < 0) {
      REAL(write)(file, data, size);
      die();
    }
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

/* A search through all processes opens the like of one file for each that was there before: that of the first stands
 * for them. */
static int is_one_of_many(const char *path) {
  int pid;
  return state && path && sscanf(path, "/proc/%d/", &pid) == 1 && pid > 1 && pid < state->pid;
}

static int opening(const char *path) {
  if (state && *arm && strcmp(path, arm) == 0 && state->pid == getpid()) state->armed = 1;
  return fails("open", is_below(path) && !is_one_of_many(path));
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

int execve(const char *path, char *const argv[], char *const environment[]) {
  return fails("execve", 1) ? -1 : REAL(execve)(path, argv, environment);
}

ssize_t send(int file, const void *data, size_t size, int flags) {
  return fails("send", 1) ? -1 : REAL(send)(file, data, size, flags);
}

ssize_t recv(int file, void *data, size_t size, int flags) {
  return fails("recv", 1) ? -1 : REAL(recv)(file, data, size, flags);
}

ssize_t sendmsg(int file, const struct msghdr *message, int flags) {
  return fails("sendmsg", 1) ? -1 : REAL(sendmsg)(file, message, flags);
}

ssize_t recvmsg(int file, struct msghdr *message, int flags) {
  return fails("recvmsg", 1) ? -1 : REAL(recvmsg)(file, message, flags);
}

int socketpair(int domain, int type, int protocol, int ends[2]) {
  return fails("socketpair", 1) ? -1 : REAL(socketpair)(domain, type, protocol, ends);
}

int kill(pid_t pid, int number) { return fails("kill", 1) ? -1 : REAL(kill)(pid, number); }

int killpg(pid_t group, int number) { return fails("kill", 1) ? -1 : REAL(killpg)(group, number); }

pid_t waitpid(pid_t pid, int *status, int options) {
  return fails("waitpid", 1) ? -1 : REAL(waitpid)(pid, status, options);
}

int prctl(int option, ...) {
  va_list more;
  va_start(more, option);
  unsigned long a = va_arg(more, unsigned long), b = va_arg(more, unsigned long), c = va_arg(more, unsigned long);
  unsigned long d = va_arg(more, unsigned long);
  va_end(more);
  int (*real)(int, unsigned long, unsigned long, unsigned long, unsigned long) = dlsym(RTLD_NEXT, "prctl");
  return fails("prctl", 1) ? -1 : real(option, a, b, c, d);
}

int poll(struct pollfd *files, nfds_t count, int timeout) {
  return fails("poll", 1) ? -1 : REAL(poll)(files, count, timeout);
}

pid_t setsid(void) { return fails("setsid", 1) ? -1 : REAL(setsid)(); }

int chdir(const char *path) { return fails("chdir", 1) ? -1 : REAL(chdir)(path); }

int dup2(int from, int to) { return fails("dup2", 1) ? -1 : REAL(dup2)(from, to); }

int setrlimit64(__rlimit_resource_t which, const struct rlimit64 *limit) {
  return fails("setrlimit", 1) ? -1 : REAL(setrlimit64)(which, limit);
}

DIR *opendir(const char *path) { return fails("opendir", 1) ? NULL : REAL(opendir)(path); }

long syscall(long which, ...) {
  va_list more;
  va_start(more, which);
  long a = va_arg(more, long), b = va_arg(more, long), c = va_arg(more, long), d = va_arg(more, long);
  long e = va_arg(more, long), f = va_arg(more, long);
  va_end(more);
  long (*real)(long, ...) = dlsym(RTLD_NEXT, "syscall");
  return fails("syscall", 1) ? -1 : real(which, a, b, c, d, e, f);
}
