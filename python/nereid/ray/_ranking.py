# SPDX-License-Identifier: Apache-2.0
"""Which replicas there are, and to which of them a session belongs.

Ray copies the module of a request router, with all that it has, into each process; what this process shall have once
is therefore here.
"""

from __future__ import annotations

import hashlib
from typing import Iterable

# The replicas of each deployment that the routers of this process know, by their tags. Tuples are replaced as a whole,
# so that any thread may look.
_alive: dict[tuple[str, str], tuple[str, ...]] = {}


def publish(deployment: str, app: str, replicas: Iterable[str]) -> None:
    """Says which replicas of a deployment are alive."""
    _alive[deployment, app] = tuple(replicas)


def alive_replicas(deployment: str, app: str) -> tuple[str, ...]:
    """The tags of the replicas of a deployment; none before a handle of this process was first used."""
    return _alive.get((deployment, app), ())


def ranked(session: str, replicas: Iterable[str]) -> list[str]:
    """The replicas, the one first to which a session belongs: its hash together with the session's is the greatest
    (rendezvous hashing). Everybody computes the same, and a replica that comes or goes moves only its own sessions."""

    def weight(replica: str) -> bytes:
        return hashlib.blake2b(f"{session}\0{replica}".encode(), digest_size=8).digest()

    return sorted(replicas, key=weight, reverse=True)
