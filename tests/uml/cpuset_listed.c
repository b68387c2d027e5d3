// Preloaded into a JVM on a kernel without cpusets, such as user-mode Linux: /proc/cgroups then
// lists cpuset as the kernels of most machines do. JDKs before 25 need that line to look at any
// cgroup. Everything else they read is the kernel's own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static char table[4096];

static FILE *list(FILE *(*real)(const char *, const char *)) {
    FILE *kernel = real("/proc/cgroups", "r");
    if (kernel == NULL) return NULL;
    size_t length = fread(table, 1, sizeof table - 32, kernel);
    fclose(kernel);
    length += sprintf(table + length, "cpuset\t0\t1\t1\n");
    return fmemopen(table, length, "r");
}

static FILE *open_as(const char *name, const char *path, const char *mode) {
    FILE *(*real)(const char *, const char *);
    *(void **)&real = dlsym(RTLD_NEXT, name);
    return strcmp(path, "/proc/cgroups") == 0 ? list(real) : real(path, mode);
}

FILE *fopen(const char *path, const char *mode) { return open_as("fopen", path, mode); }
FILE *fopen64(const char *path, const char *mode) { return open_as("fopen64", path, mode); }
