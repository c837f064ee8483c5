# SPDX-License-Identifier: Apache-2.0
"""One run: a server, load, troubles, records, and the end under load."""

import json
import pathlib
import time

# Kinds of clients are known once they are read.
from chaos import oracle, other_clients, plots, records, slow_clients  # noqa: F401
from chaos.clients import Load
from chaos.troubles import Troublemaker
from chaos.world import world as new_world


def run(kind="chaos", seed=1, minutes=None, troubles=None, only=None, say=lambda text: None):
    """Runs `kind` ("chaos", or "soak" without troubles) for some minutes, or until there were that many troubles;
    returns its report."""
    with new_world(seed) as world:
        say(f"seed {seed}: {json.dumps(world.describe())}")
        report = _run(world, kind, seed, minutes, troubles, only, say)
    return report


def _run(world, kind, seed, minutes, troubles, only, say):
    judge = world.oracle
    seconds = (minutes or 0) * 60
    load = Load(world, seed)
    recorder = records.Recorder(world, min(10.0, max(0.5, seconds / 400)))
    maker = Troublemaker(world, seed, only)
    began, done, next_word, told = time.monotonic(), 0, 60, 0

    def is_over():
        is_enough = troubles is not None and done >= troubles
        return is_enough or (minutes is not None and time.monotonic() - began > seconds)

    while not is_over() and world.server.process.poll() is None:
        if kind == "chaos":
            maker.next()
            done += 1
        else:
            time.sleep(0.5)
        for problem in judge.problems[told:]:
            say(f"PROBLEM {problem}")
            told += 1
        if time.monotonic() - began > next_word:
            next_word += 60
            say(f"{(time.monotonic() - began) / 60:.0f} min: {judge.seen['right responses']:,} right responses, "
                f"{judge.seen['explained errors']:,} explained errors, {len(judge.problems)} problems")
    recorder.stop()
    took = None
    if world.server.process.poll() is None:
        with judge.explains(oracle.MODELS_GO + oracle.WORKERS_DIE):
            world.everything_works()
            with judge.explains(oracle.SERVER_ENDS + oracle.WORKERS_DIE + oracle.MODELS_GO):
                took = world.end()
                load.stop()
    else:
        judge.problem(f"the server ended by itself with status {world.server.process.poll()}: {world.last_words()}",
                      is_cause=True)
        with judge.explains(oracle.SERVER_ENDS):
            load.stop()
    trends = records.trends(recorder.samples)
    if minutes and minutes >= 5:
        judge.problems += records.complaints(trends)
    if not judge.seen["right responses"]:
        judge.problem("there was no right response")
    return {
        "kind": kind, "seed": seed, "minutes": round((time.monotonic() - began) / 60, 2), "world": world.describe(),
        "counts": dict(sorted(judge.seen.items())), "problems": judge.problems,
        "seconds to the end after SIGTERM": took and round(took, 2), "trends": trends,
        "events": maker.events, "samples": recorder.samples,
    }


def write(report, folder):
    """Writes the report as JSON and as a picture; returns the paths."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{report['kind']}-{report['seed']}"
    (folder / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n")
    (folder / f"{name}.svg").write_text(plots.draw(report))
    return [folder / f"{name}.json", folder / f"{name}.svg"]
