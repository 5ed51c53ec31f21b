"""Builds a sandbox of namespaces and mounts and runs a command in it: `ARGS STATUS WATCH FILTER KEPT [PROXY] -- …`.

All but KEPT are descriptors (-1: none): mounts as bubblewrap options, the exit code to report, the watch to tell that the
command begins, the system call filter, and the channel that gets the listener of wolo's proxy. KEPT is the set of capabilities
to keep; above 0 there is no user namespace. A bare Python runs this text. Needs Linux 5.12; reports failures without running
the command.
"""

import _socket
import _struct as struct
import fcntl
import posix as os
import sys

from wolo.guard.sandbox.calls import (
    Long,
    call,
    check,
    close_calls,
    complain,
    control,
    decode_words,
    drop_capabilities,
    encode_text,
    function,
    hand_over_listener,
    lower_limits,
    read_filter,
    read_whole,
    report_begin,
    spawn,
    write_only_below,
)

NEW_USER, NEW_CGROUP = 0x10000000, 0x02000000
NEW_OTHERS = 0x00020000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x04000000
"""Mount, PID, network, IPC and UTS namespaces."""
OPEN_TREE, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT, OPENAT2, MOUNT_SETATTR = 428, 429, 430, 431, 432, 437, 442
PIVOT_ROOT = 155 if os.uname().machine == "x86_64" else 41
RECURSIVE, EMPTY_PATH, CLONE = 0x8000, 0x1000, 1
READ_ONLY, NO_SUID, NO_DEVICES, NO_PROGRAMS = 1, 2, 4, 8
NO_LINKS = 0x04 | 0x02
"""RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS: mounts never follow links."""
PRIVATE, DETACH = 1 << 18, 2
PARENT_DEATH, DUMPABLE, KILL = 1, 4, 9
FILE_TYPE, FOLDER = 0o170000, 0o040000
CLOSED = "0555"
SET_INTERFACE_FLAGS, UP_AND_RUNNING = 0x8914, 0x41
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


