"""A workspace with something worth attacking around it, and a table of attacks, each judged by what is true afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.end_to_end.waiting import wait_for
from tests.unprivileged import NOBODY
from wolo.guard.sandbox.bubblewrap import Bubblewrap, Namespaces, find_binary, find_launcher
from wolo.guard.sandbox.landlock_sandbox import Landlock
from wolo.guard.sandbox.profile import SandboxProfile, profile_for
from wolo.guard.sandbox_contract import Sandbox

SECRET = "sesame-opens-it"
PATIENT_TRIES = 20
"""More than the product's: other tests make and remove the sockets that a sandbox hides, all the time."""


@contextmanager
def land(user: str = "ordinary user") -> Iterator[Path]:
    """A directory of that user's that is not in `/tmp`, which commands have of their own."""
    above = "/srv" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_dir
    folder = Path(tempfile.mkdtemp(prefix="wolo-test-", dir=above)).resolve()
    if os.getuid() == 0 and user != "root":
        os.chown(folder, NOBODY, NOBODY)
    try:
        yield folder
    finally:
        for each in (folder, *folder.rglob("*")):
            if each.is_dir() and not each.is_symlink():
                each.chmod(0o700)
        shutil.rmtree(folder)


def can_read(path: Path) -> bool:
    try:
        return bool(path.read_bytes())
    except PermissionError:
        return False


@dataclass
class Ground:
    """What is attacked. Use it as a context manager."""

    folder: Path
    stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Ground:
        for name in (
            "work/.git/hooks",
            "work/sub/.git/hooks",
            "work/deep/repo/.git",
            "work/place/refs",
            "outside",
            "home/.ssh",
            "own/data",
            "own/state",
            "other/deep",
        ):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for name in ("work/.git/config", "work/sub/.git/config", "work/place/config", "work/AGENTS.md", "outside/kept"):
            (self.folder / name).write_text("kept\n")
        (self.work / ".git" / "config").write_text("[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../team.inc\n")
        for name in ("home/.ssh/id_rsa", "home/.netrc", "own/data/wolo.db", "other/.env", "other/deep/server.key"):
            (self.folder / name).write_text(SECRET)
        (self.work / "tree").mkdir(exist_ok=True)
        (self.work / "tree" / ".git").write_text("gitdir: ../place\n")
        self.tcp = self._listen(socket.AF_INET, ("127.0.0.1", 0))
        self.tcp6 = self._listen(socket.AF_INET6, ("::1", 0)) if socket.has_ipv6 and Path("/proc/net/if_inet6").exists() else None
        self.udp = self._listen(socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM)
        self.abstract = f"wolo-test-{os.urandom(6).hex()}"
        self._abstract = self._listen(socket.AF_UNIX, f"\0{self.abstract}")
        self._path_socket = self._listen(socket.AF_UNIX, str(self.folder / "outside" / "s"))
        self.victim = self.stack.enter_context(
            subprocess.Popen(["sleep", "60"], env={"PATH": os.environ["PATH"], "TOLD": SECRET}, start_new_session=True)
        )
        self.stack.callback(self.victim.kill)
        wait_for(lambda: can_read(Path(f"/proc/{self.victim.pid}/environ")))  # not yet right after its start
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def profile(self) -> SandboxProfile:
        own = (self.folder / "own" / "data", self.folder / "own" / "state")
        return profile_for((self.work,), own, own[1], home=self.folder / "home")

    def run(self, command: str, walls: Sandbox | None) -> subprocess.CompletedProcess[str]:
        """Once more where a socket that was to be hidden went away meanwhile: other tests make some."""
        for _ in range(PATIENT_TRIES):
            done, has_begun = self._run_once(command, walls)
            if has_begun:
                break
        return done

    def _run_once(self, command: str, walls: Sandbox | None) -> tuple[subprocess.CompletedProcess[str], bool]:
        argv: tuple[str, ...] = ("bash", "--noprofile", "--norc", "-c", self.spelled(command))
        enclosed = walls.wrap(argv, self.work) if walls else None
        try:
            done = subprocess.run(
                enclosed.argv if enclosed else argv,
                pass_fds=enclosed.pass_fds if enclosed else (),
                cwd=self.work,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=90,
                check=False,
            )
            return done, enclosed is None or enclosed.has_begun()
        finally:
            if enclosed:
                enclosed.cleanup()

    def spelled(self, command: str) -> str:
        names = {
            "OUT": str(self.folder / "outside"),
            "HOME": str(self.folder / "home"),
            "OWN": str(self.folder / "own"),
            "TCP": str(self.tcp.getsockname()[1]),
            "TCP6": str(self.tcp6.getsockname()[1] if self.tcp6 else 1),
            "UDP": str(self.udp.getsockname()[1]),
            "ABSTRACT": self.abstract,
            "VICTIM": str(self.victim.pid),
            "PYTHON": any_python(),
        }
        return "; ".join([*(f"{name}='{value}'" for name, value in names.items()), command])

    def text(self, path: str) -> str:
        place = self.folder / path
        return place.read_text() if place.is_file() else ""

    def was_called(self) -> bool:
        """Somebody reached a listener outside."""
        for listener in filter(None, (self.tcp, self.tcp6, self._abstract, self._path_socket)):
            try:
                listener.accept()[0].close()
            except BlockingIOError:
                continue
            return True
        try:
            return bool(self.udp.recv(16))
        except BlockingIOError:
            return False

    def _listen(self, family: int, address: object, kind: int = socket.SOCK_STREAM) -> socket.socket:
        listener = self.stack.enter_context(socket.socket(family, kind))
        listener.setblocking(False)
        listener.bind(address)  # type: ignore[arg-type]  # of the kind that the family has
        if kind == socket.SOCK_STREAM:
            listener.listen(4)
        return listener


