// Stands between a program and the C library (LD_PRELOAD), logs what the program does to the files of one directory,
// and lets some of it fail. Whole-file locks are out of its reach: the crate behind them calls the kernel by itself.
//
//   FAULT_UNDER  the directory; its own descriptors count too, what is elsewhere passes through
//   FAULT_LOG    a file for the log: one line for each call, `name offset length = result`, and `injected` or `killed`
//   FAULT        rules `call:when:what`, with commas between them
//
//   call  open pread pwrite fdatasync fsync ftruncate rename link unlink setlk getlk stat mmap;
//         `any`: each that changes a file, `all`: each there is
//   when  N: the Nth such call; N+: that and all later ones; every; *: each first attempt, so that a second one works
//   what  the name of an errno; short: half of the bytes; torn: a third of the bytes, then EIO;
//         kill, kill-torn, kill-after: SIGKILL before, in the middle of, after the call

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum call { OPEN, PREAD, PWRITE, FDATASYNC, FSYNC, FTRUNCATE, RENAME, LINK, UNLINK, SETLK, GETLK, STAT, MMAP, CALLS };

static const char *const names[CALLS] = {"open", "pread",  "pwrite", "fdatasync", "fsync", "ftruncate", "rename",
                                         "link", "unlink", "setlk",  "getlk",     "stat",  "mmap"};

#define BIT(call) (1u << (call))
static const unsigned changing = BIT(PWRITE) | BIT(FDATASYNC) | BIT(FSYNC) | BIT(FTRUNCATE) | BIT(RENAME) | BIT(LINK) |
                                 BIT(UNLINK);

static const struct {
    const char *name;
    int number;
} errors[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC},         {"EDQUOT", EDQUOT}, {"EINTR", EINTR},   {"EINVAL", EINVAL},
              {"ENOSYS", ENOSYS}, {"EOPNOTSUPP", EOPNOTSUPP}, {"ENOLCK", ENOLCK}, {"ENOMEM", ENOMEM}, {"EMFILE", EMFILE}};

enum what { PASS, FAIL, SHORT, TORN, KILL, KILL_TORN, KILL_AFTER };

static struct rule {
    unsigned calls;
    int create_only;
    long first, last;
    int alternate;
    enum what what;
    int error;
    long seen;
} rules[16];

#define DESCRIPTORS 1024
static int rule_count, log_to = -1;
static char under[PATH_MAX];
static char tracked[DESCRIPTORS];
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static void bad(const char *text) {
    fprintf(stderr, "FAULT: '%s' is not a rule\n", text);
    abort();
}

static struct rule parse(char *text) {
    char *rest = NULL, *call = strtok_r(text, ":", &rest), *when = strtok_r(NULL, ":", &rest), *what = rest;
    struct rule rule = {.first = 1, .last = LONG_MAX};
    if (!call || !when || !what) bad(text);
    for (int n = 0; n < CALLS; n++)
        if (!strcmp(call, names[n])) rule.calls = BIT(n);
    if (!strcmp(call, "all")) rule.calls = BIT(CALLS) - 1;
    // Opening changes a file if it makes one.
    if (!strcmp(call, "any")) rule.calls = changing | BIT(OPEN), rule.create_only = 1;
    if (!rule.calls) bad(call);

    if (!strcmp(when, "*")) {
        rule.alternate = 1;
    } else if (strcmp(when, "every")) {
        char *end;
        rule.first = strtol(when, &end, 10);
        if (rule.first < 1 || (*end && strcmp(end, "+"))) bad(when);
        if (!*end) rule.last = rule.first;
    }

    if (!strcmp(what, "short")) rule.what = SHORT;
    if (!strcmp(what, "torn")) rule.what = TORN;
    if (!strcmp(what, "kill")) rule.what = KILL;
    if (!strcmp(what, "kill-torn")) rule.what = KILL_TORN;
    if (!strcmp(what, "kill-after")) rule.what = KILL_AFTER;
    for (size_t n = 0; n < sizeof errors / sizeof *errors; n++)
        if (!strcmp(what, errors[n].name)) rule.what = FAIL, rule.error = errors[n].number;
    if (rule.what == PASS) bad(what);
    return rule;
}

__attribute__((constructor)) static void set_up(void) {
    const char *directory = getenv("FAULT_UNDER"), *log = getenv("FAULT_LOG"), *fault = getenv("FAULT");
    if (!directory || !log) return;
    snprintf(under, sizeof under, "%s", directory);
    log_to = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_to < 0) bad(log);
    char text[512], *rest = NULL;
    snprintf(text, sizeof text, "%s", fault ? fault : "");
    for (char *rule = strtok_r(text, ",", &rest); rule; rule = strtok_r(NULL, ",", &rest)) {
        if (rule_count == sizeof rules / sizeof *rules) bad(rule);
        rules[rule_count++] = parse(rule);
    }
}

static int is_ours(int fd) { return fd >= 0 && fd < DESCRIPTORS && tracked[fd]; }

static int is_under(const char *path) {
    size_t len = strlen(under);
    return len && path && !strncmp(path, under, len) && (path[len] == '/' || !path[len]);
}

