"""Watches protected names while sandboxed commands run: `watcher CONTROL INOTIFY ASIDE`, two descriptors and a folder.

No mount holds a name that is missing, and a program outside can detach those that hold the others. What appears is set aside at
once, and every command that could have made it is ended. A process of its own: it works while wolo is busy, stopped or killed.
A bare Python runs its text as it was when wolo started.
"""

# ruff: noqa: PTH101, PTH102, PTH104, PTH114, PTH119, PTH120, PTH208  # paths are text here

from __future__ import annotations

import contextlib
import marshal
import os
import select
import shutil
import signal
import socket
import stat
import struct
import sys
import time
from typing import Any

from wolo.guard.protected_paths import ABOVE, fold, is_protected, makes_repository, stands_for_folder
from wolo.guard.sandbox.calls import (
    CLOSE_WRITE,
    CREATE,
    DELETE_SELF,
    MOVE_SELF,
    MOVED_TO,
    OVERFLOW,
    UNMOUNT,
    stamp_of,
    watch_folder,
)

GONE = DELETE_SELF | MOVE_SELF | UNMOUNT
HEAD = struct.calcsize("iIII")
CREDENTIALS = struct.calcsize("3i")
MOST_BYTES, MOST_REPORTED, ENDING_S = 1 << 16, 200, 10
GRACE_S = 0.2
"""For a command that somebody waits for: it may finish what it writes, which is already set aside."""


