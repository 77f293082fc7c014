/* Preloaded into a supervisor: fsync and fdatasync of files below SLOW_ROOT take SLOW_S seconds, and wait as long as
   the file SLOW_GATE exists, as on a disk or a network file system that answers late. A line "begin" and a line "end"
   for each is appended to SLOW_LOG. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void note(const char *line) {
    const char *path = getenv("SLOW_LOG");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) {
        if (write(fd, line, strlen(line)) < 0) { }
        close(fd);
    }
}

static int late(const char *name, int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    const char *root = getenv("SLOW_ROOT"), *seconds = getenv("SLOW_S"), *gate = getenv("SLOW_GATE");
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    if (!root || strncmp(path, root, strlen(root)) != 0)
        return real(fd);
    note("begin\n");
    if (seconds)
        usleep((useconds_t)(atof(seconds) * 1e6));
    while (gate && access(gate, F_OK) == 0)
        usleep(10000);
    int result = real(fd);
    note("end\n");
    return result;
}

int fsync(int fd) { return late("fsync", fd); }
int fdatasync(int fd) { return late("fdatasync", fd); }
