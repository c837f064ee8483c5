# SPDX-License-Identifier: Apache-2.0
"""Which requests an idle instance takes: the rules F and D of docs/scheduling.md, as src/schedule/batch_queue.cc has them,
for requests whose shapes match."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Policy:
    """What a model's configuration says. Without dynamic batching every request runs alone."""

    is_dynamic: bool = False
    max_batch_size: int = 1
    preferred: tuple = ()  # ascending
    delay: float = 0.0  # seconds; max_queue_delay_microseconds

    @property
    def largest_preferred(self):
        return self.preferred[-1] if self.preferred else self.max_batch_size


def decide(policy, queue, now):
    """(requests to take from the front, 0 for none; when to look again, or None).

    `queue` holds requests with `rows` and `queued_at`, the oldest first.
    """
    if not queue:
        return 0, None
    if not policy.is_dynamic:
        return 1, None
    rows = count = best = 0
    is_closed = False
    for request in queue:
        grown = rows + request.rows
        if count > 0:
            if grown > policy.largest_preferred and best == 0:
                best = count
            if grown > policy.max_batch_size:
                is_closed = True
                break
        rows, count = grown, count + 1
        if rows in policy.preferred:
            best = count
    due = queue[0].queued_at + policy.delay
    # The same sum decides here and where the queue is looked at again: rounding must not separate the two.
    is_overdue = policy.delay > 0 and now >= due
    if best > 0 and not is_overdue:
        return best, None
    if is_closed or rows >= policy.largest_preferred or policy.delay == 0 or is_overdue:
        return count, None
    return 0, due
