/* Builds a sandbox of namespaces and mounts and runs a command in it: `ARGS STATUS WATCH FILTER KEPT [PROXY] -- COMMAND…`.

   The compiled form of namespace_launcher.py, which explains the arguments and is used where this one is missing. Both pass the
   same tests. Linked statically: no variable of the command's environment makes it load code before the sandbox stands. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPEN_TREE = 428, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT, OPENAT2 = 437, SETATTR = 442 };
enum { RULESET = 444, ADD_RULE, RESTRICT };
enum { READ_ONLY = 1, NO_SUID = 2, NO_DEVICES = 4, NO_PROGRAMS = 8 };
enum { RECURSIVE = 0x8000, EMPTY_PATH = 0x1000, CLONE = 1, BOTH_EMPTY = 0x44, PRIVATE = (1 << 18) | 0x4000, DETACH = 2 };
enum { NO_LINKS = 0x04 | 0x02 }; /* RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS */
enum { WRITE_FILE = 1 << 1, REFER = 1 << 13 };
enum { PROXY_PORT = 61128 };
enum { OTHERS = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS };

static const char CLOSED[] = "0555";
static const uint64_t MOST_FILE_BYTES = 16ull << 30, MOST_PROCESSOR_S = 14400;

struct mounted { const char *path, *kind; };

static int old_root, new_root = -1, closed_mount = -1;
static struct mounted *mounts;
static size_t num_mounts;

static void complain(const char *what) {
    dprintf(2, "Cannot set up the sandbox: %s: %s\n", what, strerror(errno));
}

static void fail(const char *what) {
    complain(what);
    _exit(1);
}

static int check(long result, const char *what) {
    if (result < 0) fail(what);
    return (int)result;
}

static void *check_memory(void *memory) {
    if (!memory) fail("memory");
    return memory;
}

static char *read_whole(int fd, size_t *length) {
    size_t room = 1 << 16;
    char *data = check_memory(malloc(room));
    *length = 0;
    for (ssize_t n; fd >= 0; *length += (size_t)n) {
        if (*length == room) data = check_memory(realloc(data, room *= 2));
        n = read(fd, data + *length, room - *length);
        if (n < 0 && errno == EINTR) n = 0;
        else if (check(n, "arguments") == 0) break;
    }
    if (fd >= 0) close(fd);
    return data;
}

/* Opens a path as descriptor; -1 if it is missing or contains a link. */
static int find(const char *path, int above) {
    uint64_t how[3] = {O_PATH | O_CLOEXEC, 0, NO_LINKS};
    char *stripped = check_memory(strdup(path + strspn(path, "/")));
    for (size_t end = strlen(stripped); end && stripped[end - 1] == '/'; end--) stripped[end - 1] = 0;
    int fd = (int)syscall(OPENAT2, above, *stripped ? stripped : ".", how, sizeof how);
    int reason = errno;
    free(stripped);
    errno = reason;
    return fd;
}