@dataclass(frozen=True)
class Attack:
    name: str
    command: str
    succeeded: Callable[[Ground], bool]
    beyond: tuple[str, ...] = ()
    """Backends that say they do not cover this."""


def _written(name: str, path: str, command: str = "") -> Attack:
    """Something was written to `path` that was not there."""
    command = command or f"mkdir -p {Path(path).parent} && echo planted >> {path}"
    return Attack(name, command, lambda ground: "planted" in ground.text(f"work/{path}"))


def _called(name: str, command: str) -> Attack:
    return Attack(name, command, Ground.was_called)


def _python(code: str) -> str:
    return f'"$PYTHON" -I -S -c "{code}" "$TCP" "$UDP" "$ABSTRACT" "$OUT" "$VICTIM"'


def _stolen(name: str, command: str) -> Attack:
    return Attack(name, f"{command} > loot", lambda ground: SECRET in ground.text("work/loot"))


ATTACKS = (
    Attack("a new file outside", "echo planted > $OUT/new", lambda ground: bool(ground.text("outside/new"))),
    Attack("a file outside", "echo planted > $OUT/kept", lambda ground: "kept" not in ground.text("outside/kept")),
    Attack("removal outside", "rm $OUT/kept", lambda ground: not ground.text("outside/kept")),
    Attack(
        "a mode outside",
        "chmod 777 $OUT/kept",
        lambda ground: (ground.folder / "outside" / "kept").stat().st_mode & 0o777 == 0o777,
        ("landlock",),
    ),
    Attack(
        "a second name for a file outside",
        "ln $OUT/kept mine && echo planted > mine",
        lambda ground: "planted" in ground.text("outside/kept"),
    ),
    Attack("through a link", "ln -s $OUT out && echo planted > out/new", lambda ground: bool(ground.text("outside/new"))),
    Attack("through ..", "echo planted > ../outside/new", lambda ground: bool(ground.text("outside/new"))),
    Attack("through /proc", "echo planted > /proc/self/cwd/../outside/new", lambda ground: bool(ground.text("outside/new"))),
    Attack("the home directory", "echo planted > $HOME/.profile", lambda ground: bool(ground.text("home/.profile"))),
    _written("a git hook", ".git/hooks/pre-commit"),
    _written("git's settings", ".git/config"),
    _written("git's settings, by git's directory being moved", "gone/config", "mv .git gone && echo planted >> gone/config"),
    _written("a new .git", ".git/config", "rm -rf .git; mkdir .git && echo planted > .git/config"),
    _written("a nested repository", "sub/.git/hooks/post-checkout"),
    Attack(
        "another repository in the place of one",
        "mv deep deeper && mkdir -p deep/repo/.git && echo planted > deep/repo/.git/config",
        lambda ground: "planted" in ground.text("work/deep/repo/.git/config"),
    ),
    _written("hooks where git is told to look for them", "tools/hooks/pre-commit"),
    _written("settings that git is told to read", "team.inc"),
    _written("where a .git file points", "place/config"),
    _written("a .git file", "tree/.git"),
    _written("AGENTS.md", "AGENTS.md"),
    _written("AGENTS.md, replaced", "AGENTS.md", "echo planted > x && mv x AGENTS.md"),
    *(
        _written(f"a missing {path}", path)
        for path in (".wolo/config.toml", ".agents/x", ".vscode/tasks.json", ".cursor/rules", ".envrc", ".bashrc", ".mcp.json")
    ),
    Attack("a link for .wolo", "ln -s $OUT .wolo", lambda ground: (ground.work / ".wolo").is_symlink()),
    _written("a new nested repository", "new/.git/config"),
    _written(
        "a new nested repository, by its name",
        "new/.git/config",
        "mkdir -p new/x && echo planted > new/x/config && mv new/x new/.git",
    ),
    _written("settings further down", "sub/.vscode/tasks.json"),
    _written(
        "a program behind a link that is followed",
        "other/.git/config",
        "mkdir -p other && ln -s ../place other/.git && echo planted > place/config",
    ),
    _stolen("a key", "cat $HOME/.ssh/id_rsa"),
    _stolen("a password", "cat $HOME/.netrc"),
    _stolen("a key through a link", "ln -s $HOME/.ssh k; cat k/id_rsa"),
    _stolen(
        "a key through what the first process has open",
        "for root in /proc/self/root /proc/1/fd/*; do cat $root/$HOME/.ssh/id_rsa; done",
    ),
    Attack(
        "removal through what the first process has open",
        "for root in /proc/self/root /proc/1/fd/*; do rm $root/$OUT/kept; done",
        lambda ground: not ground.text("outside/kept"),
    ),
    _stolen("wolo's sessions", "cat $OWN/data/wolo.db"),
    _stolen("another project's passwords", "cat ../other/.env"),
    _stolen("another project's key", "cat ../other/deep/server.key"),
    _stolen("another process's environment", r"tr '\0' '\n' < /proc/$VICTIM/environ"),
    _called("TCP", _python("import socket,sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])))")),
    _called("TCP by bash", "echo x > /dev/tcp/127.0.0.1/$TCP"),
    _called("IPv6", "echo x > /dev/tcp/::1/$TCP6"),
    _called("UDP", "echo x > /dev/udp/127.0.0.1/$UDP"),
    _called("an abstract socket", _python("import socket,sys; socket.socket(1, 1).connect('\\0' + sys.argv[3])")),
    _called("a socket in the file tree", _python("import socket,sys; socket.socket(1, 1).connect(sys.argv[4] + '/s')")),
    Attack("a signal", "kill -9 $VICTIM; sleep 0.1", lambda ground: ground.victim.poll() is not None),
    Attack(
        "tracing",
        _python(
            "import ctypes,sys; assert not ctypes.CDLL(None).ptrace(16, int(sys.argv[5]), 0, 0); open('traced', 'w').write('x')"
        ),
        lambda ground: bool(ground.text("work/traced")),
    ),
)


def any_python() -> str:
    """One that this user may start: the one of the tests may lie in another's home."""
    own = os.path.realpath(sys.executable)
    return own if os.access(own, os.X_OK) else "/usr/bin/python3"


CHOSEN = "namespaces" if find_launcher([]) else "bubblewrap"
"""The backend of a machine that has all of them."""


def put_up(backend: str, profile: SandboxProfile) -> Sandbox:
    if backend == "landlock":
        return Landlock(profile)
    if backend in ("namespaces", "compiled"):
        return Namespaces(profile, launcher=find_launcher(profile.writable) if backend == "compiled" else "")
    return Bubblewrap(find_binary(profile.writable), profile)