static int names_ours(int directory, const char *path) {
    return is_under(path) || (path && path[0] != '/' && is_ours(directory));
}

static void track(int fd, int ours) {
    if (fd >= 0 && fd < DESCRIPTORS) tracked[fd] = (char)ours;
}

static struct rule *judge(enum call call, int creates) {
    struct rule *hit = NULL;
    pthread_mutex_lock(&guard);
    for (struct rule *rule = rules; rule < rules + rule_count; rule++) {
        if (!(rule->calls & BIT(call)) || (rule->create_only && call == OPEN && !creates)) continue;
        long n = ++rule->seen;
        if (!hit && n >= rule->first && n <= rule->last && !(rule->alternate && n % 2 == 0)) hit = rule;
    }
    pthread_mutex_unlock(&guard);
    return hit;
}

static void note(enum call call, long long offset, long long len, long long result, const char *fault) {
    char line[160];
    int error = errno;
    int size = snprintf(line, sizeof line, "%s %lld %lld = %lld%s\n", names[call], offset, len, result, fault);
    if (syscall(SYS_write, log_to, line, (size_t)size) != size) abort();
    errno = error;
}

static void die(enum call call, long long offset, long long len) {
    note(call, offset, len, 0, " killed");
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

#define REAL(type, name, ...)                                                                                           \
    static type (*real)(__VA_ARGS__);                                                                                    \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

// Does `expression`, in which `amount` is how much of the `len` bytes to transfer, or what a rule wants in its place.
#define INJECT(call, creates, offset, len, failure, expression)                                                         \
    do {                                                                                                                 \
        size_t amount = (size_t)(len);                                                                                   \
        struct rule *rule = judge(call, creates);                                                                        \
        enum what what = rule ? rule->what : PASS;                                                                       \
        int transfers = (call) == PREAD || (call) == PWRITE;                                                             \
        if (what == KILL || (what == KILL_TORN && !transfers)) die(call, offset, len);                                   \
        if (what == FAIL || (what == TORN && !transfers)) {                                                              \
            errno = what == FAIL ? rule->error : EIO;                                                                    \
            note(call, offset, len, -1, " injected");                                                                    \
            return failure;                                                                                              \
        }                                                                                                                \
        if (what == SHORT && transfers && amount > 1) amount /= 2;                                                       \
        if (what == TORN || what == KILL_TORN) amount /= 3;                                                              \
        __auto_type result = expression;                                                                                 \
        if (what == KILL_TORN || what == KILL_AFTER) die(call, offset, len);                                             \
        if (what == TORN) {                                                                                              \
            errno = EIO;                                                                                                 \
            result = failure;                                                                                            \
        }                                                                                                                \
        note(call, offset, len, (long long)result, what == PASS ? "" : " injected");                                     \
        return result;                                                                                                   \
    } while (0)

static int opened(int fd, int ours) {
    track(fd, ours);
    return fd;
}

static int may_create(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

#define OPENING(directory, path, ...)                                                                                   \
    mode_t mode = 0;                                                                                                     \
    if (may_create(flags)) {                                                                                             \
        va_list list;                                                                                                    \
        va_start(list, flags);                                                                                           \
        mode = va_arg(list, mode_t);                                                                                     \
        va_end(list);                                                                                                    \
    }                                                                                                                    \
    if (!names_ours(directory, path)) return opened(real(__VA_ARGS__, flags, mode), 0);                                  \
    INJECT(OPEN, may_create(flags), may_create(flags), 0, -1, opened(real(__VA_ARGS__, flags, mode), 1))

int open(const char *path, int flags, ...) {
    REAL(int, "open", const char *, int, ...);
    OPENING(-1, path, path);
}

int open64(const char *path, int flags, ...) {
    REAL(int, "open64", const char *, int, ...);
    OPENING(-1, path, path);
}

int openat(int directory, const char *path, int flags, ...) {
    REAL(int, "openat", int, const char *, int, ...);
    OPENING(directory, path, directory, path);
}

int openat64(int directory, const char *path, int flags, ...) {
    REAL(int, "openat64", int, const char *, int, ...);
    OPENING(directory, path, directory, path);
}

int close(int fd) {
    REAL(int, "close", int);
    track(fd, 0);
    return real(fd);
}

int dup(int fd) {
    REAL(int, "dup", int);
    return opened(real(fd), is_ours(fd));
}

int dup2(int fd, int to) {
    REAL(int, "dup2", int, int);
    return opened(real(fd, to), is_ours(fd));
}

int dup3(int fd, int to, int flags) {
    REAL(int, "dup3", int, int, int);
    return opened(real(fd, to, flags), is_ours(fd));
}

static ssize_t do_pread(ssize_t (*real)(int, void *, size_t, off_t), int fd, void *buf, size_t len, off_t offset) {
    if (!is_ours(fd)) return real(fd, buf, len, offset);
    INJECT(PREAD, 0, offset, len, -1, real(fd, buf, amount, offset));
}

ssize_t pread(int fd, void *buf, size_t len, off_t offset) {
    REAL(ssize_t, "pread", int, void *, size_t, off_t);
    return do_pread(real, fd, buf, len, offset);
}

ssize_t pread64(int fd, void *buf, size_t len, off_t offset) {
    REAL(ssize_t, "pread64", int, void *, size_t, off_t);
    return do_pread(real, fd, buf, len, offset);
}

static ssize_t do_pwrite(ssize_t (*real)(int, const void *, size_t, off_t), int fd, const void *buf, size_t len,
                         off_t offset) {
    if (!is_ours(fd)) return real(fd, buf, len, offset);
    INJECT(PWRITE, 0, offset, len, -1, real(fd, buf, amount, offset));
}

ssize_t pwrite(int fd, const void *buf, size_t len, off_t offset) {
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
    return do_pwrite(real, fd, buf, len, offset);
}

ssize_t pwrite64(int fd, const void *buf, size_t len, off_t offset) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off_t);
    return do_pwrite(real, fd, buf, len, offset);
}

