/* Runs a program in which one system call goes wrong.
 *
 *   fault --report FILE [--reads 1] [--only TEXT] [--at N --with KIND] -- PROGRAM [ARGUMENT...]
 *
 * Counts the calls by which PROGRAM, and everything that it starts of its own file, changes files
 * and starts processes, over all processes and threads together; with --reads those by which it reads
 * and connects instead, but for its libraries; with --only those whose
 * `call what` begins with TEXT. Without --at each is a line of FILE: `number call role what`. With it
 * the N-th of them goes wrong, and is the only line:
 *
 *   kill    the process that makes it dies by SIGKILL, before the call does anything
 *   error   EPERM, of what starts a process or a thread EAGAIN
 *   ENOSPC, EIO
 *   short   half of what was to be written is
 *   full    ENOSPC, and so does all that would take room on that disk from then on
 *   EMFILE, unread (EIO), half (half of what was asked for is read)
 *
 * The exit code is the program's, 128 + N where signal N ended it; 120 where something of it was
 * alive 20 s after its end: that is in FILE too. What a program of another file does, such as the
 * application of a trial, is left alone, and so are sockets and terminals.
 *
 * A seccomp filter stops the program at these calls only (SECCOMP_RET_TRACE), so that the rest of
 * it runs as it always does. Linux on x86-64. Facts: ptrace(2), seccomp(2). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum takes {
    DESCRIPTOR, /* first argument: what is written to */
    PATH,       /* first argument: a path */
    AT,         /* second argument: a path below the first */
    OPEN,       /* as AT, counted when something may be written, with --reads when not */
    ANY,        /* counted whatever its arguments are */
};

static const struct call {
    int number;
    const char *name;
    enum takes takes;
    int takes_room;
    int spawns;
    int reads; /* of OPEN its flags say so */
} calls[] = {
    {SYS_write, "write", DESCRIPTOR, 1, 0, 0},
    {SYS_pwrite64, "pwrite64", DESCRIPTOR, 1, 0, 0},
    {SYS_writev, "writev", DESCRIPTOR, 1, 0, 0},
    {SYS_copy_file_range, "copy_file_range", ANY, 1, 0, 0},
    {SYS_fsync, "fsync", DESCRIPTOR, 0, 0, 0},
    {SYS_fdatasync, "fdatasync", DESCRIPTOR, 0, 0, 0},
    {SYS_ftruncate, "ftruncate", DESCRIPTOR, 1, 0, 0},
    {SYS_fallocate, "fallocate", DESCRIPTOR, 1, 0, 0},
    {SYS_open, "open", OPEN, 1, 0, 0},
    {SYS_openat, "openat", OPEN, 1, 0, 0},
    {SYS_rename, "rename", PATH, 1, 0, 0},
    {SYS_renameat, "renameat", AT, 1, 0, 0},
    {SYS_renameat2, "renameat2", AT, 1, 0, 0},
    {SYS_link, "link", PATH, 1, 0, 0},
    {SYS_linkat, "linkat", AT, 1, 0, 0},
    {SYS_symlinkat, "symlinkat", PATH, 1, 0, 0},
    {SYS_mknodat, "mknodat", AT, 1, 0, 0},
    {SYS_unlink, "unlink", PATH, 0, 0, 0},
    {SYS_unlinkat, "unlinkat", AT, 0, 0, 0},
    {SYS_rmdir, "rmdir", PATH, 0, 0, 0},
    {SYS_mkdir, "mkdir", PATH, 1, 0, 0},
    {SYS_mkdirat, "mkdirat", AT, 1, 0, 0},
    {SYS_chmod, "chmod", PATH, 0, 0, 0},
    {SYS_fchmod, "fchmod", DESCRIPTOR, 0, 0, 0},
    {SYS_fchmodat, "fchmodat", AT, 0, 0, 0},
    {SYS_chown, "chown", PATH, 0, 0, 0},
    {SYS_fchown, "fchown", DESCRIPTOR, 0, 0, 0},
    {SYS_fchownat, "fchownat", AT, 0, 0, 0},
    {SYS_flock, "flock", DESCRIPTOR, 0, 0, 0},
    {SYS_clone, "clone", ANY, 0, 1, 0},
    {SYS_clone3, "clone3", ANY, 0, 1, 0},
    {SYS_fork, "fork", ANY, 0, 1, 0},
    {SYS_vfork, "vfork", ANY, 0, 1, 0},
    {SYS_execve, "execve", PATH, 0, 0, 0},
    {SYS_ioctl, "ioctl", ANY, 0, 0, 0},
    {SYS_mount, "mount", AT, 0, 0, 0},
    {SYS_umount2, "umount2", PATH, 0, 0, 0},
    {SYS_pivot_root, "pivot_root", PATH, 0, 0, 0},
    {SYS_unshare, "unshare", ANY, 0, 0, 0},
    {SYS_setns, "setns", ANY, 0, 0, 0},
    {SYS_read, "read", DESCRIPTOR, 0, 0, 1},
    {SYS_pread64, "pread64", DESCRIPTOR, 0, 0, 1},
    {SYS_getdents64, "getdents64", DESCRIPTOR, 0, 0, 1},
    {SYS_readlink, "readlink", PATH, 0, 0, 1},
    {SYS_readlinkat, "readlinkat", AT, 0, 0, 1},
    {SYS_connect, "connect", ANY, 0, 0, 1},
};
enum { CALLS = sizeof calls / sizeof *calls };

