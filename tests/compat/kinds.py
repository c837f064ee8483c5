# SPDX-License-Identifier: Apache-2.0
"""The servers that cases run on. Each kind gives a model repository and arguments, from a folder of
its own and the path of the repository that most tests share."""

import atexit
import pathlib

from harness import models
from harness import server as servers


def shared(_folder, repository):
    return repository, []


def regions(_folder, repository):
    """Clients may share memory, of which there is one page of zeros."""
    shared_object = pathlib.Path("/dev/shm/nereid_compat_regions")
    shared_object.write_bytes(bytes(4096))
    atexit.register(shared_object.unlink, missing_ok=True)
    # The reference has no such flag: it always allows it.
    return repository, [] if servers.REFERENCE else ["--allow-client-shm=true"]


def explicit(folder, _repository):
    """Model control on request; `loaded` is there from the start, `spare` is not, `broken` cannot be."""
    for name in ("loaded", "spare"):
        models.write_model(folder / "models", name, models.identity_config("FP32", [-1]), {"1": {}, "3": {}})
    broken = models.identity_config("FP32", [-1]).replace('"identity"', '"no_such_backend"')
    models.write_model(folder / "models", "broken", broken)
    return folder / "models", ["--model-control-mode=explicit", "--load-model=loaded"]


def poll(folder, _repository):
    models.write_model(folder / "models", "m", models.identity_config("FP32", [-1]))
    return folder / "models", ["--model-control-mode=poll", "--repository-poll-secs=600"]


def restricted(_folder, repository):
    """Every API needs a key of its own, but for health over HTTP, by which tests see that it is up."""
    apis = ["metadata", "inference", "shared-memory", "model-config", "model-repository", "statistics",
            "trace", "logging"]
    args = [f"--http-restricted-api={api}:key-{api}=secret-{api}" for api in apis]
    apis.append("health")
    return repository, args + [f"--grpc-restricted-protocol={api}:key-{api}=secret-{api}" for api in apis]


def settings(folder, repository):
    """For cases that change settings of the whole server."""
    return repository, [f"--trace-config=triton,file={folder}/trace", f"--log-file={folder}/log"]


KINDS = {kind.__name__: kind for kind in (shared, regions, explicit, poll, restricted, settings)}


class Pool:
    """The servers of the kinds that were asked for. make_folder(kind) gives a new folder."""

    def __init__(self, make_folder, repository):
        self.make_folder = make_folder
        self.repository = repository
        self.running = {}

    def get(self, kind):
        """The server of this kind; another one if a case has ended it, as some end the reference."""
        server = self.running.get(kind)
        if server is None or server.process.poll() is not None:
            folder = self.make_folder(kind)
            repository, args = KINDS[kind](folder, self.repository)
            server = self.running[kind] = servers.start(repository, args=args, log_dir=folder)
        return server

    def stop(self):
        """Ends them all; each of ours must still run, and end well."""
        for server in self.running.values():
            if servers.REFERENCE and server.process.poll() is not None:
                continue
            server.stop(check=not servers.REFERENCE)
