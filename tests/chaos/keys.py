# SPDX-License-Identifier: Apache-2.0
"""The API keys of a run: clients get new ones while the server runs, as operators do it, with `nereid keys`."""

import subprocess
import time

from harness import server as servers

# A client may have taken a key just before another one replaced it, and have a request on its way for this long.
IN_USE_SECONDS = 120
CLIENT_SCOPES = ("infer", "metadata", "model-control")


class Keys:
    """The file of --api-keys, and the key that clients use at the moment."""

    def __init__(self, folder):
        self.file = folder / "keys.json"
        self._made = 0
        self._replaced = []  # (id, when)
        self._id, self.key = self.add(*CLIENT_SCOPES)

    def headers(self):
        return {"authorization": f"Bearer {self.key}"}

    def add(self, *scopes):
        """A new key; returns its id and itself."""
        self._made += 1
        name = f"key{self._made}"
        key = self._run("add", name, *(f"--scope={scope}" for scope in scopes)).strip().splitlines()[-1]
        return name, key

    def revoke(self, name):
        self._run("revoke", name)

    def replace(self, name, key):
        """Clients use this key from now on; keys that nobody can still use are revoked."""
        self._replaced.append((self._id, time.monotonic()))
        self._id, self.key = name, key
        while self._replaced and time.monotonic() - self._replaced[0][1] > IN_USE_SECONDS:
            self.revoke(self._replaced.pop(0)[0])

    def _run(self, *arguments):
        command = [servers.binary(), "keys", *arguments, "--file", self.file]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
