# SPDX-License-Identifier: Apache-2.0
"""What a server costs that nobody uses: its threads sleep until somebody does."""

import pathlib
import platform

import pytest
from harness import server as servers

pytestmark = pytest.mark.newer

# epoll_wait and epoll_pwait, whose fourth argument is for how long; -1 is for ever.
EPOLL_WAITS = [232, 281] if platform.machine() == "x86_64" else [22]
FOR_EVER = 0xFFFFFFFF


def reactors(server):
    """The threads that serve connections, as folders of /proc."""
    tasks = pathlib.Path(f"/proc/{server.pid}/task").iterdir()
    return [task for task in tasks if (task / "comm").read_text().startswith("nereid-net")]


def waits_for_events_alone(task):
    """Whether the thread is in a wait for events that no time ends."""
    call, *arguments = (task / "syscall").read_text().split()
    if call == "running" or int(call) not in EPOLL_WAITS:
        return False
    return int(arguments[3], 16) & 0xFFFFFFFF == FOR_EVER


def test_reactors_without_connections_sleep_until_one_comes(require_server, repository_path):
    with servers.running(repository_path) as server:
        threads = reactors(server)
        assert threads
        try:
            (threads[0] / "syscall").read_text()
        except OSError as error:
            pytest.skip(f"what threads wait for cannot be seen here: {error}")
        # The connections that asked whether the server is ready are closed soon.
        servers.wait_until(lambda: all(map(waits_for_events_alone, threads)), "reactors to sleep")
        assert server.is_ready()