class WatchedCommand:
    """A sandboxed command. `channel` connects it to its launcher and to wolo."""

    def __init__(self, fields: dict[str, Any], channel: socket.socket, inotify: int, aside: str) -> None:
        self.folders: dict[int, str] = fields["folders"]
        """Path of each watched folder, by its number."""
        self.tops: tuple[str, ...] = fields["tops"]
        """Writable directories: any protected name in them counts."""
        self.below: set[str] = set(fields["below"])
        """Folders in them, such as `.github`, in which some names are protected."""
        self.awaited: set[str] = set(fields["awaited"])
        """Other missing paths."""
        self.covered: dict[str, tuple[int, ...]] = fields["covered"]
        """Paths that mounts hold, and what was there before."""
        self.known: set[str] = set(fields["known"])
        """Protected names at a top that were there before."""
        self.replaced: set[str] = set()
        """Paths that a program outside has replaced: set aside only if they are changed after that."""
        self.allowed: set[str] = set()
        """Paths that wolo itself is about to write."""
        self.is_apart, self.is_job = fields["is_apart"], fields["is_job"]
        self.channel = channel
        self.inotify, self.aside = inotify, aside
        self.leader, self.pidfd, self.has_ended = 0, -1, False
        self.why = self.why_soon = ""
        self.ends_at = 0.0
        self.seized: list[tuple[str, str]] = []
        self.lost: list[str] = []

    def notice(self, number: int, mask: int, name: str) -> None:
        folder = self.folders.get(number)
        if self.is_over:
            return
        if mask & OVERFLOW:
            for path, stamp in list(self.covered.items()):  # nobody knows who wrote what is there now
                if stamp_of(path) != stamp:
                    self.lose(path, "replaced or removed")
                    self.awaited.add(path)
            self.look()
        elif folder is None:
            return
        elif mask & GONE and (folder in self.tops or any(path.rpartition("/")[0] == folder for path in self.awaited)):
            self.end(f"{folder} was moved or removed")
        elif name:
            self.notice_name(f"{folder.rstrip('/')}/{name}", mask)

    def notice_name(self, path: str, mask: int) -> None:
        is_there = mask & (CREATE | MOVED_TO)
        if self.is_allowed(path):
            return
        if path in self.covered and mask & CLOSE_WRITE:
            return  # in place, by a program outside
        if path in self.covered:
            (self.replaced if is_there else self.awaited).add(path)
            self.lose(path, "replaced" if is_there else "removed or moved")
        elif path in self.replaced or (is_there and (path in self.awaited or self.is_at_a_top(path))):
            self.seize(path)
        elif is_there and path.rpartition("/")[0] in self.tops:
            if fold(os.path.basename(path)) in ABOVE and not os.path.islink(path):
                with contextlib.suppress(OSError):
                    self.folders[watch_folder(self.inotify, path)] = path
                    self.below.add(path)
                    self.look_in(path)
            head = f"{path.rpartition('/')[0]}/HEAD"
            if self.is_at_a_top(head):
                self.seize(head)

    @property
    def is_over(self) -> bool:
        """The last look has been taken: what appears now is somebody else's."""
        return self.is_apart and self.has_ended

    def is_at_a_top(self, path: str) -> bool:
        folder = path.rpartition("/")[0]
        if folder not in self.tops and folder not in self.below:
            return False
        is_new_head = folder in self.tops and path not in self.known and makes_repository(path)
        return is_new_head or is_protected(path) or stands_for_folder(path)

    def is_allowed(self, path: str) -> bool:
        return any(each == path or each.startswith(f"{path}/") for each in self.allowed)

    def look(self) -> None:
        """Finds what appeared without an event that could be read."""
        for path in list(self.awaited):
            if os.path.lexists(path) and not self.is_allowed(path):
                self.seize(path)
        for top in self.tops:
            try:
                self.look_in(top)
            except OSError:
                self.lost.append(top)
        for folder in self.below:
            with contextlib.suppress(OSError):
                self.look_in(folder)

    def lose(self, path: str, how: str) -> None:
        del self.covered[path]
        self.known.discard(path)
        self.end(f"{path} was {how} by another program, so the sandbox no longer holds it")

    def look_in(self, folder: str) -> None:
        """Raises OSError."""
        for path in (f"{folder}/{name}" for name in os.listdir(folder)):
            is_old = path in self.known or path in self.replaced or self.is_allowed(path)
            if not is_old and self.is_at_a_top(path):
                self.seize(path)

    def seize(self, path: str) -> None:
        """Sets the path aside: by one rename, within its file system."""
        is_again = any(path == each for each, _ in self.seized)
        name = os.path.basename(path)
        folder = f"{self.aside}/{os.urandom(6).hex()}"
        open_up(path)
        try:
            os.mkdir(folder, 0o700)
            os.rename(path, f"{folder}/{name}")
            self.seized.append((path, f"{folder}/{name}"))
        except FileNotFoundError:
            pass  # already gone
        except OSError:
            # Another file system: made harmless by a name that means nothing, until it can be moved.
            place = f"{os.path.dirname(path)}/.{os.path.basename(folder)}.set-aside"
            try:
                os.rename(path, place)
                self.seized.append((path, place))
            except FileNotFoundError:
                pass
            except OSError:
                self.lost.append(path)
        self.why_soon = f"{path} appeared, which runs code or steers agents"
        if self.is_job or is_again:
            self.end(self.why_soon)
        else:
            self.ends_at = self.ends_at or time.monotonic() + GRACE_S

    def end(self, why: str) -> None:
        if not self.why:
            self.why = why
            self.kill()
        self.report()

    def begin(self, leader: int) -> None:
        """Takes the process id of the launcher, which is about to become the command."""
        self.leader = leader
        if self.is_apart:
            with contextlib.suppress(OSError):  # bubblewrap has a process above the launcher, whose end ends the whole namespace
                fields, own = fields_of(str(leader)), fields_of("self")
                numbers = fields["NSpid"].split()
                if len(numbers) > len(own["NSpid"].split()) and numbers[-1] != "1":
                    self.leader = int(fields["PPid"])
        with contextlib.suppress(OSError):
            self.pidfd = os.pidfd_open(self.leader)
        if self.why:
            self.kill()

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            if self.pidfd >= 0 and not self.is_apart and os.getpgid(self.leader) == self.leader:
                os.killpg(self.leader, signal.SIGKILL)
            if self.pidfd >= 0:
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def report(self, *, is_last: bool = False) -> None:
        report = marshal.dumps((self.why, self.seized[:MOST_REPORTED], self.lost[:MOST_REPORTED], self.has_ended, is_last), 2)
        with contextlib.suppress(OSError):
            self.channel.send(report, socket.MSG_DONTWAIT)

    def finish(self) -> None:
        """Everything it started has ended or is ended here; a last look follows."""
        if self.pidfd >= 0 and self.is_apart and not self.has_ended:
            select.select([self.pidfd], [], [], ENDING_S)
            self.kill()
        if not self.is_over:
            self.look()
        for number, (path, place) in enumerate(self.seized):  # from another file system
            if not place.startswith(self.aside):
                folder = f"{self.aside}/{os.path.basename(place)[1:].partition('.')[0]}"
                try:
                    self.seized[number] = path, shutil.move(place, f"{folder}/{os.path.basename(path)}")
                except (OSError, shutil.Error):
                    self.lost.append(path)

    def close(self) -> None:
        self.channel.close()
        if self.pidfd >= 0:
            os.close(self.pidfd)


