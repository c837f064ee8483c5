# SPDX-License-Identifier: Apache-2.0
"""bench/peers: each server's files can be loaded, ours are really served and answered rightly, and the document
gets what was measured. The other servers are not installed for this."""

import ast
import json
import os
import pathlib
import subprocess
import sys

import pytest
from harness import server as servers

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "bench" / "peers"
sys.path[:0] = [str(PEERS), str(ROOT / "bench")]

import catalogue  # noqa: E402
import page  # noqa: E402
import workloads  # noqa: E402

FOLDERS = [
    pytest.param(peer, workload, id=f"{peer.name}-{workload.name}")
    for peer in catalogue.PEERS + catalogue.BY_NAME
    for workload in workloads.WORKLOADS
]


@pytest.mark.parametrize(("peer", "workload"), FOLDERS)
def test_a_servers_files_can_be_read_and_its_command_is_one_of_sh(peer, workload):
    folder = peer.folder(workload)
    subprocess.run(["sh", "-n", folder / "start"], check=True)
    for path in folder.rglob("*.py"):
        ast.parse(path.read_text(), path)
    for path in folder.rglob("*.json"):
        json.loads(path.read_text())


@pytest.mark.parametrize("peer", [peer for peer in catalogue.PEERS + catalogue.BY_NAME if peer.package], ids=lambda peer: peer.name)
def test_packages_are_pinned_and_compute_with_the_same_onnx_runtime(peer):
    lines = peer.requirements.read_text().split()
    assert all("==" in line for line in lines)
    assert any(line.startswith(f"{peer.package}==") for line in lines)
    ours = (ROOT / "tools" / "requirements.txt").read_text().split()
    (runtime,) = [line for line in ours if line.startswith("onnxruntime==")]
    assert runtime in lines


def test_lines_are_counted_without_comments_and_empty_ones(tmp_path):
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "config").write_text("one\n\n  # why\n  two\n")
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "start").write_text("# why\nexec it\n")
    (tmp_path / "user" / "models").symlink_to("../linked")
    assert catalogue.lines_written(tmp_path / "user") == 3


@pytest.fixture(scope="module")
def measured(require_server, tmp_path_factory):
    """The file of a light run of ours alone."""
    if servers.is_sanitized() or not (servers.has_backend("onnxruntime") and servers.has_backend("python")):
        pytest.skip("what is measured is the optimised build with both backends")
    file = tmp_path_factory.mktemp("peers") / "results.json"
    command = [sys.executable, PEERS / "run", "--only", "nereid", "--rounds", "1", "--seconds", "0.5", "--warmup", "0"]
    command += ["--server", servers.binary(), "--backends", servers.backends(), "--json", file]
    command += ["--tools", servers.build_folder() / "bench"]
    env = {**os.environ, "NEREID_BENCH_PYTHON": "1"}
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=env, timeout=600)
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(file.read_text())


def test_our_own_entry_is_served_with_each_workload_in_each_form(measured):
    for workload in workloads.WORKLOADS:
        (sample,) = measured["samples"][workload.name]["nereid"]
        assert set(sample["loads"]) == set(workload.forms)
        for loads in sample["loads"].values():
            assert set(loads) == {"1", "16", "64"}
            assert all(load["per_second"] > 0 and load["cpu_us"] > 0 for load in loads.values())


def test_tables_and_plot_go_into_the_document_between_its_markers(measured, tmp_path):
    document = tmp_path / "performance.md"
    document.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    for _ in range(2):
        page.write(measured, document)
    text = document.read_text()
    assert text.startswith(f"before\n{page.BEGIN}\n") and text.endswith(f"\n{page.END}\nafter\n")
    assert "old" not in text and "### An ONNX model, JSON" in text and "| Nereid" in text
    assert (tmp_path / "performance" / page.PLOT).read_text().startswith("<svg")


def test_the_document_says_where_another_server_is_ahead():
    def sample(rate, cpu):
        load = {"per_second": rate, "p50_us": 1e6 / rate, "p99_us": 2e6 / rate, "cpu_us": cpu}
        return {"start_ms": 100, "memory_mb": 20, "loads": {"JSON": {str(clients): load for clients in (1, 16, 64)}}}

    lines = {"nereid": 4, "litserve": 19}
    content = {
        "samples": {"onnx": {"nereid": [sample(900, 20)], "litserve": [sample(400, 10)]}},
        "lines": {"onnx": lines, "function": lines},
    }
    behind = page.not_first(content)
    assert len(behind) == 3 and all("CPU" in line and "LitServe 10.0, Nereid 20.0" in line for line in behind)
