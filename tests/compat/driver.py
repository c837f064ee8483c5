# SPDX-License-Identifier: Apache-2.0
"""Runs scenarios against a server and notes what came of each."""

import concurrent.futures
import dataclasses
import shutil
import threading
import time

import numpy as np
import tritonclient.grpc as grpcclient

from compat import scenarios
from compat.scenarios import Send
from harness import models
from harness import server as servers


@dataclasses.dataclass
class Outcome:
    answers: dict = dataclasses.field(default_factory=dict)  # id → error text, "" for a success
    order: list = dataclasses.field(default_factory=list)  # ids as their answers came, the plug too
    moments: dict = dataclasses.field(default_factory=dict)  # when they came, by id
    batches: dict = dataclasses.field(default_factory=dict)


def config(scenario):
    ragged = "allow_ragged_batch: true" if scenario.ragged else ""
    return f"""backend: "identity"
max_batch_size: {scenario.max_batch_size}
input [
  {models.tensor_config("INPUT0", "FP32", [-1], ragged)},
  {models.tensor_config("INPUT1", "FP32", [1], "optional: true")}
]
output [
  {models.tensor_config("OUTPUT0", "FP32", [-1])},
  {models.tensor_config("OUTPUT1", "FP32", [1])}
]
instance_group [ {{ kind: KIND_CPU count: {scenario.instances} }} ]
parameters [
  {{ key: "execute_delay_ms" value {{ string_value: "{scenario.busy_ms}" }} }},
  {{ key: "MAX_BATCH_BYTES" value {{ string_value: "{scenario.byte_limit}" }} }}
]
{scenario.batching}
{scenario.extra}
"""


class Gauge:
    """The number of waiting requests of each model, read again and again by one thread."""

    def __init__(self, server):
        self.server = server
        self.values = {}
        self.reads = 0
        self.changed = threading.Condition()
        self.ended = False
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        while not self.ended:
            try:
                values = self.server.scrape()
            except OSError:  # some servers are ready before their metrics are
                continue
            finally:
                time.sleep(0.02)
            with self.changed:
                self.values = values
                self.reads += 1
                self.changed.notify_all()

    def wait_until(self, condition, what, timeout=60, is_fresh=True):
        """Until the condition holds for numbers that were read after this call, or for any if they need not be fresh."""
        with self.changed:
            first = self.reads + 2 if is_fresh else 0
            done = self.changed.wait_for(
                lambda: self.reads >= first and condition(self.values), timeout * servers.SLOWNESS)
        assert done, f"waited in vain for {what}"

    def close(self):
        self.ended = True
        self.thread.join()


class Run:
    """One scenario on one server."""

    library = grpcclient

    def __init__(self, scenario, server, gauge):
        self.scenario = scenario
        self.gauge = gauge
        self.client = self.connect(server)
        self.outcome = Outcome()
        self.changed = threading.Condition()
        self.calls = {}

    def connect(self, server):
        return grpcclient.InferenceServerClient(server.grpc)

    def answered(self, send_id):
        def callback(result, error):
            with self.changed:
                self.outcome.answers[send_id] = "" if error is None else error.message()
                self.outcome.order.append(send_id)
                self.outcome.moments[send_id] = time.monotonic()
                self.changed.notify_all()

        return callback

    def inputs(self, send):
        """What the request carries, made with the client's library."""
        inputs = [self.library.InferInput("INPUT0", [send.batch, send.width], "FP32")]
        inputs[0].set_data_from_numpy(np.zeros((send.batch, send.width), np.float32))
        if send.inputs > 1:
            inputs.append(self.library.InferInput("INPUT1", [send.batch, 1], "FP32"))
            inputs[1].set_data_from_numpy(np.zeros((send.batch, 1), np.float32))
        return inputs

    @staticmethod
    def options(send):
        return {
            "request_id": send.id, "priority": send.priority, "timeout": send.timeout_us or None,
            "parameters": {"note": send.parameter} if send.parameter else None,
        }  # fmt: skip

    def send(self, send):
        self.calls[send.id] = self.client.async_infer(
            self.scenario.model, self.inputs(send), self.answered(send.id), **self.options(send))
        # On the same connection: once this is answered, the request has arrived.
        self.client.is_server_live()

    def statistics(self):
        return self.client.get_inference_statistics(self.scenario.model, as_json=True)

    def waiting(self, values):
        return values.get(("nv_inference_pending_request_count", self.scenario.model), 0)

    def plug(self, plugs):
        for plug in plugs:
            self.send(plug)
            # Else the next one may join its batch, and an instance is left without a plug.
            self.gauge.wait_until(lambda v: self.waiting(v) == 0, f"the plug of {self.scenario.model}")

    def line_up(self):
        for count, send in enumerate(self.scenario.sends, 1):
            self.send(send)
            # The reference answers on other threads than those that queue. Here, what came earlier on a
            # connection is in its queue by now, and a look at the metrics would take a part of the timeouts.
            if servers.REFERENCE:
                self.gauge.wait_until(
                    lambda v: self.waiting(v) + self.done_count() >= count,
                    f"{send.id} of {self.scenario.model} to wait")

    def done_count(self):
        sent = {send.id for send in self.scenario.sends}
        return sum(1 for answered in list(self.outcome.answers) if answered in sent)

    def finish(self, plugs):
        expected = len(self.scenario.sends) + plugs
        with self.changed:
            done = self.changed.wait_for(lambda: len(self.outcome.answers) == expected,
                                         120 * servers.SLOWNESS)
        assert done, f"{self.scenario.model}: answered are only {self.outcome.answers}"
        for entry in self.statistics()["model_stats"][0].get("batch_stats", []):
            size = int(entry["batch_size"])
            self.outcome.batches[size] = int(entry["compute_infer"]["count"])
        size = self.plug_batch()
        self.outcome.batches[size] = self.outcome.batches.get(size, 0) - plugs
        if self.outcome.batches[size] == 0:
            del self.outcome.batches[size]

    def plug_batch(self):
        """Large enough not to wait for others where the model has a long delay."""
        return self.scenario.max_batch_size if scenarios.LONG in self.scenario.batching else 1

    def run(self):
        # Width 9 matches no other request, so a plug never shares a batch.
        plugs = [Send(f"plug{i}", self.plug_batch(), width=9, priority=1)
                 for i in range(self.scenario.instances)]
        self.plug(plugs)
        self.line_up()
        for send_id in self.scenario.cancel:
            self.calls[send_id].cancel()
        self.finish(len(plugs))
        self.client.close()
        return self.outcome


