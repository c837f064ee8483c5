# SPDX-License-Identifier: Apache-2.0
"""Cold loads of real replicas from a bucket whose bandwidth is limited, to compare cold.py with."""

import concurrent.futures
import contextlib
import os
import threading
import time

import models
from process import Server, Side

BYTES = 40_000_000
BANDWIDTH = 20_000_000  # bytes a second, for all replicas together
PIECE = 1 << 15
SLACK = 0.05


def _s3():
    """The module of tests/harness that runs an S3 server on a folder."""
    models.tests()
    from harness import s3

    return s3


def slow_proxy(port):
    """Stands between the replicas and the bucket's server, and passes answers on at BANDWIDTH in all."""

    class Slow(_s3().Proxy):
        def __init__(self):
            self._turn, self._free_at = threading.Lock(), 0.0
            super().__init__(port)

        def _answer(self, upstream, client):
            with contextlib.suppress(OSError):
                while data := upstream.recv(PIECE):
                    with self._turn:
                        # The link is busy with pieces of others until it is free. What a sleep took too long is made up for.
                        self._free_at = max(self._free_at, time.monotonic() - SLACK) + len(data) / BANDWIDTH
                        passes_at = self._free_at
                    time.sleep(max(passes_at - time.monotonic(), 0))
                    client.sendall(data)
            self._end(client, upstream)

    return Slow()


def cold_loads(side, folder, counts=(1, 3)):
    """{replicas: seconds until each was ready, ascending}, each with a cache of its own that is empty."""
    s3 = _s3()
    folder.mkdir()
    bucket = folder / "buckets" / "bucket"
    models.write(bucket, "large", models.IDENTITY.format(batch=0, extra=""), [("weights", os.urandom(BYTES))])
    found = {}
    with s3.running(folder / "buckets", folder / "s3.log") as server:
        proxy = slow_proxy(server.port)

        def start(name):
            """Seconds until a replica with the cache of this name was ready; the replica ends."""
            own = Side(side.name, side.binary, side.backends, env=s3.environment(folder / name, folder))
            replica = Server(own, server.url("bucket", proxy.port), os.sched_getaffinity(0), folder / f"{name}.log")
            replica.stop()
            return replica.ready_seconds

        try:
            for count in counts:
                with concurrent.futures.ThreadPoolExecutor(count) as pool:
                    found[str(count)] = sorted(pool.map(start, [f"cache{count}_{number}" for number in range(count)]))
        finally:
            proxy.close()
    return found
