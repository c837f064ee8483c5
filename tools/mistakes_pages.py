#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the pages about mistakes in repositories (PAGES): every kind that `nereid check` knows, with the texts that
users see, the cause and the cure.

Kinds, causes and cures are those of src/check/kinds.cc. The texts are the literals of the statements that report a kind
(`Findings::AtField`, `ErrorList::Add`); TEXTS has those that the sources put together elsewhere.

usage: tools/mistakes_pages.py
"""

import collections
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "troubleshooting"
KINDS = ROOT / "src" / "check" / "kinds.cc"
FOLDERS = ("src/check", "src/config", "src/schedule")

LITERAL = r'"(?:[^"\\]|\\.)*"'
LITERALS = re.compile(rf"{LITERAL}(?:\s*{LITERAL})*")
COMMENT = re.compile(rf"({LITERAL})|//[^\n]*")
# What stands for a part of a text that differs from case to case.
OPEN = "…"

TENSOR = "model … "
INSTANCES = "instance group … of model …"
READ = "failed to read text proto from …"
# Texts that are put together in other places than the one that names the kind.
TEXTS = {
    "repository-unreadable": [
        "failed to open directory …",
        "failed to stat file …: there is no such model repository",
        "repository path is not a valid directory: …",
    ],
    "folder-name": ["unexpected directory name '…' for model '…', directory name must equal model name"],
    "model-duplicate": ["failed to poll model '…': not unique across all model repositories"],
    "folder-unreadable": ["failed to open directory …: …"],
    "model-file-unreadable": ["failed to open file …: …", "failed to open directory …: …"],
    "config-unreadable": ["failed to open text file for read …: …", "failed to read text file …"],
    "config-misplaced": ["'…' is not read, expected the configuration in '…'."],
    "version-missing": [
        "model '…' has no version folder",
        "at least one version must be available under the version policy of model '…'",
        "There is no version folder in '…': move '…' to '…'.",
        "There is no version folder in '…', expected at least one, such as '…'",
        "There is no version folder in '…', expected at least one, such as '…'; that of an ensemble may be empty, but git "
        "does not keep empty folders",
        "Found the folder … in '…', expected the folder of a version: its name is a number without leading zeros, such as '1'.",
        "'…' is a file, expected the folder of a version.",
    ],
    "version-name": [
        "ignore version directory '…' which contains leading zeros in its directory name",
        "ignore version directory '…' which fails to convert to integral number",
    ],
    "version-none-served": [
        "at least one version must be available under the version policy of model '…'",
        "The policy asks for …, and '…' has ….",
    ],
    "backend-unidentified": [
        "Invalid model name: Could not determine backend for model '…' with no backend in model configuration. "
        "Expected model name of the form 'model.<backend_name>'.",
        "'…' is empty, expected a model file such as 'model.onnx' or 'model.py'.",
        "Found '…' in '…', expected '…': rename it, or write backend: \"…\" and default_model_filename: \"…\" into '…'.",
        "Found … in '…', expected a model file such as 'model.onnx' or 'model.py', or the name of a backend in '…'.",
    ],
    "backend-not-installed": [
        "backend '…' has no library '…', neither in '…' nor in the model's folders",
        "there is no backend '…' in '…'",
        "unable to find backend library for backend '…', try specifying runtime on the model configuration. Searched for "
        "'…' in the model's folder, in its version folder and in '…'; …",
    ],
    "model-file-missing": ["'…' is not in '…'", "unable to find '…' for model instance '…'"],
    "model-file-name": ["'…' is not in '…'", "Rename '…' to '…', or write default_model_filename: \"…\"."],
    "model-files-several": ["there are model files for the backends …; '…' is used"],
    "python-environment": ["Failed to get the canonical path for …."],
    # In words of the server's or the backend's that other pages have.
    "refused": [],
    "load-failed": [],
    "syntax": [READ, "…: found …, expected …", "…: found …, expected at most … levels of nesting"],
    "config-is-json": [READ, "…: found {, expected a field name: this file has protobuf's text format, not JSON"],
    "text-encoding": [READ, "…: found bytes that are not UTF-8, expected UTF-8 text"],
    "field-unknown": [READ, "…: found …, expected a field of …, perhaps '…'"],
    "field-repeated": [READ, "…: found …, expected this field only once"],
    "fields-exclusive": [READ, "…: found …, expected only one of '…' and '…'"],
    "value-unknown": [READ, "…: found …, expected one of …, perhaps '…'", "…: found …, expected … without quotes"],
    "value-type": [
        READ,
        "…: found …, expected a 32-bit integer",
        "…: found …, expected a 32-bit integer >= 0",
        "…: found …, expected a 64-bit integer",
        "…: found …, expected a 64-bit integer >= 0",
        "…: found …, expected a string in quotes",
    ],
    "path-outside": [
        "label file path '…' for output '…' in model '…' is outside model directory",
        "model file path '…' of model '…' is outside model directory",
        "… data file path '…' in model '…' is outside model directory",
        "initial state file '…' of state '…' in model '…' is outside model directory",
        "Batching library path escapes model repository.",
    ],
    "tensor-name": ["model … must specify 'name' for …"],
    "tensor-type": [f"{TENSOR}must specify 'data_type' for …"],
    "tensor-dims": [f"{TENSOR}must specify 'dims' for …"],
    "dims-range": [
        f"{TENSOR}dimension must be integer >= 1, or -1 to indicate a variable-size dimension for …",
        f"{TENSOR}reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension for …",
    ],
    "reshape-empty": [
        f"{TENSOR}cannot have empty reshape for non-batching model as scalar tensors are not supported for …"
    ],
    "reshape-size": [f"{TENSOR}has different size for dims and reshape for …"],
    "reshape-variable": [f"{TENSOR}has different number of variable-size dimensions for dims and reshape for …"],
    "label-file": ["failed to open text file for read …: …", "failed to read text file …", "multiple label files for '…'"],
    "preferred-size-range": [
        "dynamic batching preferred size must be positive for …",
        "dynamic batching preferred size must be <= max batch size for …",
        "sequence batching preferred batch size must be positive for …",
        "sequence batching preferred batch size must be <= max batch size for …",
    ],
    "control-values": [
        "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for …",
        "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' for …",
        "sequence batching control '…' must have exactly 2 entries for …",
    ],
    "state-setting": [
        "state '…' of type … and shape … has no size that could be kept",
        "In order to 'use_growable_memory', you must also enable 'use_single_buffer' for state input name '…'.",
        "initial_state field for state input '…' must contain exactly one or zero element. Found '…' elements.",
        "The data type used for 'initial_state' field of state '…' does not match the state data type.",
        "Field 'name' must be set when using initial_state for state input '…'.",
        "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input '…'. … != …",
        "'initial_state' field for state input name '…' contains variable dimensions.",
        "'initial_state' dim for input name '…' doesn't match 'state' dim description. … != …",
        "initial_state setting expects state '…' to have state_data set",
    ],
    "state-file": [
        "failed to open text file for read …: …",
        "failed to read file …",
        "initial_state setting expects … bytes, but the data provided from … only has … bytes.",
        "initial_state setting expects … elements of type TYPE_STRING for state '…', but the data provided from … is not that",
    ],
    "step-incomplete": ["must specify '…' in step … of ensemble '…'"],
    "ensemble-cycle": [
        "circular dependency between ensembles: … -> ... -> … -> …",
        "ensemble '…' contains ensembles that are nested more than … deep",
    ],
    "ensemble-model-broken": ["ensemble '…' depends on '…' which has no loaded version."],
    "ensemble-model-unknown": ["ensemble … contains models that are not available or ambiguous: …"],
    "ensemble-output-unwritten": [
        "output '…' for ensemble '…' is not written",
        "output '…' for ensemble '…' is not written: at least one of its depending tensors, '…', is not connected",
    ],
    "ensemble-streams": ["in ensemble …, step of model '…' receives inputs originated from different decoupled models"],
    "group-kind": [f"{INSTANCES} has unexpected kind KIND_AUTO"],
    "group-cpu-gpus": [f"{INSTANCES} has kind … but specifies one or more GPUs"],
    "gpu-unavailable": [
        f"{INSTANCES} has kind KIND_GPU but server does not support GPUs",
        f"{INSTANCES} has kind KIND_GPU but no GPUs are available",
        f"{INSTANCES} has kind KIND_GPU but specifies no GPUs",
        f"{INSTANCES} specifies invalid or unsupported gpu id …. GPUs with at least the minimum required CUDA compute "
        "compatibility of … are: …",
    ],
    "group-profile": [
        f"{INSTANCES} and platform … specifies profile field which is only supported for TensorRT models",
        f"{INSTANCES} and platform … specifies invalid profile …. The field should contain the string representation of a "
        "non-negative integer.",
        "profile name must not be empty",
        "unable to parse '…': stoi",
    ],
    "warm-up-data": ["warmup setting expects input '…' to have input_data_type set"],
    "warm-up-file": [
        "warmup setting expects … bytes, but the data provided from … only has … bytes",
        "failed to open text file for read …",
    ],
    "warm-up-input": ["model '…' has no input '…'", "sample '…' lacks input '…'"],
}
# File -> title and parts; a part is the first of its kinds, in the order of src/check/kinds.cc, and its title.
PAGES = {
    "repositories.md": (
        "Mistakes in folders, files and the text of config.pbtxt",
        {"repository-unreadable": "Repositories, folders and files", "syntax": "The text of config.pbtxt"},
    ),
    "configurations.md": (
        "Mistakes in tensors, batches and queues",
        {"platform-unknown": "The model", "tensor-name": "Tensors", "preferred-size-range": "Batching and queues"},
    ),
    "schedulers.md": (
        "Mistakes in sequences, ensembles, instances and warm-up",
        {
            "control-name": "Sequences",
            "ensemble-platform": "Ensembles",
            "instances-limit": "Instances",
            "warm-up-limit": "Warm-up",
            "parameter-unknown": "Settings of the backend",
        },
    ),
}
HEAD = """# {title}

