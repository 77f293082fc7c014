/* Kills a process of trainwatch at one of its system calls: bench/kill_points.py compiles it and preloads it.

   Wrapped: opens that may write, write, rename, link, unlink, truncate, fsync, fork, exec, of files below KP_ROOT. The
   role of a process follows from its command line. Its phase follows from what it writes into the journal (supervisor)
   or which record it opens (runner). KP_POINT is "ROLE PHASE CALL WHEN N": SIGKILL at the N-th such call, before or
   after it, once (KP_DONE is created first); at an exec, the parent is killed by the child. KP_LOG: a line for each call, for the survey. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static const char *root, *done, *role;
static char target_role[32], target_phase[32], target_call[32], target_when[16];
static int target_number, seen, log_fd = -1;
static size_t root_length;
static pid_t self;
static const char *phase = "start";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int inside;
static struct { char key[96]; int count; } counts[512];
static int used;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void die(void) {
    int marker = syscall(SYS_openat, AT_FDCWD, done, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (marker < 0) return; /* another process of this role was killed already */
    dprintf(marker, "%d %s\n", (int)self, phase);
    syscall(SYS_kill, self, SIGKILL);
    if (getpid() == self) for (;;) pause();
}

__attribute__((constructor)) static void begin(void) {
    char line[4096];
    int fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0);
    ssize_t size = fd < 0 ? 0 : syscall(SYS_read, fd, line, sizeof line - 1);
    if (fd >= 0) syscall(SYS_close, fd);
    self = getpid();
    root = getenv("KP_ROOT");
    done = getenv("KP_DONE");
    if (size <= 0 || !root || !done) return;
    line[size] = 0;
    for (ssize_t at = 0; at < size; at++) if (!line[at]) line[at] = ' ';
    if (strstr(line, "act.launch.runner")) role = "runner";
    else if (strstr(line, "trainwatch") && strstr(line, "--headless")) role = "supervisor";
    else return;
    root_length = strlen(root);
    const char *point = getenv("KP_POINT"), *log = getenv("KP_LOG");
    if (point) sscanf(point, "%31s %31s %31s %15s %d", target_role, target_phase, target_call, target_when, &target_number);
    if (log) log_fd = syscall(SYS_openat, AT_FDCWD, log, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
}

static int ours(const char *path) {
    if (!role || !path || inside) return 0;
    return getpid() == self && strncmp(path, root, root_length) == 0;
}

static int ours_fd(int fd) {
    char link[64], path[512];
    struct stat status;
    if (!role || inside || fstat(fd, &status) || !S_ISREG(status.st_mode)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    return ours(path);
}

/* Count one call; kill at the wanted one. Returns whether to die after the call. */
static int note(const char *call, const char *what) {
    char key[96];
    int hit = 0;
    inside = 1;
    pthread_mutex_lock(&lock);
    if (log_fd >= 0) {
        int at;
        snprintf(key, sizeof key, "%s %s %s", role, phase, call);
        for (at = 0; at < used && strcmp(counts[at].key, key); at++) {}
        if (at == used && used < 512) strcpy(counts[used++].key, key);
        if (at < 512) dprintf(log_fd, "%s %d %s\n", key, ++counts[at].count, what ? what : "");
    }
    if (target_number && !strcmp(role, target_role) && !strcmp(phase, target_phase) && !strcmp(call, target_call)) {
        hit = ++seen == target_number;
        if (hit && !strcmp(target_when, "before")) die();
    }
    pthread_mutex_unlock(&lock);
    inside = 0;
    return hit && !strcmp(target_when, "after");
}

static int has(const void *buffer, size_t size, const char *text) { return memmem(buffer, size, text, strlen(text)) != NULL; }

/* What the supervisor writes into its journal tells where the run is. */
static void read_journal(const void *b, size_t n) {
    if (!role || strcmp(role, "supervisor")) return;
    if (has(b, n, "\"decision\":\"stop_attempt\"")) phase = "stop";
    else if (has(b, n, "\"decision\":\"start_attempt\"")) phase = "launch";
    else if (has(b, n, "\"decision\":\"verify_checkpoint\"") || has(b, n, "\"decision\":\"list_checkpoints\"")) phase = "verify";
    else if (has(b, n, "\"fact\":\"command\"") && has(b, n, "\"resume\"")) phase = "resume";
    else if (has(b, n, "\"decision\":\"end_leftovers\"") || has(b, n, "\"decision\":\"clear_gpu\"")) phase = "restart";
    else if (has(b, n, "\"kind\":\"crash\"")) phase = "crash";
    else if (has(b, n, "\"state\":\"running\"")) phase = "running";
    else if (has(b, n, "\"state\":\"stopped\"")) phase = "stopped";
}

static void read_record(const char *path) {
    if (!role || strcmp(role, "runner") || !path) return;
    if (strstr(path, "start.json")) phase = "report";
    else if (strstr(path, "stop.json")) phase = "stop";
    else if (strstr(path, "exit.json")) phase = "end";
    else if (strstr(path, "claim")) phase = "claim";
    else if (strstr(path, "train.log")) phase = "spawn";
}

static void after(int hit) { if (hit) die(); }

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...) {                                                   \
        va_list list; va_start(list, flags); mode_t mode = va_arg(list, int); va_end(list);       \
        int hit = 0;                                                                               \
        if (ours(path)) { read_record(path); if (flags & (O_WRONLY | O_RDWR | O_CREAT)) hit = note("open", path); } \
        int result = REAL(name)(path, flags, mode), kept = errno;                                  \
        after(hit); errno = kept; return result;                                                   \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                               \
    int name(int at, const char *path, int flags, ...) {                                           \
        va_list list; va_start(list, flags); mode_t mode = va_arg(list, int); va_end(list);       \
        int hit = 0;                                                                               \
        if (ours(path)) { read_record(path); if (flags & (O_WRONLY | O_RDWR | O_CREAT)) hit = note("open", path); } \
        int result = REAL(name)(at, path, flags, mode), kept = errno;                              \
        after(hit); errno = kept; return result;                                                   \
    }
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int fd, const void *buffer, size_t size) {
    int hit = 0;
    if (role && !inside && ours_fd(fd)) { hit = note("write", NULL); read_journal(buffer, size); }
    ssize_t result = REAL(write)(fd, buffer, size); int kept = errno;
    after(hit); errno = kept; return result;
}

