# SPDX-License-Identifier: Apache-2.0
"""The manual pages nereid(1) and tritonserver(1), from what the program itself says of its flags, and what shells
read to complete its commands."""

import gzip
import re
import subprocess
import time

import archive

HEAD = """.TH NEREID 1 "{date}" "nereid {version}" "User Commands"
.SH NAME
nereid \\- inference server compatible with NVIDIA Triton
.SH SYNOPSIS
.B nereid
.BI \\-\\-model\\-repository= FOLDER
.RI [ flags ]
.SH DESCRIPTION
Loads the models of a repository and serves predictions over HTTP (port 8000) and gRPC (port 8001), with metrics
on port 8002. Models, clients, backends and flags are those of NVIDIA Triton Inference Server;
.B tritonserver
is another name of the program.
"""

TAIL = """.SH COMMANDS
With the name of a command as its first argument,
.B nereid
does something else than serve, such as asking a running server.
.B nereid help
lists the commands.
.SH SIGNALS
SIGTERM and SIGINT stop the server: requests in flight are finished first. SIGHUP opens the log file again.
.SH EXIT STATUS
0 after a stop by a signal; 1, with the reason on standard error, if the server could not start or did not stop
in time.
.SH ENVIRONMENT
.TP
.B NOTIFY_SOCKET, WATCHDOG_USEC
Set by systemd for services of Type=notify: the server reports when its models are ready, when it stops, and, as
long as it answers, that it is alive.
.SH FILES
.TP
.I /etc/nereid/nereid.conf
The flags of nereid.service.
.TP
.I /var/lib/nereid/models
The models that nereid.service serves.
.SH SEE ALSO
.I /usr/share/doc/nereid
"""


def escaped(text):
    return re.sub(r"^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"))


def page(usage, version):
    """The page in roff. `usage` is what `nereid --help` prints."""
    date = time.strftime("%Y-%m-%d", time.gmtime(archive.epoch()))
    lines = [HEAD.format(date=date, version=version).rstrip()]
    for line in usage.splitlines()[1:]:
        if line.endswith(":") and not line.startswith(" "):
            lines.append(f".SH {escaped(line[:-1]).upper()}")
        elif line.startswith("  --"):
            flag, _, value = line.strip().partition(" ")
            lines += [".TP", f"\\fB{escaped(flag)}\\fR" + (f" {escaped(value)}" if value else "")]
        elif line.strip():
            lines.append(escaped(line.strip()))
    return "\n".join(lines) + "\n" + TAIL


def write(folder, program, version):
    """Puts the pages, compressed, into folder/man1."""
    usage = subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout
    man1 = folder / "man1"
    man1.mkdir(parents=True, exist_ok=True)
    for name, text in (("nereid", page(usage, version)), ("tritonserver", ".so man1/nereid.1\n")):
        (man1 / f"{name}.1.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


# Where the shells of distributions look, below share/.
COMPLETIONS = {
    "bash": "bash-completion/completions/nereid",
    "zsh": "zsh/vendor-completions/_nereid",
    "fish": "fish/vendor_completions.d/nereid.fish",
}


def write_completions(share, program):
    for shell, place in COMPLETIONS.items():
        done = subprocess.run([program, "completion", shell], check=True, capture_output=True)
        target = share / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(done.stdout)