<!-- This page is written by tools/mistakes_pages.py. -->

What `nereid check` ([check.md](../check.md)) and the server say, why, and what to do. `…` stands for what differs from case to
case: names, numbers, paths. Warnings and notes come from the command only.
[All pages](../troubleshooting.md#by-subject)
"""


def joined(literals):
    """The text of adjacent literals."""
    text = "".join(one[1:-1] for one in re.findall(LITERAL, literals or ""))
    return text.replace('\\"', '"').replace("\\n", " ")


def without_comments(path):
    return COMMENT.sub(lambda match: match[1] or "", path.read_text())


def kinds():
    """(code, severity, what is wrong, what to do) of every kind."""
    row = re.compile(rf"\{{({LITERAL}),\s*k(\w+),\s*((?:{LITERAL}\s*)+)(?:,\s*((?:{LITERAL}\s*)+))?\}}")
    for match in row.finditer(without_comments(KINDS)):
        yield joined(match[1]), match[2].lower(), joined(match[3]), joined(match[4])


def shown(text):
    """A text with OPEN in place of what differs, one for what follows another at once."""
    text = re.sub(r"\{[\w:.]*\}", OPEN, text)
    return re.sub(rf"{OPEN}{OPEN}+", OPEN, text).strip()


def reported(codes):
    """code -> texts, of the statements that name a code beside a literal text."""
    found = collections.defaultdict(list)
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).glob("*.cc")):
            if path == KINDS or re.search(r"_(test|fuzz|bench)\.cc$", path.name):
                continue
            text = without_comments(path)
            for match in re.finditer(LITERAL, text):
                code = match[0][1:-1]
                if code not in codes:
                    continue
                begin = max(text.rfind(mark, 0, match.start()) for mark in (";", "{\n", "}\n"))
                # The text of an error comes before what was found and expected.
                literals = [joined(one[0]) for one in LITERALS.finditer(text[begin + 1 : text.find(";", match.end())])]
                sentence = next((one for one in literals if one.count(" ") >= 2), None)
                if sentence and shown(sentence) not in found[code]:
                    found[code].append(shown(sentence))
    return found


def section(code, severity, what, advice, texts):
    yield f"### {code}\n"
    if texts:
        yield "```text\n" + "\n".join(texts) + "\n```\n"
    yield f"{what}{'' if severity == 'error' else f' This is a {severity}: the model is loaded.'}\n"
    if advice:
        yield f"**What to do:** {advice}\n"
    if not texts:
        yield "The text is in [loading a model](../troubleshooting.md#loading-a-model) or [backends](backends.md).\n"


def pages():
    """File name -> text of each page."""
    rows = list(kinds())
    found = reported({row[0] for row in rows})
    parts = {code: (name, part) for name, (_, titles) in PAGES.items() for code, part in titles.items()}
    lines = {name: [HEAD.format(title=title)] for name, (title, _) in PAGES.items()}
    name = None
    for code, severity, what, advice in rows:
        if code in parts:
            name, part = parts[code]
            lines[name].append(f"## {part}\n")
        texts = TEXTS[code] if code in TEXTS else found[code]
        if not texts and code not in TEXTS:
            raise SystemExit(f"no text is known for {code}: add it to TEXTS")
        lines[name] += section(code, severity, what, advice, texts)
    return {name: "\n".join(page).rstrip() + "\n" for name, page in lines.items()}


def main():
    for name, text in pages().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