static int is_below(const char *path, const char *folder) {
    size_t length = strlen(folder);
    while (length && folder[length - 1] == '/') length--;
    return !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

/* Opens a mount point, and creates it if it is missing in an emptied part of the tree. */
static int make(const char *path, int is_folder) {
    int fd = find(path, new_root);
    if (fd >= 0 || errno != ENOENT) return check(fd, path);
    struct mounted *nearest = NULL;
    for (struct mounted *each = mounts; each < mounts + num_mounts; each++)
        if (is_below(path, each->path) && (!nearest || strlen(each->path) >= strlen(nearest->path))) nearest = each;
    if (!nearest || (strcmp(nearest->kind, "tmpfs") && strcmp(nearest->kind, "own"))) fail(path); /* a file of the user */
    char *above = check_memory(strdup(path));
    char *slash = strrchr(above, '/');
    while (slash && !slash[1] && slash > above) *slash = 0, slash = strrchr(above, '/');
    if (!slash) fail(path);
    *slash = 0;
    int folder = make(above, 1);
    if (is_folder) check(mkdirat(folder, slash + 1, 0755), path);
    else close(check(openat(folder, slash + 1, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444), path));
    close(folder);
    free(above);
    return check(find(path, new_root), path);
}

static void attach(int mount, const char *target, int is_folder, const char *kind) {
    int place = make(target, is_folder);
    mounts = check_memory(realloc(mounts, (num_mounts + 1) * sizeof *mounts));
    mounts[num_mounts++] = (struct mounted){target, kind};
    check(syscall(MOVE_MOUNT, mount, "", place, "", BOTH_EMPTY), target);
    close(place);
    close(mount);
}

static void set_attributes(int mount, uint64_t attributes, int flags, const char *path) {
    uint64_t wanted[4] = {attributes, 0, 0, 0};
    check(syscall(SETATTR, mount, "", EMPTY_PATH | flags, wanted, sizeof wanted), path);
}

static void bind_mount(const char *source, const char *target, uint64_t attributes) {
    struct stat status;
    int place = check(find(source, old_root), source);
    int tree = check(syscall(OPEN_TREE, place, "", CLONE | RECURSIVE | EMPTY_PATH | O_CLOEXEC), source);
    set_attributes(tree, attributes, RECURSIVE, source);
    check(fstat(place, &status), source);
    close(place);
    if (new_root >= 0) {
        attach(tree, target, S_ISDIR(status.st_mode), strcmp(source, target) ? "own" : "");
        return;
    }
    check(syscall(MOVE_MOUNT, tree, "", old_root, "", BOTH_EMPTY), source); /* the old root stays stacked on it until the end */
    new_root = tree;
    check(fchdir(tree), source);
    check(syscall(SYS_pivot_root, ".", "."), source);
}

/* A new file system that is mounted nowhere; options are pairs, ended by NULL. */
static int file_system(const char *kind, uint64_t attributes, const char *const *options) {
    int context = check(syscall(FSOPEN, kind, 1), kind);
    for (; options && *options; options += 2) check(syscall(FSCONFIG, context, 1, options[0], options[1], 0), kind);
    check(syscall(FSCONFIG, context, 6, NULL, NULL, 0), kind);
    int mount = check(syscall(FSMOUNT, context, 1, attributes), kind);
    close(context);
    return mount;
}

static void new_mount(const char *kind, const char *target, uint64_t attributes, const char *const *options) {
    attach(file_system(kind, attributes, options), target, 1, kind);
}

/* Clones of one empty mount are faster to make and to end than file systems. */
static void cover(const char *target) {
    const char *options[] = {"mode", CLOSED, NULL};
    int mount;
    if (closed_mount < 0) {
        mount = file_system("tmpfs", NO_SUID | NO_DEVICES | READ_ONLY, options);
        closed_mount = check(fcntl(mount, F_DUPFD_CLOEXEC, 0), target);
    } else mount = check(syscall(OPEN_TREE, closed_mount, "", CLONE | EMPTY_PATH | O_CLOEXEC), target);
    attach(mount, target, 1, "");
}

static char *joined(const char *folder, const char *name) {
    char *path;
    if (asprintf(&path, "%s/%s", folder, name) < 0) fail("memory");
    return path; /* mounts keep it */
}

static void devices(const char *target) {
    static const char *const names[] = {"null", "zero", "full", "random", "urandom", "tty"};
    static const char *const links[][2] = {
        {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"},
        {"fd", "/proc/self/fd"}, {"core", "/proc/kcore"}, {"ptmx", "pts/ptmx"}};
    const char *mode[] = {"mode", "0755", NULL}, *terminals[] = {"ptmxmode", "0666", "mode", "620", NULL};
    new_mount("tmpfs", target, NO_SUID, mode);
    int folder = check(find(target, new_root), target);
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
        bind_mount(joined("/dev", names[at]), joined(target, names[at]), NO_SUID | NO_PROGRAMS);
    for (size_t at = 0; at < sizeof links / sizeof *links; at++) check(symlinkat(links[at][1], folder, links[at][0]), target);
    check(mkdirat(folder, "shm", 0777), target);
    check(fchmodat(folder, "shm", 01777, 0), target);
    check(mkdirat(folder, "pts", 0755), target);
    close(folder);
    new_mount("devpts", joined(target, "pts"), NO_SUID | NO_PROGRAMS, terminals);
}

static int is_above_one(const char *folder, char **words) {
    for (size_t length = strlen(folder); *words; words++)
        if (!strncmp(*words, folder, length) && (*words)[length] == '/') return 1;
    return 0;
}

static char *next(char ***rest) {
    if (!**rest) errno = EINVAL, fail("arguments");
    return *(*rest)++;
}

/* Mounts everything, and sets the variables. Returns the start directory; `writable` gets the writable paths. */
static const char *build(char **words, const char **writable) {
    const char *cwd = "/", *mode = "0755";
    old_root = check(open("/", O_PATH | O_CLOEXEC), "/");
    for (char **rest = words; *rest;) {
        const char *word = next(&rest), *first = next(&rest);
        if (!strcmp(word, "--ro-bind")) bind_mount(first, next(&rest), NO_SUID | NO_DEVICES | READ_ONLY);
        else if (!strcmp(word, "--bind")) bind_mount(first, *writable++ = next(&rest), NO_SUID | NO_DEVICES);
        else if (!strcmp(word, "--perms")) mode = first;
        else if (!strcmp(word, "--tmpfs")) {
            const char *options[] = {"mode", mode, NULL};
            if (!strcmp(mode, CLOSED) && !is_above_one(first, words)) cover(first);
            else new_mount("tmpfs", first, NO_SUID | NO_DEVICES, options);
            mode = "0755";
        } else if (!strcmp(word, "--remount-ro")) {
            int place = check(find(first, new_root), first);
            set_attributes(place, READ_ONLY, 0, first);
            close(place);
        } else if (!strcmp(word, "--proc")) new_mount("proc", first, NO_SUID | NO_DEVICES | NO_PROGRAMS, NULL);
        else if (!strcmp(word, "--dev")) devices(first);
        else if (!strcmp(word, "--setenv")) check(setenv(first, next(&rest), 1), first);
        else if (!strcmp(word, "--chdir")) cwd = first;
        else errno = EINVAL, fail(word);
    }
    check(fchdir(new_root), "/");
    check(umount2(".", DETACH), "/");
    close(old_root);
    close(new_root);
    if (closed_mount >= 0) close(closed_mount);
    return cwd;
}

static void write_text(const char *path, const char *text) {
    int fd = check(open(path, O_WRONLY | O_CLOEXEC), path);
    check(write(fd, text, strlen(text)), path);
    close(fd);
}

static void enter_namespaces(uint64_t kept) {
    char map[64];
    uid_t user = geteuid();
    gid_t group = getegid();
    if (unshare(OTHERS | (kept ? 0 : CLONE_NEWUSER)) < 0) {
        if (kept || user) fail("namespaces");
        check(unshare(OTHERS), "namespaces"); /* root needs no user namespace */
    } else if (!kept) {
        write_text("/proc/self/setgroups", "deny");
        snprintf(map, sizeof map, "%u %u 1", user, user);
        write_text("/proc/self/uid_map", map);
        snprintf(map, sizeof map, "%u %u 1", group, group);
        write_text("/proc/self/gid_map", map);
    }
    unshare(CLONE_NEWCGROUP); /* optional: it only hides a path */
}

static void lower_limit(int which, rlim_t most) {
    struct rlimit limit;
    check(getrlimit(which, &limit), "limits");
    if (limit.rlim_max < most) most = limit.rlim_max;
    check(setrlimit(which, &(struct rlimit){most, most}), "limits");
}

static void drop_capabilities(uint64_t remaining) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2];
    for (int capability = 0; capability < 64; capability++)
        if (!(remaining >> capability & 1)) prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    check(syscall(SYS_capget, &header, sets), "capabilities");
    sets[0].effective &= (uint32_t)remaining;
    sets[0].permitted &= (uint32_t)remaining;
    sets[0].inheritable = 0;
    memset(&sets[1], 0, sizeof sets[1]);
    check(syscall(SYS_capset, &header, sets), "capabilities");
}

