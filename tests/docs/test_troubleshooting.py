# SPDX-License-Identifier: Apache-2.0
"""Whoever sees an error of `nereid check` or of loading a model finds its text in the pages about troubleshooting."""

import json
import re
import sys

from harness import models
from harness import server as servers
from harness.documents import ROOT

sys.path.append(str(ROOT / "tools"))

import mistakes_pages  # noqa: E402

FIRST = ROOT / "docs" / "troubleshooting.md"
PAGES = [FIRST, *sorted((ROOT / "docs" / "troubleshooting").glob("*.md"))]

# The sources that load models, or a part of the way there.
LOADING = """
src/config src/repository src/core/sequence_states.cc
src/check/backend_rules.cc src/check/batching_rules.cc src/check/check.cc src/check/data_rules.cc
src/check/ensemble_rules.cc src/check/folder_rules.cc src/check/isolation_rules.cc src/check/tensor_rules.cc
src/engine/ensemble_order.cc src/engine/life_cycle.cc src/engine/load_attempt.cc src/engine/load_limits.cc
src/engine/model_control.cc src/engine/model_loader.cc src/engine/model_parameters.cc src/engine/model_plan.cc
src/engine/model_table.cc src/engine/traffic_check.cc src/engine/traffic_rules.cc src/engine/warm_up.cc
src/schedule/ensemble_check.cc src/schedule/ensemble_plan.cc src/schedule/rate_limiter.cc src/schedule/sequence_plan.cc
src/plugins/backend_host/backend_libraries.cc src/plugins/backend_host/backend_library.cc
src/plugins/backend_host/backend_model.cc src/plugins/backend_host/batch_strategy.cc
src/plugins/backend_host/framework.cc src/plugins/backend_host/instance_plan.cc
src/plugins/repoagent_host/agents.cc src/plugins/repoagent_host/agent_library.cc agents
src/object_store src/s3 src/gcs src/azure
backends/onnxruntime backends/python backends/pytorch backends/openvino backends/tensorflow backends/tensorrt
backends/caffe2 backends/isolation
""".split()
# Of these, what is no source of errors of a load: executions, trials of batches, the log, code in other languages.
OTHERS = re.compile(
    r"""_(test|fuzz|bench)\.cc$ | /(testing|test_plugin|maker)/
    | /(execution|gathering|scattering|plan_maker|session_runner|batch_trial|pending|open_requests|infer\w*|run|results
      | instance|service|encode|input_rules|processor|held_stderr|framework|mailboxes)\.cc$""",
    re.X,
)
# A statement that writes into the log, or that begins with what is no text of an error.
LOGGED = re.compile(r"\b\w*(Log|LOG)\w*\(|\.(found|expected|suggestion) =")
# Fixed words that are no error: a part of what is expected or advised, a text of the log, something between models and
# their workers.
NO_ERRORS = {
    "any backend can be named in 'backend", "the end of the file", "levels of nesting", "a path inside the model's folder",
    "Did you mean", "absolute paths, separated by colons", "executions to warm up", "bytes to warm up", "true' or 'false",
    "a tensor of the model", "an entry with key", "No such file",
    "was updated; a further value needs a new state", "was updated already", "is updated without a buffer for its value",
    "is not a valid state name", "max_batch_size: set to", "max_batch_size in its configuration would decide otherwise",
    "); max_batch_size in its configuration would decide otherwise", "it is not batched", "default-max-batch-size is 0",
    "the configuration lists all dimensions of", "not all first dimensions are variable",
    "the file's layouts call the first dimensions the batch",
    "the file's layouts call the first dimensions the batch, but the model cannot have another number of rows",
    "dimensions in the configuration are", "the first one", "the model has a state that it changes, so it is not tried out",
    "a call was cut short", "it exited with status 0", "which lacks the batch dimension; it is passed on as it is",
    "the batch dimension first", "too much is in use", "Shared memory has no name here and grows as needed",
    "as in input", "Optimized execution is", "Inference Mode is",
    "save a TorchScript model: torch.jit.script(model).save('model.pt')", "failed to map segment",
    "a valid token", "a number >= 0 in quotes", "a tensor that the steps compute", "change the instances of",
    "Adding default backend config setting", "Found overwritten default setting", "&& text.back() ==", "for a user",
    "compile the model: torch._inductor.aoti_compile_and_package(torch.export.export(model, examples), package_path='model.pt2')",
    "{ name: \"INPUT__", "the shapes of model",
    "of this version of OpenVINO does not have it", "the names of all blobs that the network reads",
}  # fmt: skip


def plain(text):
    return re.sub(r"\s+", " ", text)


def sources():
    for name in LOADING:
        path = ROOT / name
        for file in sorted(path.rglob("*.cc")) if path.is_dir() else [path]:
            if not OTHERS.search(str(file)):
                yield file


def texts(file):
    """(line, fixed words) of the literals that a source puts into errors."""
    text = mistakes_pages.without_comments(file)
    # In these the text of an error comes first in a statement, and what was found and expected follows it.
    is_first_only = {"config", "schedule"} & set(file.relative_to(ROOT).parts)
    seen = set()
    for match in mistakes_pages.LITERALS.finditer(text):
        literal = mistakes_pages.shown(mistakes_pages.joined(match[0]))
        begin = max(text.rfind(mark, 0, match.start()) for mark in (";", "{\n", "}\n"))
        if literal.count(" ") < 2 or LOGGED.search(text[begin + 1 : match.start()]):
            continue
        if is_first_only and begin in seen:
            continue
        seen.add(begin)
        for words in literal.split(mistakes_pages.OPEN):
            words = plain(words).strip(" .,:;'")
            if words.count(" ") >= 2 and words not in NO_ERRORS:
                yield text.count("\n", 0, match.start()) + 1, words