int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    if (!is_ours(fd)) return real(fd);
    INJECT(FDATASYNC, 0, 0, 0, -1, real(fd));
}

int fsync(int fd) {
    REAL(int, "fsync", int);
    if (!is_ours(fd)) return real(fd);
    INJECT(FSYNC, 0, 0, 0, -1, real(fd));
}

int ftruncate(int fd, off_t len) {
    REAL(int, "ftruncate", int, off_t);
    if (!is_ours(fd)) return real(fd, len);
    INJECT(FTRUNCATE, 0, 0, len, -1, real(fd, len));
}

int ftruncate64(int fd, off_t len) {
    REAL(int, "ftruncate64", int, off_t);
    if (!is_ours(fd)) return real(fd, len);
    INJECT(FTRUNCATE, 0, 0, len, -1, real(fd, len));
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    if (!is_under(from) && !is_under(to)) return real(from, to);
    INJECT(RENAME, 0, 0, 0, -1, real(from, to));
}

int renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned flags) {
    REAL(int, "renameat2", int, const char *, int, const char *, unsigned);
    if (!names_ours(from_directory, from) && !names_ours(to_directory, to))
        return real(from_directory, from, to_directory, to, flags);
    INJECT(RENAME, 0, 0, 0, -1, real(from_directory, from, to_directory, to, flags));
}

int link(const char *from, const char *to) {
    REAL(int, "link", const char *, const char *);
    if (!is_under(from) && !is_under(to)) return real(from, to);
    INJECT(LINK, 0, 0, 0, -1, real(from, to));
}

int linkat(int from_directory, const char *from, int to_directory, const char *to, int flags) {
    REAL(int, "linkat", int, const char *, int, const char *, int);
    if (!names_ours(from_directory, from) && !names_ours(to_directory, to))
        return real(from_directory, from, to_directory, to, flags);
    INJECT(LINK, 0, 0, 0, -1, real(from_directory, from, to_directory, to, flags));
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    if (!is_under(path)) return real(path);
    INJECT(UNLINK, 0, 0, 0, -1, real(path));
}

int unlinkat(int directory, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    if (!names_ours(directory, path)) return real(directory, path, flags);
    INJECT(UNLINK, 0, 0, 0, -1, real(directory, path, flags));
}

static int do_fcntl(int (*real)(int, int, ...), int fd, int command, void *argument) {
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return opened(real(fd, command, argument), is_ours(fd));
    if (!is_ours(fd) || (command != F_OFD_SETLK && command != F_OFD_GETLK)) return real(fd, command, argument);
    struct flock *lock = argument;
    enum call call = command == F_OFD_SETLK ? SETLK : GETLK;
    INJECT(call, 0, lock->l_start, lock->l_len, -1, real(fd, command, argument));
}

int fcntl(int fd, int command, ...) {
    REAL(int, "fcntl", int, int, ...);
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    return do_fcntl(real, fd, command, argument);
}

int fcntl64(int fd, int command, ...) {
    REAL(int, "fcntl64", int, int, ...);
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    return do_fcntl(real, fd, command, argument);
}

int statx(int directory, const char *restrict path, int flags, unsigned mask, struct statx *restrict buf) {
    REAL(int, "statx", int, const char *, int, unsigned, struct statx *);
    // Rust asks without a path whether there is such a call, which the header rules out.
    const char *volatile name = path;
    int ours = name && *name ? names_ours(directory, name) : is_ours(directory);
    if (!ours) return real(directory, path, flags, mask, buf);
    INJECT(STAT, 0, 0, 0, -1, real(directory, path, flags, mask, buf));
}

void *mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset) {
    REAL(void *, "mmap", void *, size_t, int, int, int, off_t);
    if (!is_ours(fd)) return real(at, len, protection, flags, fd, offset);
    INJECT(MMAP, 0, offset, len, MAP_FAILED, real(at, len, protection, flags, fd, offset));
}

void *mmap64(void *at, size_t len, int protection, int flags, int fd, off_t offset) {
    REAL(void *, "mmap64", void *, size_t, int, int, int, off_t);
    if (!is_ours(fd)) return real(at, len, protection, flags, fd, offset);
    INJECT(MMAP, 0, offset, len, MAP_FAILED, real(at, len, protection, flags, fd, offset));
}
