# SPDX-License-Identifier: Apache-2.0
"""What docs/scheduling.md promises, as scenarios: a model, requests, and what must come of them.

The only instance of each model is kept busy by a first request, the plug, while the others line up
one by one. Nothing here knows how a server works; driver.py runs a scenario against any server.
"""

import dataclasses
import itertools

FULL = "Exceeds maximum queue size"
EXPIRED = "Request timeout expired"
OK = ""


@dataclasses.dataclass
class Send:
    id: str
    batch: int = 1
    width: int = 2  # elements of the variable dimension
    priority: int = 0
    timeout_us: int = 0
    inputs: int = 1  # of the two, the second of which is optional
    parameter: str = ""


@dataclasses.dataclass
class Scenario:
    sentence: str  # of docs/scheduling.md
    name: str
    batching: str  # the dynamic_batching block, or nothing
    sends: list
    batches: dict  # executed batch size → how often, without the plug
    answers: dict = dataclasses.field(default_factory=dict)  # id → error text; others succeed
    order: list = dataclasses.field(default_factory=list)  # of all answers but the plug's
    before_plug: list = dataclasses.field(default_factory=list)  # answered while the instance is busy
    max_batch_size: int = 8
    instances: int = 1
    busy_ms: int = 3000  # how long every execution takes
    ragged: bool = False
    also: tuple = ()  # further sentences that it shows
    extra: str = ""  # more of the configuration
    byte_limit: int = 0  # of a batch, by a batching library of the model's own
    cancel: list = dataclasses.field(default_factory=list)  # ids to cancel once all wait
    differs: str = ""  # what the reference (2.51) does instead, and why
    hangs_reference: bool = False  # it leaves a request unanswered

    @property
    def model(self):
        return f"{self.sentence}_{self.name}".replace("-", "")


def ones(ids, **options):
    return [Send(i, **options) for i in ids]


def dynamic(text=""):
    return f"dynamic_batching {{ {text} }}"


# A delay so long that only a rule, not time, ends the wait.
LONG = "max_queue_delay_microseconds: 600000000"
SHORT = "max_queue_delay_microseconds: 100000"

# Its batcher forms the next batch while the instance is still busy, and adds to it what comes later.
PREFETCH = "the next batch is begun while the instance is busy and grows beyond a preferred size"
LATE = "timeouts are noticed when the queue is next looked at, so requests leave in queue order"

DYNAMIC = [
    Scenario("F-1", "alone", "", ones("abc"), {1: 3}, order=list("abc"), also=("F-2",)),
    Scenario("F-3", "two_instances", "", ones("ab"), {1: 2}, instances=2),
    Scenario("D-2", "never_split", dynamic(), [Send("a", 3), Send("b", 3), Send("c", 3)], {6: 1, 3: 1}),
    # All of them came after the instance had begun its first batch.
    Scenario("D-3", "takes_what_waits", dynamic(), ones("abcde"), {5: 1}, also=("D-1",)),
    Scenario("D-16", "eager_batching", dynamic(), ones("abcde"), {5: 1},
             extra="optimization { eager_batching: true }"),
    Scenario("D-3", "up_to_the_maximum", dynamic(), ones("abcdefghij"), {8: 1, 2: 1}),
    Scenario("D-4", "largest_preferred", dynamic(f"preferred_batch_size: [2, 4] {LONG}"),
             ones("abcdef"), {4: 1, 2: 1}, differs=PREFETCH + "; the last request waits for ever",
             hangs_reference=True),
    Scenario("D-4", "exact_sizes", dynamic(f"preferred_batch_size: [4] {LONG}"),
             [Send("a", 1), Send("b", 3), Send("c", 4)], {4: 2}, differs=PREFETCH),
    Scenario("D-5", "beyond_preferred", dynamic(f"preferred_batch_size: [4] {LONG}"),
             [Send("a", 3), Send("b", 3), Send("c", 1)], {3: 1, 4: 1}),
    Scenario("D-6", "after_the_delay", dynamic(f"preferred_batch_size: [4] {SHORT}"),
             ones("abcde"), {5: 1}),
    Scenario("D-7", "preferred_is_the_maximum", dynamic(LONG), ones("abcdefgh"), {8: 1}),
    Scenario("D-8", "cannot_grow", dynamic(f"preferred_batch_size: [6] {LONG}"),
             [Send("a", 4), Send("b", 5), Send("c", 8)], {4: 1, 5: 1, 8: 1}),
    Scenario("D-13", "two_instances", dynamic(), ones("abcdefghij"), {8: 1, 2: 1}, instances=2),
    Scenario("D-9", "shapes", dynamic(), [Send("a"), Send("b"), Send("c", width=3), Send("d")],
             {2: 1, 1: 2}, order=list("abcd")),
    Scenario("D-9", "shapes_close_a_wait", dynamic(LONG),
             [Send("a"), Send("b"), Send("c", width=3), Send("d", 8, width=3)], {2: 1, 1: 1, 8: 1}),
    Scenario("D-9", "ragged", dynamic(), [Send("a"), Send("b", width=5), Send("c", width=1)], {3: 1},
             ragged=True),
    Scenario("D-10", "optional_inputs", dynamic(),
             [Send("a"), Send("b"), Send("c", inputs=2), Send("d", inputs=2), Send("e")], {2: 2, 1: 1}),
    Scenario("D-12", "parameters", dynamic(), [Send("a", parameter="x"), Send("b"), Send("c")], {3: 1}),
    Scenario("D-14", "order", dynamic("preserve_ordering: true"), ones("abcdefghij"), {8: 1, 2: 1},
             order=list("abcdefghij")),
    Scenario("D-15", "own_rule", dynamic(), ones("abcde", width=6), {2: 2, 1: 1}, byte_limit=50,
             differs="a batch that grows while the instance is busy is measured from zero each time"),
    Scenario("D-15", "too_large_for_its_own_rule", dynamic(), [Send("a", width=20), Send("b", width=6)],
             {1: 2}, byte_limit=50, hangs_reference=True,
             differs="a request that the batching library refuses as the first of a batch waits for ever"),
    Scenario("Q-1", "levels", dynamic("priority_levels: 3 default_priority_level: 2"),
             [Send("a", priority=3), Send("b"), Send("c", priority=7), Send("d", priority=1)], {1: 4},
             max_batch_size=1, order=list("dbca")),
    Scenario("Q-3", "a_policy_for_one_level",
             dynamic("priority_levels: 2 default_priority_level: 2 priority_queue_policy "
                     "{ key: 1 value { max_queue_size: 1 } }"),
             [Send("a", priority=1), Send("b", priority=1), Send("c"), Send("d")], {1: 3},
             answers={"b": FULL}, order=list("bacd"), before_plug=["b"], max_batch_size=1),
    Scenario("Q-5", "no_timeout", dynamic("default_queue_policy { allow_timeout_override: true }"),
             [Send("a", timeout_us=1), Send("b")], {1: 2}, max_batch_size=1, also=("Q-6",)),
    Scenario("Q-2", "across_levels", dynamic("priority_levels: 2 default_priority_level: 1"),
             [Send("a", priority=2), Send("b", priority=1), Send("c", priority=2)], {3: 1}),
    Scenario("X-1", "cancel_in_the_queue", dynamic(), ones("abc"), {2: 1},
             answers={"b": "Locally cancelled"}, cancel=["b"], before_plug=["b"],
             differs="a request that the next batch has taken in is executed although it was cancelled"),
]