static void allow_below(int ruleset, const char *path, uint64_t rights) {
    int place = check(open(path, O_PATH | O_CLOEXEC), path);
    struct { uint64_t rights; int32_t place; } __attribute__((packed)) rule = {rights, place};
    check(syscall(ADD_RULE, ruleset, 1, &rule, 0), path);
    close(place);
}

/* Read-only mounts protect files, but a FIFO on one stays writable, and its reader is outside. */
static void write_only_below(const char **paths) {
    uint64_t handled = WRITE_FILE | REFER;
    if (syscall(RULESET, NULL, 0, 1) < 2) return; /* Landlock version 2 */
    int ruleset = check(syscall(RULESET, &handled, sizeof handled, 0), "Landlock");
    allow_below(ruleset, "/", REFER);
    for (; *paths; paths++) allow_below(ruleset, *paths, WRITE_FILE);
    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "Landlock");
    check(syscall(RESTRICT, ruleset, 0), "Landlock");
    close(ruleset);
}

/* Listens where the command finds its proxy, and gives the socket to wolo, which accepts the connections from outside. */
static void hand_over_listener(int proxy) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PROXY_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = check(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "proxy");
    check(bind(listener, (struct sockaddr *)&address, sizeof address), "proxy");
    check(listen(listener, 128), "proxy");
    union { struct cmsghdr head; char space[CMSG_SPACE(sizeof listener)]; } control = {
        .head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof listener)}};
    memcpy(CMSG_DATA(&control.head), &listener, sizeof listener);
    struct iovec text = {"l", 1};
    struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    check(sendmsg(proxy, &message, MSG_NOSIGNAL), "proxy");
    close(listener);
    close(proxy); /* the command must not have it */
}