static struct stat program;
static FILE *report;
static long at, counted;
static int reads; /* whether what reads is counted, not what changes */
static const char *kind = "", *only = "";
static dev_t full; /* the disk without room, when there is one */

static void die(const char *what) {
    fprintf(stderr, "fault: %s: %s\n", what, strerror(errno));
    exit(125);
}

/* Stops at the calls above, lets everything else pass. */
static void install_filter(void) {
    struct sock_filter filter[2 * CALLS + 8], *next = filter;
    *next++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    *next++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    *next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    *next++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < CALLS; i++) {
        if (calls[i].reads != reads && calls[i].takes != OPEN)
            continue;
        *next++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
        *next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    }
    *next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog all = {.len = next - filter, .filter = filter};
    /* Root needs no PR_SET_NO_NEW_PRIVS, which would change what the program can do. */
    if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        die("no_new_privs");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) != 0)
        die("seccomp");
}

/* The text at an address of a process, cut where it is long. */
static void text_of(pid_t pid, unsigned long address, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int memory = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = memory < 0 ? -1 : pread(memory, text, size - 1, (off_t)address);
    if (memory >= 0)
        close(memory);
    text[length < 0 ? 0 : length] = 0;
}

static int is_library(const char *path) {
    return strncmp(path, "/lib", 4) == 0 || strncmp(path, "/usr/lib", 8) == 0 || strncmp(path, "/etc/ld.so", 10) == 0;
}

/* What it was started as: `trial-part`, `init`; of loadline its subcommand. */
static void role_of(pid_t pid, char *role, size_t size) {
    char path[64], line[4096];
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, line, sizeof line - 1);
    if (file >= 0)
        close(file);
    line[length < 0 ? 0 : length] = 0;
    size_t first = strlen(line) + 1;
    snprintf(role, size, "%s", length > 0 && (ssize_t)first < length ? line + first : "-");
}

static int is_of_program(pid_t pid) {
    char path[64];
    struct stat own;
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    return stat(path, &own) == 0 && own.st_dev == program.st_dev && own.st_ino == program.st_ino;
}

/* Whether a call counts; what it is about, and on which disk. */
static int counts(pid_t pid, const struct call *call, const struct user_regs_struct *regs,
                  char *what, size_t size, dev_t *disk) {
    char path[64];
    struct stat there;
    *disk = 0;
    what[0] = 0;
    switch (call->takes) {
    case DESCRIPTOR:
        snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, (int)regs->rdi);
        if (stat(path, &there) != 0)
            return 0;
        *disk = there.st_dev;
        ssize_t length = readlink(path, what, size - 1);
        what[length < 0 ? 0 : length] = 0;
        if (S_ISFIFO(there.st_mode)) {
            static const char *standard[] = {"stdin", "stdout", "stderr"};
            if ((int)regs->rdi <= 2)
                snprintf(what, size, "%s", standard[(int)regs->rdi]);
            return 1;
        }
        return (S_ISREG(there.st_mode) || S_ISDIR(there.st_mode)) && !is_library(what);
    case PATH:
        text_of(pid, regs->rdi, what, size);
        return 1;
    case AT:
        text_of(pid, regs->rsi, what, size);
        return 1;
    case OPEN: {
        int is_old = call->number == SYS_open;
        text_of(pid, is_old ? regs->rdi : regs->rsi, what, size);
        long flags = is_old ? regs->rsi : regs->rdx;
        int writes = (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0;
        return writes != reads && strncmp(what, "/dev/", 5) != 0 && !is_library(what);
    }
    default:
        if (call->number == SYS_ioctl) {
            snprintf(what, size, "request %#llx", regs->rsi);
            /* Questions to terminals change nothing. */
            return regs->rsi != TCGETS && regs->rsi != TIOCGWINSZ;
        }
        return 1;
    }
}

static void fails(pid_t pid, struct user_regs_struct *regs, int error) {
    regs->orig_rax = -1;
    regs->rax = -(long)error;
    ptrace(PTRACE_SETREGS, pid, 0, regs);
}