class RunBehind(Run):
    """One through a balancer, of which no later answer on the same connection tells that a request has arrived."""

    def plug(self, plugs):
        for count, plug in enumerate(plugs, 1):
            self.send(plug)
            self.gauge.wait_until(
                lambda v, count=count: self.in_flight(v) >= count and self.waiting(v) == 0,
                f"the plug of {self.scenario.model}")

    def line_up(self):
        # Requests may overtake each other in the balancer, and most outcomes depend on their order. Where timeouts make
        # the outcome, a look at the metrics takes a part of them, so only those for which a full queue counts wait.
        has_timeouts = "default_timeout_microseconds" in self.scenario.batching
        if has_timeouts and scenarios.FULL not in self.scenario.answers.values():
            return super().line_up()
        for count, send in enumerate(self.scenario.sends, 1 + self.scenario.instances):
            self.send(send)
            self.gauge.wait_until(
                lambda v, count=count: self.in_flight(v) + self.done_count() >= count,
                f"{send.id} of {self.scenario.model} to arrive", is_fresh=False)

    def in_flight(self, values):
        return values.get(("nereid_model_requests_in_flight", self.scenario.model), 0)


def write(cases, folder):
    """The models of the scenarios."""
    for scenario in cases:
        model = models.write_model(folder, scenario.model, config(scenario))
        if scenario.byte_limit:
            library = servers.build_folder() / "tests" / "compat" / "strategy" / "batchstrategy.so"
            shutil.copy(library, model / "batchstrategy.so")


def run_on(server, cases, run):
    """{model: Outcome} of the scenarios, run side by side on a server that has their models."""
    gauge = Gauge(server)
    try:
        with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
            runs = {s.model: pool.submit(run(s, server, gauge).run) for s in cases}
        return {model: one.exception() or one.result() for model, one in runs.items()}
    finally:
        gauge.close()


def run_all(cases, start, folder, run=Run):
    """{model: Outcome} of all scenarios, run side by side on one server, which `start` starts."""
    write(cases, folder)
    return run_on(start(folder), cases, run)


def bursts(scenario, outcome):
    """The ids of the answers, without the plug's, in lists of those that came together. The client calls back for these
    in any order, whatever their order on the wire, which e2e/test_concurrency.py checks."""
    found, last = [], 0
    for send_id in outcome.order:
        if send_id.startswith("plug"):
            continue
        moment = outcome.moments[send_id]
        # The next batch takes the instance that long.
        if not found or moment - last > scenario.busy_ms / 2000:
            found.append([])
        found[-1].append(send_id)
        last = moment
    return found


def check(scenario, outcome, has_order=True):
    """Asserts that the outcome is the one that the scenario foretells. Without `has_order`, answers may overtake each
    other on their way, as through a balancer, which passes them on by several connections."""
    if isinstance(outcome, Exception):
        raise outcome
    answers = {i: text for i, text in outcome.answers.items() if not i.startswith("plug")}
    assert set(answers) == {send.id for send in scenario.sends}
    for send_id, text in answers.items():
        expected = scenario.answers.get(send_id, scenarios.OK)
        assert (expected in text) if expected else (text == ""), f"{send_id}: {text!r}"
    assert outcome.batches == scenario.batches
    if scenario.order and has_order:
        expected = iter(scenario.order)
        for burst in bursts(scenario, outcome):
            assert sorted(burst) == sorted(next(expected) for _ in burst), outcome.order
    plug_at = outcome.order.index("plug0")
    assert set(scenario.before_plug) == set(outcome.order[:plug_at]) & set(answers)