static int exit_code(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run(char **command) {
    posix_spawnattr_t attributes;
    sigset_t changed;
    pid_t child, ended;
    int status;
    sigemptyset(&changed);
    sigaddset(&changed, SIGPIPE), sigaddset(&changed, SIGXFSZ), sigaddset(&changed, SIGINT);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &changed);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    if ((errno = posix_spawnp(&child, command[0], NULL, &attributes, command, environ))) {
        complain(command[0]);
        return 127;
    }
    while ((ended = wait(&status)) != child)
        if (ended < 0 && errno != EINTR) fail("wait");
    return exit_code(status);
}

/* The first process of the namespace: builds the sandbox, starts the command and waits for it. */
static int be_first(char **words, const char **writable, struct sock_fprog filter, uint64_t kept, char **command, int pipes[4]) {
    char go;
    int begun = pipes[0], held = pipes[1], watch = pipes[2], proxy = pipes[3];
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    check(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "parent");
    if (read(held, &go, 1) != 1) return 1; /* the parent has already ended */
    check(setsid(), "session");
    if (watch >= 0) {
        check(write(watch, "r", 1), "watch");
        close(watch); /* the command must not have it */
    }
    int network = check(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "network");
    check(ioctl(network, SIOCSIFFLAGS, &loopback), "network");
    close(network);
    if (proxy >= 0) hand_over_listener(proxy);
    check(mount(NULL, "/", NULL, PRIVATE, NULL), "mounts");
    writable[0] = "/dev";
    const char *cwd = build(words, writable + 1);
    check(chdir(cwd), cwd);
    lower_limit(RLIMIT_CORE, 0);
    lower_limit(RLIMIT_FSIZE, MOST_FILE_BYTES);
    lower_limit(RLIMIT_CPU, MOST_PROCESSOR_S);
    drop_capabilities(kept);
    write_only_below(writable);
    check(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "descriptors"); /* the command cannot reach what this process has open */
    if (filter.len) {
        check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "system calls");
        check(prctl(PR_SET_SECCOMP, 2, &filter, 0, 0), "system calls");
    }
    check(write(begun, "x", 1), "begin");
    close(begun);
    return run(command);
}

int main(int argc, char **argv) {
    size_t length, filter_length, num_words = 0;
    int reading_begun[2], held[2], status;
    char began;
    int has_proxy = argc > 8 && !strcmp(argv[7], "--");
    if (argc < 8 || strcmp(argv[6 + has_proxy], "--")) errno = EINVAL, fail("arguments");
    int proxy = has_proxy ? atoi(argv[6]) : -1;
    char **command = argv + 7 + has_proxy;
    int status_fd = atoi(argv[2]), watch = atoi(argv[3]);
    uint64_t kept = strtoull(argv[5], NULL, 10);
    for (int at = 0; at < 3; at++) {
        int fd = (int[]){status_fd, watch, proxy}[at];
        if (fd >= 0) check(fcntl(fd, F_SETFD, FD_CLOEXEC), "arguments");
    }
    char *text = read_whole(atoi(argv[1]), &length);
    char *filter = read_whole(atoi(argv[4]), &filter_length);
    char **words = check_memory(calloc(length + 1, sizeof *words));
    const char **writable = check_memory(calloc(length + 2, sizeof *writable));
    for (char *word = text; word < text + length; word += strlen(word) + 1) words[num_words++] = word;
    if (length && text[length - 1]) errno = EINVAL, fail("arguments");
    size_t num_lines = filter_length / sizeof(struct sock_filter);
    int is_filter = num_lines && num_lines <= BPF_MAXINSNS && filter_length % sizeof(struct sock_filter) == 0;
    if (atoi(argv[4]) >= 0 && !is_filter) errno = EINVAL, fail("system calls");
    struct sock_fprog program = {(unsigned short)num_lines, (struct sock_filter *)filter};
    enter_namespaces(kept);
    check(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "parent");
    check(pipe2(reading_begun, O_CLOEXEC), "pipes");
    check(pipe2(held, O_CLOEXEC), "pipes");
    pid_t child = check(fork(), "fork");
    if (!child) {
        close(held[1]);
        close(reading_begun[0]);
        if (status_fd >= 0) close(status_fd);
        _exit(be_first(words, writable, program, kept, command, (int[]){reading_begun[1], held[0], watch, proxy}));
    }
    close(reading_begun[1]);
    close(held[0]);
    check(write(held[1], "x", 1), "fork");
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) fail("wait");
    if (read(reading_begun[0], &began, 1) == 1 && status_fd >= 0) dprintf(status_fd, "{\"exit-code\": %d}\n", exit_code(status));
    _exit(exit_code(status));
}