/* A call is about to be made. */
static void look(pid_t pid) {
    struct user_regs_struct regs;
    if (!is_of_program(pid) || ptrace(PTRACE_GETREGS, pid, 0, &regs) != 0)
        return;
    const struct call *call = calls;
    while (call < calls + CALLS && call->number != (int)regs.orig_rax)
        call++;
    char what[512], role[64];
    dev_t disk;
    if (call == calls + CALLS || !counts(pid, call, &regs, what, sizeof what, &disk))
        return;
    char line[sizeof what + 32];
    snprintf(line, sizeof line, "%s %s", call->name, what);
    if (strncmp(line, only, strlen(only)) != 0)
        return;
    counted++;
    if (full != 0 && disk == full && call->takes_room) {
        fails(pid, &regs, ENOSPC);
        return;
    }
    if (at != 0 && at != counted)
        return;
    role_of(pid, role, sizeof role);
    fprintf(report, "%ld %s %s %s\n", counted, call->name, role, what);
    fflush(report);
    if (at == 0)
        return;
    if (strcmp(kind, "kill") == 0)
        kill(pid, SIGKILL);
    else if (strcmp(kind, "error") == 0)
        fails(pid, &regs, call->spawns ? EAGAIN : EPERM);
    else if (strcmp(kind, "EIO") == 0 || strcmp(kind, "unread") == 0)
        fails(pid, &regs, EIO);
    else if (strcmp(kind, "EMFILE") == 0)
        fails(pid, &regs, EMFILE);
    else if (strcmp(kind, "short") == 0 || strcmp(kind, "half") == 0) {
        /* The kernel takes what is written to its own files whole: half of a process id in
         * cgroup.procs would be another process. */
        if (regs.rdx > 1 && strncmp(what, "/sys/", 5) != 0 && strncmp(what, "/proc/", 6) != 0) {
            regs.rdx /= 2;
            ptrace(PTRACE_SETREGS, pid, 0, &regs);
        }
    } else {
        if (strcmp(kind, "full") == 0)
            full = disk;
        fails(pid, &regs, ENOSPC);
    }
}

static int is_alive_after(pid_t main_process, struct timespec ended) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return main_process == 0 && now.tv_sec - ended.tv_sec > 20;
}

int main(int argc, char **argv) {
    const char *to = NULL;
    int word = 1;
    for (; word + 1 < argc && strcmp(argv[word], "--") != 0; word += 2) {
        if (strcmp(argv[word], "--report") == 0)
            to = argv[word + 1];
        else if (strcmp(argv[word], "--at") == 0)
            at = atol(argv[word + 1]);
        else if (strcmp(argv[word], "--with") == 0)
            kind = argv[word + 1];
        else if (strcmp(argv[word], "--reads") == 0)
            reads = 1;
        else if (strcmp(argv[word], "--only") == 0)
            only = argv[word + 1];
        else
            break;
    }
    if (to == NULL || word + 1 >= argc || strcmp(argv[word], "--") != 0) {
        fprintf(stderr, "usage: fault --report FILE [--reads 1] [--only TEXT] [--at N --with KIND] -- PROGRAM [ARGUMENT...]\n");
        return 125;
    }
    char **command = argv + word + 1;
    report = fopen(to, "we");
    if (report == NULL)
        die(to);
    if (stat(command[0], &program) != 0)
        die(command[0]);
    int go[2];
    if (pipe2(go, O_CLOEXEC) != 0)
        die("pipe");
    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0) {
        char byte;
        close(go[1]);
        if (read(go[0], &byte, 1) != 1)
            _exit(125);
        install_filter();
        execv(command[0], command);
        die(command[0]);
    }
    long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                   PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SEIZE, child, 0, options) != 0)
        die("ptrace");
    close(go[0]);
    if (write(go[1], "x", 1) != 1)
        die("pipe");
    close(go[1]);

    int code = 125;
    pid_t running = child;
    struct timespec ended = {0};
    for (;;) {
        int status;
        /* After the program's end what is left of it is looked at from time to time. */
        pid_t pid = waitpid(-1, &status, __WALL | (running == 0 ? WNOHANG : 0));
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            break;
        if (pid == 0) {
            if (is_alive_after(running, ended)) {
                fprintf(report, "left something of it is alive\n");
                fclose(report);
                return 120;
            }
            usleep(2000);
            continue;
        }
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (pid == running) {
                code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
                running = 0;
                clock_gettime(CLOCK_MONOTONIC, &ended);
            }
            continue;
        }
        int signal = WSTOPSIG(status), event = status >> 16;
        if (event == PTRACE_EVENT_SECCOMP) {
            look(pid);
            ptrace(PTRACE_CONT, pid, 0, 0);
        } else if (event == PTRACE_EVENT_STOP && (signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU)) {
            ptrace(PTRACE_LISTEN, pid, 0, 0);
        } else {
            ptrace(PTRACE_CONT, pid, 0, event == 0 ? signal : 0);
        }
    }
    fclose(report);
    return code;
}
