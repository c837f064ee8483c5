# SPDX-License-Identifier: Apache-2.0
"""What models that were unloaded leave in the memory of the server."""

import time

from harness import server as servers

# The server gives up a pooled buffer when two of its looks, two seconds apart, have found it unused, and its allocator
# gives free memory back after another second.
REST = 6.0


def at_rest(server):
    """The resident bytes once nothing more is given back to the system."""
    least = server.resident_bytes()
    since = time.monotonic()
    end = since + 60
    while time.monotonic() < min(since + REST, end):
        time.sleep(0.05)
        now = server.resident_bytes()
        if now < least:
            least, since = now, time.monotonic()
    return least


def check_cycles(server, client, asks, count=200):
    """Loads and unloads models again and again, with a request each time: afterwards, the server is as large as after
    the 20th time, within 5 %. `asks` has the function that sends it for the name of each model."""
    # The sanitizers keep what was freed; their own check finds what was not.
    count = 22 if servers.is_sanitized() else count

    def cycle(times):
        for model, ask in asks.items():
            for _ in range(times):
                client.load_model(model)
                ask()
                client.unload_model(model)
                servers.wait_until(lambda model=model: not client.is_model_ready(model), "the model to be gone")
        return at_rest(server)

    before = cycle(20)
    after = cycle(count - 20)
    assert servers.is_sanitized() or after < 1.05 * before, f"{before} bytes after 20 times, {after} after {count}"
