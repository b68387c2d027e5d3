// Preloaded into user-mode Linux on CPUs with AMX: it sets the registers of its processes from a
// buffer that has no room for AMX, and the kernel below takes all of the state or nothing. The
// part that it does not know stays as it is.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

typedef long call(enum __ptrace_request, ...);

long ptrace(enum __ptrace_request request, ...) {
    static call *real;
    if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "ptrace");
    va_list rest;
    va_start(rest, request);
    pid_t pid = va_arg(rest, pid_t);
    void *address = va_arg(rest, void *), *data = va_arg(rest, void *);
    va_end(rest);

    static char state[1 << 16];
    struct iovec whole = {state, sizeof state}, *part = data;
    int is_part = request == PTRACE_SETREGSET && address == (void *)NT_X86_XSTATE;
    if (!is_part || real(PTRACE_GETREGSET, pid, address, &whole) != 0)
        return real(request, pid, address, data);
    memcpy(state, part->iov_base, part->iov_len < whole.iov_len ? part->iov_len : whole.iov_len);
    return real(request, pid, address, &whole);
}