def test_every_error_of_loading_is_explained():
    pages = plain(" ".join(page.read_text() for page in PAGES))
    found = [(file, line, words) for file in sources() for line, words in texts(file)]
    assert len(found) > 500
    missing = [f"{file.relative_to(ROOT)}:{line}: {words}" for file, line, words in found if words not in pages]
    assert not missing, "\n".join(["add them to a page in docs/troubleshooting, with cause and cure:", *missing])


def test_what_is_no_error_is_still_said():
    """Words that no source has any more are taken off the list."""
    everything = plain(" ".join(mistakes_pages.shown(mistakes_pages.joined(match[0])) for file in sources()
                                for match in mistakes_pages.LITERALS.finditer(mistakes_pages.without_comments(file))))  # fmt: skip
    assert [words for words in NO_ERRORS if words not in everything] == []


def test_every_kind_of_mistake_has_a_section_with_cause_and_cure(require_server):
    kinds = json.loads(servers.run_to_end(["check", "--kinds", "--json"]).stdout)
    assert len(kinds) > 100
    sections = {
        section.split("\n", 1)[0]: section for page in PAGES for section in page.read_text().split("\n### ")
    }
    for kind in kinds:
        section = sections[kind["code"]]
        assert kind["what"] in section and kind["advice"] in section, kind["code"]


def tensors(more):
    """A configuration with one input and one output, and more."""
    tensor = 'name: "T" data_type: TYPE_FP32 dims: [ 1 ]'
    return f'backend: "identity" max_batch_size: 4 input [ {{ {tensor} }} ] output [ {{ {tensor} }} ] {more}'


# Configurations with as many mistakes as one may have.
WRONG = {
    "tensors": """backend: "identity" input [ { name: "A" data_type: TYPE_FP32 dims: [ 0 ] } ]
        output [ { name: "B" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ 2 ] } } ]""",
    "incomplete": 'backend: "identity" max_batch_size: -1 input [ { dims: [ 1 ] } ] output [ { name: "B" } ]',
    "text": 'backend: "identity" max_batch: 4 platform: 3 instance_group [ { count: "x" } ]',
    "json": '{ "backend": "identity" }',
    "batches": tensors("""dynamic_batching { preferred_batch_size: [ 0, 9 ] priority_levels: 2 preserve_ordering: true
        default_priority_level: 7 max_queue_delay_microseconds: 900000 }"""),
    "sequences": tensors("""sequence_batching { direct { minimum_slot_utilization: 3 } control_input [
        { name: "" control [ { kind: CONTROL_SEQUENCE_START } ] },
        { name: "X" control [ { kind: CONTROL_SEQUENCE_CORRID int32_false_true: [ 0, 1 ] } ] } ] }"""),
    "instances": tensors("""instance_group [ { count: 5000 kind: KIND_CPU gpus: [ 1 ] }, { kind: KIND_GPU } ]
        response_cache { enable: true } parameters { key: "execute_delay_ms" value: { string_value: "soon" } }
        model_warmup [ { name: "s" batch_size: 1 inputs { key: "T" value { data_type: TYPE_FP32 dims: [ -1 ] } } } ]"""),
    "ensemble": """platform: "ensemble" input [ { name: "I" data_type: TYPE_FP32 dims: [ 1 ] } ]
        output [ { name: "O" data_type: TYPE_FP32 dims: [ 1 ] } ] ensemble_scheduling { step [
        { model_name: "nowhere" model_version: -1 input_map { key: "A" value: "I" } output_map { key: "B" value: "O" } },
        { model_name: "instances" } ] }""",
    "nothing": "",
}  # fmt: skip


def test_what_check_says_stands_in_the_section_of_its_kind(require_server, tmp_path):
    for name, config in WRONG.items():
        models.write_model(tmp_path, name, config)
    arguments = ["check", tmp_path, "--json", "--backend-directory", servers.backends()]
    findings = json.loads(servers.run_to_end(arguments).stdout)["findings"]
    assert len({finding["code"] for finding in findings}) > 25
    sections = {
        section.split("\n", 1)[0]: "".join(re.findall(r"(?s)```text\n(.*?)```", section))
        for page in PAGES for section in page.read_text().split("\n### ")
    }  # fmt: skip
    for finding in findings:
        lines = [line.strip(".") for line in sections[finding["code"]].splitlines()]
        patterns = [".*".join(map(re.escape, line.split(mistakes_pages.OPEN))) for line in lines]
        # A mistake in the text has a field in front, or none.
        patterns += [pattern.removeprefix(".*" + re.escape(": ")) for pattern in patterns]
        assert any(re.search(pattern, finding["message"], re.S) for pattern in patterns), finding


def test_pages_are_reached_from_the_first():
    assert [page.name for page in PAGES[1:] if f"(troubleshooting/{page.name})" not in FIRST.read_text()] == []