# All requests of a scenario have arrived before the shorter time is over, and the second is sent so soon after
# the first that its shorter time is over sooner, on a machine that does much else, too.
OWN_US, DEFAULT_US = 800_000, 1_900_000


def policies():
    """Every combination of timeout action, override, queue size and priority levels."""
    table = itertools.product(("REJECT", "DELAY"), (False, True), (0, 2), (0, 2))
    for action, override, size, levels in table:
        policy = (f"timeout_action: {action} default_timeout_microseconds: {DEFAULT_US} "
                  f"allow_timeout_override: {str(override).lower()} max_queue_size: {size}")
        text = f"default_queue_policy {{ {policy} }}"
        if levels:
            text += f" priority_levels: {levels} default_priority_level: 1"
        # Three of level 1, of which the second asks for less time and the third for more, and one
        # of level 2.
        sends = [Send("a"), Send("b", timeout_us=OWN_US), Send("c", timeout_us=60_000_000),
                 Send("d", priority=2)]
        yield expect(action, override, size, levels, sends, text)


def expect(action, override, size, levels, sends, text):
    """The specification's own view of what happens, from sentences Q-1 to Q-9."""
    answers, waiting = {}, []
    for send in sends:
        level = send.priority if levels and send.priority else 1
        if size and sum(1 for w in waiting if w[0] == level) >= size:
            answers[send.id] = FULL
            continue
        own = send.timeout_us if override and 0 < send.timeout_us < DEFAULT_US else DEFAULT_US
        waiting.append((level, own, send.id))
    refused = [s.id for s in sends if s.id in answers]
    # By the time the instance is free, everybody's time is over.
    by_expiry = sorted(waiting, key=lambda w: w[1])
    if action == "REJECT":
        answers.update({w[2]: EXPIRED for w in waiting})
        order, batches, before = refused + [w[2] for w in by_expiry], {}, [s.id for s in sends]
    else:
        order = refused + [w[2] for w in sorted(by_expiry, key=lambda w: w[0])]
        batches, before = {1: len(waiting)}, refused
    # The plug has the default timeout and executes for longer than that: Q-9.
    name = f"{action}_{'own' if override else 'default'}_size{size}_levels{levels}".lower()
    return Scenario("Q-7" if action == "REJECT" else "Q-8", name, dynamic(text), sends, batches,
                    answers, order, before, max_batch_size=1,
                    also=("Q-4", "Q-6", "Q-9"), differs=LATE if override else "")


ALL = DYNAMIC + list(policies())
