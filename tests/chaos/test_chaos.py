# SPDX-License-Identifier: Apache-2.0
"""A short chaos run; `./x chaos` is the long one. And that the judges of such runs notice what is wrong."""

import xml.etree.ElementTree

import pytest

from chaos import oracle, plots, records, run, troubles

pytestmark = pytest.mark.newer


@pytest.mark.slow
def test_troubles_lose_and_cross_no_response(require_server):
    report = run.run(seed=16, troubles=25)
    assert report["problems"] == []
    assert report["counts"]["right responses"] > 0
    assert len(report["events"]) >= 25


def test_an_error_is_explained_by_its_trouble_only():
    judge = oracle.Oracle()
    with judge.explains(("is gone",), aftermath=0):
        judge.error("a client", "the model is gone")
        judge.error("a client", "the server is gone mad")
        judge.error("a client", "something else")
    judge.error("a client", "the model is gone")
    assert judge.seen["explained errors"] == 2
    assert [problem.split(" ", 1)[1] for problem in judge.problems] == [
        "a client: something else", "a client: the model is gone"]


def test_the_cause_of_other_problems_comes_first():
    judge = oracle.Oracle()
    judge.error("a client", "connection refused")
    judge.problem("the server ended", is_cause=True)
    assert [problem.split(" ", 1)[1] for problem in judge.problems] == [
        "the server ended", "a client: connection refused"]


def test_a_trouble_explains_its_errors_while_another_of_its_kind_ends():
    judge = oracle.Oracle()
    with judge.explains(("is gone",), aftermath=0):
        with judge.explains(("is gone",), aftermath=0):
            pass
        judge.error("a client", "is gone")
    assert judge.problems == []


def test_a_trouble_that_ends_does_not_shorten_the_aftermath_of_one_before():
    judge = oracle.Oracle()
    with judge.explains(("is gone",), aftermath=1000):
        pass
    with judge.explains(("is gone",), aftermath=0):
        pass
    judge.error("a client", "is gone")
    assert judge.problems == []


def test_a_wrong_response_is_a_problem_and_no_right_one():
    judge = oracle.Oracle()
    judge.response(False, "wrong", 0)
    judge.response(True, "wrong", 0)
    assert judge.seen["right responses"] == 1
    assert len(judge.problems) == 1


def test_a_version_may_answer_until_the_change_that_takes_its_share_has_worked():
    shares = oracle.Shares({"1"})
    first = shares.mark()
    shares.begin({"2"})
    second = shares.mark()
    shares.end({"2"})
    assert [sorted(shares.since(mark)) for mark in (first, second, shares.mark())] == [["1", "2"], ["1", "2"], ["2"]]


def samples(values):
    return [{"seconds": float(number), "resident MB": value, "responses": 5, "descriptors": 40, "threads": 9,
             "workers": 2, "p50 ms": 1.0, "p99 ms": 9.0} for number, value in enumerate(values)]


def test_memory_that_grows_is_a_problem_and_memory_that_settles_or_varies_is_none():
    grows = samples([100 + number for number in range(200)])
    settles = samples([min(100 + 5 * number, 300) for number in range(200)])
    varies = samples([200 + 30 * (number % 7) for number in range(200)])
    assert [len(list(records.complaints(records.trends(found)))) for found in (grows, settles, varies)] == [1, 0, 0]


def test_a_seed_repeats_the_troubles():
    class Nothing:
        oracle = oracle.Oracle()

    class Listed(troubles.Troublemaker):
        def _run(self, trouble):
            self.events.append((type(trouble).__name__, trouble.rng.random()))

    def chosen(seed):
        kinds = {"Reload", "KillWorker", "StopServer", "LoadWhatIsLoaded", "ComeAndGo"}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(troubles, "kinds",
                          lambda: [kind for kind in troubles.Trouble.__subclasses__() if kind.__name__ in kinds])
            maker = Listed(Nothing(), seed)
            for _ in range(50):
                maker.next()
        return sorted(maker.events)

    assert chosen(7) == chosen(7)
    assert chosen(7) != chosen(8)


def test_the_picture_of_a_run_is_svg_with_a_mark_for_each_trouble():
    report = {"kind": "chaos", "seed": 1, "counts": {"right responses": 10}, "problems": [],
              "events": [(1.0, "Reload", 0.5), (3.0, "A & B", 1.0)], "samples": samples([100] * 20)}
    root = xml.etree.ElementTree.fromstring(plots.draw(report))
    assert {title.text for title in root.iter("{http://www.w3.org/2000/svg}title")} == {"Reload, 1 s", "A & B, 3 s"}
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 7
