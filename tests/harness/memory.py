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


def check_cycles(server, client, model, ask, count=200):
    """Loads and unloads `model` again and again, with a request by `ask` each time: afterwards, the server is as large
    as after the 20th time, within 5 %."""
    # The sanitizers keep what was freed; their own check finds what was not.
    count = 22 if servers.is_sanitized() else count
    before = 0
    for number in range(count):
        client.load_model(model)
        ask()
        client.unload_model(model)
        servers.wait_until(lambda: not client.is_model_ready(model), "the model to be gone")
        if number == 19:
            before = at_rest(server)
    after = at_rest(server)
    assert servers.is_sanitized() or after < 1.05 * before, f"{before} bytes after 20 times, {after} after {count}"
