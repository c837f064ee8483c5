# SPDX-License-Identifier: Apache-2.0
"""What the server takes, over time: memory, descriptors, threads, and how long its responses take."""

import threading
import time

import numpy as np
import psutil

# A growth that is less than this is no growth: allocators, tables and caches settle for a while.
MIN_GROWTH_MEGABYTES = 24
MIN_GROWTH_COUNT = 12


class Recorder:
    """Samples a running server from a thread of its own."""

    def __init__(self, world, seconds):
        self._world, self._seconds = world, seconds
        self._over = threading.Event()
        self._began = time.monotonic()
        self.samples = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._over.set()
        self._thread.join()

    def _run(self):
        while not self._over.wait(self._seconds):
            try:
                self.samples.append(self._sample())
            except psutil.Error:
                return

    def _sample(self):
        server = psutil.Process(self._world.server.pid)
        workers = self._world.workers()
        latencies = self._world.oracle.take_latencies()
        sample = {
            "seconds": round(time.monotonic() - self._began, 2),
            "resident MB": server.memory_info().rss / 1e6,
            "descriptors": server.num_fds(),
            "threads": server.num_threads(),
            "workers": len(workers),
            "responses": len(latencies),
        }
        if latencies:
            for name, share in (("p50 ms", 50), ("p99 ms", 99), ("worst ms", 100)):
                sample[name] = float(np.percentile(latencies, share)) * 1000
        return sample


def growth(samples, what):
    """By how much the line through the second half of the samples rises, and how far they are from it."""
    half = [sample for sample in samples if what in sample][len(samples) // 2:]
    if len(half) < 8:
        return None
    seconds = np.array([sample["seconds"] for sample in half])
    values = np.array([sample[what] for sample in half])
    slope, start = np.polyfit(seconds, values, 1)
    noise = float(np.std(values - (slope * seconds + start)))
    return {"rise": float(slope * (seconds[-1] - seconds[0])), "noise": noise, "mean": float(values.mean()),
            "per hour": float(slope * 3600)}


def trends(samples):
    """The growths that are judged, by name."""
    found = {what: growth(samples, what) for what in ("resident MB", "descriptors", "threads")}
    return {what: trend for what, trend in found.items() if trend is not None}


def complaints(trends_found):
    """Sentences about what grew more than noise explains."""
    for what, trend in trends_found.items():
        least = MIN_GROWTH_MEGABYTES if what == "resident MB" else MIN_GROWTH_COUNT
        if trend["rise"] > max(least, 3 * trend["noise"], 0.1 * trend["mean"]):
            yield f"{what} grew by {trend['rise']:.1f} in the second half of the run (noise {trend['noise']:.1f})"
