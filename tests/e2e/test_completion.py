# SPDX-License-Identifier: Apache-2.0
"""Completion by the shells themselves, each on a terminal of its own."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import termios
import time

import pytest
from harness import server as servers

pytestmark = [pytest.mark.newer, pytest.mark.usefixtures("require_server")]

PROMPT = "ready>"
# Escape sequences of terminals, and their bell.
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[()][0AB]|[=>]|\][^\x07]*\x07)|\x07")


def environment(server):
    return {
        "PATH": f"{servers.binary().parent}:{os.environ['PATH']}",
        "HOME": "/nonexistent",
        "TERM": "xterm",
        "LANG": "C.UTF-8",
        "NEREID_URL": f"http://{server.http}",
    }


class Terminal:
    """A shell that somebody types into."""

    def __init__(self, line, server, folder=None):
        self.ours, theirs = pty.openpty()
        # Wide enough for no line to wrap.
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))
        self.process = subprocess.Popen(
            line, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(server),
            start_new_session=True, cwd=folder,
        )  # fmt: skip
        os.close(theirs)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.ours)

    def type(self, text):
        os.write(self.ours, text.encode())

    def read_until(self, wanted):
        """What the terminal shows until the text or pattern appears."""
        shown, deadline = "", time.monotonic() + 30 * servers.SLOWNESS
        while not re.search(wanted, shown):
            assert time.monotonic() < deadline, f"waited in vain for {wanted!r} in {shown!r}"
            if select.select([self.ours], [], [], 1)[0]:
                shown += ESCAPES.sub("", os.read(self.ours, 65536).decode(errors="replace"))
        return shown

    def complete(self, line, wanted):
        """Types the line and asks for its completion until the pattern is shown; then clears it."""
        self.type(line + "\t\t")
        shown = self.read_until(wanted)
        self.type("\x15\n")
        self.read_until(PROMPT)
        return shown


def shell(name):
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def open_terminal(name, server, folder=None):
    path = shell(name)
    if name == "bash":
        opened = Terminal([path, "--noprofile", "--norc", "-i"], server, folder)
        opened.type(f"bind 'set enable-bracketed-paste off'; PS1='{PROMPT[:-1]}''>'; ")
    else:
        opened = Terminal([path, "-f", "-i"], server, folder)
        opened.type(f"PROMPT='{PROMPT[:-1]}''>'; autoload -U compinit; compinit -D -u; ")
    opened.type(f"source <(nereid completion {name})\n")
    opened.read_until(PROMPT)
    return opened


@pytest.fixture(scope="module", params=["bash", "zsh"])
def terminal(request, server):
    opened = open_terminal(request.param, server)
    yield opened
    opened.close()


def test_commands_are_completed(terminal):
    terminal.complete("nereid heal", r"nereid health ")


def test_options_are_completed(terminal):
    terminal.complete("nereid models --rea", r"nereid models --ready")
    terminal.complete("nereid stats --wat", r"nereid stats --watch")


def test_options_are_listed(terminal):
    for option in ("--version", "--random", "--save", "--header"):
        terminal.complete("nereid infer --", re.escape(option))


def test_values_are_completed(terminal):
    terminal.complete("nereid completion fi", r"nereid completion fish")
    terminal.complete("nereid help unl", r"nereid help unload")


def test_models_of_a_running_server_are_completed(terminal):
    terminal.complete("nereid infer id_sl", r"nereid infer id_slow")
    terminal.complete("nereid trace --model id_sl", r"nereid trace --model id_slow")


def test_files_are_completed(terminal):
    terminal.complete("nereid health --ca /etc/passw", r"--ca /etc/passwd")


def test_flags_of_the_server_are_completed(terminal):
    terminal.complete("nereid --model-reposit", r"nereid --model-repository")


@pytest.mark.parametrize(
    "line,wanted",
    [
        ("nereid heal", ["health"]),
        ("nereid models --rea", ["--ready"]),
        ("nereid infer --ran", ["--random"]),
        ("nereid completion b", ["bash"]),
        ("nereid help unl", ["unload"]),
        ("nereid infer id_sl", ["id_slow"]),
        ("nereid trace --model id_sl", ["id_slow"]),
        ("nereid health --ca /etc/passw", ["/etc/passwd"]),
        ("nereid --model-reposit", ["--model-repository"]),
        ("nereid load --model-reposit", []),
    ],
)
def test_fish_completes(server, line, wanted, tmp_path):
    done = subprocess.run(
        [shell("fish"), "--no-config", "-c", "nereid completion fish | source; complete -C $argv[1]", line],
        capture_output=True, text=True, timeout=60 * servers.SLOWNESS,
        env={**environment(server), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.stderr == ""
    found = [one.split("\t")[0] for one in done.stdout.splitlines()]
    assert [one for one in found if one in wanted] == wanted, done.stdout
    if not wanted:
        assert found == []


# Names that a server may have for models, and what somebody types for the beginning of each.
HOSTILE = {
    "$(touch PWNED)": r"\$",
    "`touch PWNED`": r"\`",
    "a;touch PWNED": "a",
    "b|touch PWNED": "b",
    "c d  e": "c",
    'f"g': "f",
    "h'i": "h",
    "k*": "k",
    r"l\m": "l",
    "n!o": "n",
    "ünï": "ü",
}


@pytest.fixture
def hostile_server(empty_repository, start_server):
    """A server with these models, none of which can be loaded."""
    for name in [*HOSTILE, "--dash"]:
        (empty_repository / name).mkdir()
    return start_server(empty_repository, args=["--exit-on-error=false", "--strict-readiness=false"])


@pytest.mark.parametrize("name", ["bash", "zsh"])
def test_names_of_models_are_words_and_never_code(name, hostile_server, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    opened = open_terminal(name, hostile_server, folder)
    try:
        # Prints the last word of the line as the command would get it.
        opened.type('nereid() { [[ $2 == --names ]] && { command nereid "$@"; return; }; printf "%s\\n" "<${@: -1}>"; }\n')
        opened.read_until(PROMPT)
        listed = opened.complete("nereid infer ", "ünï")
        assert "--dash" not in listed
        for model, typed in HOSTILE.items():
            opened.type(f"nereid infer {typed}\t\n")
            opened.read_until(rf"<{re.escape(model)}>[^<]*{PROMPT}")
        opened.type('nereid infer "c\t\n')
        opened.read_until(rf"<c d  e>[^<]*{PROMPT}")
    finally:
        opened.close()
    assert list(folder.iterdir()) == []


def test_fish_offers_names_of_models_as_words(hostile_server, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    done = subprocess.run(
        [shell("fish"), "--no-config", "-c", "nereid completion fish | source; complete -C 'nereid infer '"],
        capture_output=True, text=True, timeout=60 * servers.SLOWNESS, cwd=folder,
        env={**environment(hostile_server), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.stderr == ""
    assert {one.split("\t")[0] for one in done.stdout.splitlines()} == set(HOSTILE)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_scripts_are_valid_and_can_be_had_as_json(server, name, tmp_path):
    script = subprocess.run([servers.binary(), "completion", name], capture_output=True, check=True).stdout
    as_json = subprocess.run(
        [servers.binary(), "completion", name, "--json"], capture_output=True, check=True
    ).stdout
    assert json.loads(as_json) == {"shell": name, "script": script.decode()}
    path = tmp_path / "script"
    path.write_bytes(script)
    checked = subprocess.run([shell(name), "-n", path], capture_output=True, text=True, timeout=60)
    assert (checked.returncode, checked.stderr) == (0, "")