#define PWRITE(name, offset_type)                                                                  \
    ssize_t name(int fd, const void *buffer, size_t size, offset_type offset) {                    \
        int hit = role && !inside && ours_fd(fd) ? note("write", NULL) : 0;                        \
        ssize_t result = REAL(name)(fd, buffer, size, offset); int kept = errno;                   \
        after(hit); errno = kept; return result;                                                   \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define FD_CALL(name, call)                                                                        \
    int name(int fd) {                                                                             \
        int hit = role && !inside && ours_fd(fd) ? note(call, NULL) : 0;                           \
        int result = REAL(name)(fd), kept = errno;                                                 \
        after(hit); errno = kept; return result;                                                   \
    }
FD_CALL(fsync, "fsync")
FD_CALL(fdatasync, "fsync")

#define TRUNCATE(name, offset_type)                                                                \
    int name(int fd, offset_type size) {                                                           \
        int hit = role && !inside && ours_fd(fd) ? note("truncate", NULL) : 0;                     \
        int result = REAL(name)(fd, size), kept = errno;                                           \
        after(hit); errno = kept; return result;                                                   \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

int rename(const char *from, const char *to) {
    int hit = 0;
    if (ours(to)) { read_record(to); hit = note("rename", to); }
    int result = REAL(rename)(from, to), kept = errno;
    after(hit); errno = kept; return result;
}

int renameat(int a, const char *from, int b, const char *to) {
    int hit = ours(to) ? note("rename", to) : 0;
    int result = REAL(renameat)(a, from, b, to), kept = errno;
    after(hit); errno = kept; return result;
}

int link(const char *from, const char *to) {
    int hit = ours(to) ? note("link", to) : 0;
    int result = REAL(link)(from, to), kept = errno;
    after(hit); errno = kept; return result;
}

int unlink(const char *path) {
    int hit = ours(path) ? note("unlink", path) : 0;
    int result = REAL(unlink)(path), kept = errno;
    after(hit); errno = kept; return result;
}

int mkdir(const char *path, mode_t mode) {
    int hit = ours(path) ? note("mkdir", path) : 0;
    int result = REAL(mkdir)(path, mode), kept = errno;
    after(hit); errno = kept; return result;
}

static int exec_hit, forks;

/* The runner's first child is the runner itself; any other child only runs to its exec. */
static pid_t forked(void) {
    int parent = role && !inside && getpid() == self, hit = 0;
    if (parent) { hit = note("fork", NULL); exec_hit = note("exec", NULL); forks++; }
    pid_t result = REAL(fork)();
    int kept = errno;
    if (result > 0) after(hit);
    else if (result == 0 && parent) {
        pthread_mutex_init(&lock, NULL);
        inside = 0;
        if (!strcmp(role, "runner") && forks == 1) self = getpid();
    }
    errno = kept;
    return result;
}

pid_t fork(void) { return forked(); }
pid_t vfork(void) { return forked(); } /* the parent's memory is not shared then; all else is the same */

/* In a child: its parent is killed, and the exec goes on. */
int execve(const char *path, char *const argv[], char *const env[]) {
    if (role && exec_hit && getpid() != self) die();
    return REAL(execve)(path, argv, env);
}