def open_up(path: str) -> None:
    """Opens the path, if it is a folder, and the folder around it to their owner: a command may close what holds its files."""
    for folder in (os.path.dirname(path), path):
        with contextlib.suppress(OSError):
            place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                mode = stat.S_IMODE(os.fstat(place).st_mode)
                if mode & stat.S_IRWXU != stat.S_IRWXU:
                    os.chmod(f"/proc/self/fd/{place}", mode | stat.S_IRWXU)
            finally:
                os.close(place)


def fields_of(process: str) -> dict[str, str]:
    with open(f"/proc/{process}/status") as file:
        return dict(line.split(":", 1) for line in file)


class Watcher:
    def __init__(self, control: socket.socket, inotify: int, aside: str) -> None:
        self.control, self.inotify, self.aside = control, inotify, aside
        self.commands: dict[int, WatchedCommand] = {}
        """Commands by the descriptor of their channel."""
        self.poll = select.poll()
        self.poll.register(control, select.POLLIN)

    def serve(self) -> None:
        """Returns when wolo has ended, in any way."""
        while True:
            ends = [command.ends_at for command in self.commands.values() if command.ends_at and not command.why]
            ready = {fd for fd, _ in self.poll.poll(max(min(ends) - time.monotonic(), 0) * 1000 if ends else None)}
            for command in self.commands.values():
                if command.ends_at and not command.why and time.monotonic() >= command.ends_at:
                    command.end(command.why_soon)
            if self.inotify in ready:
                self.read_events()
            if self.control.fileno() in ready and not self.take():
                return
            for fd in ready:
                if fd in self.commands:
                    self.read_message(self.commands[fd])
                else:
                    self.reap(fd)

    def take(self) -> bool:
        """Receives a command that is about to start; False at the end of wolo."""
        data, ancillary, _, _ = self.control.recvmsg(1, socket.CMSG_SPACE(2 * struct.calcsize("i")))
        if not data:
            return False
        payload, channel_fd = struct.unpack("2i", ancillary[0][2])
        with open(payload, "rb") as file:
            fields = marshal.loads(file.read())
        channel = socket.socket(fileno=channel_fd)
        if not self.commands:
            self.poll.register(self.inotify, select.POLLIN)
        self.commands[channel_fd] = WatchedCommand(fields, channel, self.inotify, self.aside)
        self.poll.register(channel_fd, select.POLLIN)
        return True

    def read_message(self, command: WatchedCommand) -> None:
        data, ancillary, _, _ = command.channel.recvmsg(MOST_BYTES, socket.CMSG_SPACE(CREDENTIALS))
        if data == b"r":
            command.begin(struct.unpack("3i", ancillary[0][2])[0])
            if command.pidfd >= 0:
                self.poll.register(command.pidfd, select.POLLIN)
        elif data[:1] == b"k":
            path, why = data[1:].split(b"\0")
            command.allowed.add(os.fsdecode(path))
            command.end(os.fsdecode(why))
        else:
            self.finish(command)

    def reap(self, pidfd: int) -> None:
        """A command has ended: what it made last is set aside before anybody is told of the end."""
        for command in self.commands.values():
            if command.pidfd == pidfd:
                self.poll.unregister(pidfd)
                self.read_events()
                command.look()
                command.has_ended = True
                command.report()

    def finish(self, command: WatchedCommand) -> None:
        command.finish()
        self.read_events()
        fd = command.channel.fileno()
        del self.commands[fd]
        self.poll.unregister(fd)
        if command.pidfd >= 0 and not command.has_ended:
            self.poll.unregister(command.pidfd)
        if not self.commands:
            self.poll.unregister(self.inotify)
        command.report(is_last=True)
        command.close()

    def read_events(self) -> None:
        while True:
            try:
                data = os.read(self.inotify, MOST_BYTES)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                number, mask, _, size = struct.unpack_from("iIII", data, at)
                name = os.fsdecode(data[at + HEAD : at + HEAD + size].rstrip(b"\0"))
                at += HEAD + size
                for command in tuple(self.commands.values()):
                    command.notice(number, mask, name)


def main() -> None:
    control, inotify = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    watcher = Watcher(control, inotify, sys.argv[3])
    watcher.serve()
    watcher.read_events()
    for command in watcher.commands.values():  # wolo has ended: so do its commands, and nothing that they made stays
        command.end("wolo has ended")
    for command in watcher.commands.values():
        command.finish()
    os._exit(0)


main()