class Root:
    """The new file tree, mounted at `fd`, and the old one it is made from."""

    def __init__(self) -> None:
        self.old = os.open("/", os.O_PATH | os.O_CLOEXEC)
        self.fd = -1
        self.kinds: dict[str, str] = {}
        """Kind of each mount, by path."""
        self.closed = -1
        """The first mount of the empty file system that covers paths."""

    def find(self, path: str, above: int) -> int:
        """Opens a path as descriptor. Raises OSError if it contains a link."""
        how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, NO_LINKS)
        return call(OPENAT2, above, encode_text(path.strip("/") or "."), how, len(how))

    def bind(self, source: str, target: str, attributes: int) -> None:
        place = self.find(source, self.old)
        tree = call(OPEN_TREE, place, b"", CLONE | RECURSIVE | EMPTY_PATH | os.O_CLOEXEC)
        set_attributes(tree, attributes)
        if self.fd < 0:
            os.close(place)  # it leads out of the new tree
            self.become(tree)
            return
        is_folder = os.stat(f"/proc/self/fd/{place}").st_mode & FILE_TYPE == FOLDER
        os.close(place)
        self.attach(tree, target, is_folder, "" if source == target else "own")

    def become(self, tree: int) -> None:
        """Makes `tree` the root, with the old one stacked on it until `finish`."""
        call(MOVE_MOUNT, tree, b"", self.old, b"", 0x04 | 0x40)
        self.fd = tree
        os.fchdir(tree)
        call(PIVOT_ROOT, b".", b".")

    def finish(self) -> None:
        os.fchdir(self.fd)
        check(int(function("umount2")(b".", Long(DETACH))))
        for fd in (self.old, self.fd, self.closed):
            if fd >= 0:
                os.close(fd)

    def attach(self, mount: int, target: str, is_folder: bool = True, kind: str = "") -> None:
        place = self.make(target, is_folder)
        self.kinds[target] = kind
        call(MOVE_MOUNT, mount, b"", place, b"", 0x04 | 0x40)
        os.close(place)
        os.close(mount)

    def make(self, path: str, is_folder: bool) -> int:
        """Opens a mount point, and creates it if it is missing in an emptied part of the tree."""
        try:
            return self.find(path, self.fd)
        except FileNotFoundError:
            nearest = max((each for each in self.kinds if f"{path}/".startswith(f"{each.rstrip('/')}/")), key=len, default="/")
            if self.kinds.get(nearest) not in ("tmpfs", "own"):  # in memory, or in the private folder: no file of the user
                raise
            above, _, name = path.rstrip("/").rpartition("/")
            folder = self.make(above, True)
            if is_folder:
                os.mkdir(f"/proc/self/fd/{folder}/{name}", 0o755)
            else:
                os.close(os.open(f"/proc/self/fd/{folder}/{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o444))
            os.close(folder)
            return self.find(path, self.fd)

    def cover(self, target: str) -> None:
        """Covers a path below which nothing is mounted: clones of one mount are faster to make and to end than file systems."""
        if self.closed < 0:
            mount = file_system("tmpfs", NO_SUID | NO_DEVICES | READ_ONLY, mode=CLOSED)
            self.closed = os.dup(mount)
        else:
            mount = call(OPEN_TREE, self.closed, b"", CLONE | EMPTY_PATH | os.O_CLOEXEC)
        self.attach(mount, target)

    def new(self, kind: str, target: str, attributes: int, **options: str) -> None:
        self.attach(file_system(kind, attributes, **options), target, kind=kind)

    def devices(self, target: str) -> None:
        self.new("tmpfs", target, NO_SUID, mode="0755")
        folder = f"/proc/self/fd/{self.find(target, self.fd)}"
        for name in DEVICES:
            self.bind(f"/dev/{name}", f"{target}/{name}", NO_SUID | NO_PROGRAMS)
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            os.symlink(f"/proc/self/fd/{number}", f"{folder}/{name}")
        for name, goal in (("fd", "/proc/self/fd"), ("core", "/proc/kcore"), ("ptmx", "pts/ptmx")):
            os.symlink(goal, f"{folder}/{name}")
        os.mkdir(f"{folder}/shm")
        os.chmod(f"{folder}/shm", 0o1777)
        os.mkdir(f"{folder}/pts", 0o755)
        self.new("devpts", f"{target}/pts", NO_SUID | NO_PROGRAMS, ptmxmode="0666", mode="620")


def file_system(kind: str, attributes: int, **options: str) -> int:
    """A new file system that is mounted nowhere."""
    context = call(FSOPEN, kind.encode(), 1)
    for name, value in options.items():
        call(FSCONFIG, context, 1, name.encode(), value.encode(), 0)
    call(FSCONFIG, context, 6, None, None, 0)
    mount = call(FSMOUNT, context, 1, attributes)
    os.close(context)
    return mount


def set_attributes(mount: int, attributes: int, *, recursive: bool = True) -> None:
    wanted = struct.pack("=QQQQ", attributes, 0, 0, 0)
    call(MOUNT_SETATTR, mount, b"", EMPTY_PATH | (RECURSIVE if recursive else 0), wanted, len(wanted))


def build(words: list[str]) -> tuple[str, dict[str, str], list[str]]:
    """Mounts everything; returns the start directory, environment variables and writable paths."""
    check(int(function("mount")(None, b"/", None, Long(PRIVATE | 0x4000), None)))
    root, mode, cwd = Root(), "0755", "/"
    variables: dict[str, str] = {}
    writable = ["/dev"]
    above: set[str] = set()
    for word in words:
        while (word := word.rpartition("/")[0]) and word not in above:
            above.add(word)
    rest = iter(words)
    for word in rest:
        match word:
            case "--ro-bind":
                root.bind(next(rest), next(rest), NO_SUID | NO_DEVICES | READ_ONLY)
            case "--bind":
                source, target = next(rest), next(rest)
                root.bind(source, target, NO_SUID | NO_DEVICES)
                writable.append(target)
            case "--perms":
                mode = next(rest)
            case "--tmpfs":
                target = next(rest)
                if mode == CLOSED and target not in above:
                    root.cover(target)
                else:
                    root.new("tmpfs", target, NO_SUID | NO_DEVICES, mode=mode)
                mode = "0755"
            case "--remount-ro":
                place = root.find(next(rest), root.fd)
                set_attributes(place, READ_ONLY, recursive=False)
                os.close(place)
            case "--proc":
                root.new("proc", next(rest), NO_SUID | NO_DEVICES | NO_PROGRAMS)
            case "--dev":
                root.devices(next(rest))
            case "--setenv":
                name = next(rest)
                variables[name] = next(rest)
            case "--chdir":
                cwd = next(rest)
            case _:
                raise ValueError(word)
    root.finish()
    return cwd, variables, writable


def enter_namespaces(kept: int) -> None:
    user, group = os.geteuid(), os.getegid()
    try:
        unshare(NEW_OTHERS | (0 if kept else NEW_USER))
        is_apart = not kept
    except OSError:
        if kept or user:
            raise
        unshare(NEW_OTHERS)  # root needs no user namespace
        is_apart = False
    if is_apart:
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"{user} {user} 1")
        write("/proc/self/gid_map", f"{group} {group} 1")
    try:
        unshare(NEW_CGROUP)
    except OSError:
        return  # optional: it only hides a path


def unshare(flags: int) -> None:
    check(int(function("unshare")(Long(flags))))


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def be_first(words: list[str], text: bytes, kept: int, command: list[str], begun: int, held: int, watch: int, proxy: int) -> int:
    """Runs as the first process of the namespace: builds the sandbox, starts the command and waits for it."""
    control(PARENT_DEATH, KILL)
    if os.read(held, 1) != b"x":  # the parent has already ended
        return 1
    os.setsid()
    report_begin(watch)
    loopback = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    fcntl.ioctl(loopback.fileno(), SET_INTERFACE_FLAGS, struct.pack("16sH22x", b"lo", UP_AND_RUNNING))
    loopback.close()
    hand_over_listener(proxy)
    cwd, variables, writable = build(words)
    os.chdir(cwd)
    lower_limits()
    drop_capabilities(kept)
    write_only_below(writable)
    control(DUMPABLE, 0)  # the command cannot reach what this process has open, or its memory
    if text:
        close_calls(text)
    os.write(begun, b"x")
    os.close(begun)
    try:
        child = spawn(command, variables)
    except OSError as error:
        complain(error)
        return 127
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            return 128 - code if code < 0 else code


def main() -> None:
    at = sys.argv.index("--")
    args, status, watch, filter_fd, kept, proxy = map(int, (*sys.argv[1:at], "-1")[:6])
    for fd in (status, watch, proxy):
        if fd >= 0:
            os.set_inheritable(fd, False)
    words = decode_words(read_whole(args))
    text = read_filter(filter_fd)
    enter_namespaces(kept)
    control(PARENT_DEATH, KILL)
    reading, begun = os.pipe()
    held, holding = os.pipe()
    child = os.fork()
    if not child:
        for fd in (holding, reading, status):
            if fd >= 0:
                os.close(fd)
        code = 1
        try:
            code = be_first(words, text, kept, sys.argv[at + 1 :], begun, held, watch, proxy)
        except (OSError, ValueError, StopIteration) as error:
            complain(error)
        os._exit(code)
    os.close(begun)
    os.close(held)
    os.write(holding, b"x")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 128 - code if code < 0 else code
    if os.read(reading, 1) and status >= 0:
        os.write(status, b'{"exit-code": %d}\n' % code)
    os._exit(code)


try:
    main()
except OSError as error:
    complain(error)
    os._exit(1)
