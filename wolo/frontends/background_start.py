"""Starts the server of sessions in the background, where none runs."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

from wolo import __version__
from wolo.config.files import lock_folder
from wolo.errors import WoloError
from wolo.frontends.background_sessions import FOLDER, BackgroundSession
from wolo.frontends.running_servers import RunningServer, running_servers
from wolo.places import find_home, find_places

END_IDLE_S = 60


def background_server() -> RunningServer:
    """The one that runs, else a new one, which ends by itself. Raises WoloError."""
    places = find_places()
    with lock_folder(places.data / FOLDER):
        servers = [each for each in running_servers(places.data) if each.ends_idle and each.version == __version__]
        if servers:
            return servers[0]
        argv = [sys.executable, "-P", "-m", "wolo", "serve", "--end-idle", str(END_IDLE_S)]
        try:
            process = subprocess.Popen(
                argv,
                cwd=find_home(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise WoloError(f"The server of the background cannot be started: {error.strerror}.") from error
        assert process.stdout is not None
        with process.stdout:
            process.stdout.readline()  # its address, once it is listed
        process.returncode = 0  # it outlives this process
        for each in running_servers(places.data):
            if each.pid == process.pid:
                return each
    raise WoloError("The server of the background has ended at once.", hint="`wolo serve` shows why.")


def server_of(session: BackgroundSession) -> RunningServer:
    """That of the session, as long as it runs. Raises WoloError."""
    with suppress(StopIteration):
        return next(each for each in running_servers(find_places().data) if each.port == session.port)
    return background_server()
