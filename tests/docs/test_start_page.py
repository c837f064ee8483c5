# SPDX-License-Identifier: Apache-2.0
"""The page "Five minutes" works as it is written: its shell blocks run one after the other, in a network of their own,
so that they have the ports that they name."""

import shlex
import shutil
import subprocess

import pytest
from harness import models
from harness import server as servers
from harness.documents import code_blocks

START = "docs/start.md"
# A terminal that waits for a server, and the one in which it runs.
BEGIN = """set -e
ip link set lo up
served() {
  "$@" >server.log 2>&1 &
  server=$!
  until nereid health --wait 30s >health.log 2>&1; do kill -0 $server || { cat server.log; exit 1; }; done
}
stopped() { kill -INT $server && wait $server; }
"""


def blocks(path):
    return [block for block in code_blocks(path) if block.language in ("bash", "python")]


def of_readme(block):
    """Whether README.md has the block, too; tests/packages/test_first_prediction.py runs it from each package then."""
    return block.text in {other.text for other in blocks("README.md")}


def script():
    """The blocks that are this page's own. A server runs until the next one starts, as the page says."""
    lines, is_running = [BEGIN], False
    for block in blocks(START):
        command = block.text.strip()
        is_server = command.startswith(("nereid serve ", "nereid --model-repository"))
        if is_server:
            lines += ["stopped"] * is_running + [f"served {command}"]
            is_running = True
        elif not of_readme(block):
            assert block.language == "bash", block
            lines.append(command)
    return "\n".join([*lines, "stopped", "echo all done"])


def test_blocks_that_readme_has_are_run_from_each_package():
    shared = [block for block in blocks(START) if of_readme(block)]
    assert any("@nereid.model" in block.text for block in shared)
    assert any("python3 greet.py" in block.text for block in shared)


@pytest.mark.skipif(servers.REFERENCE or servers.is_sanitized(), reason="about the page, as a user runs it")
def test_the_page(onnx, tmp_path):
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rn", "ip", "link"], capture_output=True).returncode:
        pytest.skip("a network of its own needs unshare -rn and ip, which are not there or not allowed")
    models.copy_example(tmp_path, "digits")
    (tmp_path / "digits" / "1" / "model.onnx").rename(tmp_path / "model.onnx")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "nereid"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(str(servers.binary()))} "$@"\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["unshare", "-rn", "bash", "-c", f"PATH={shlex.quote(str(tmp_path / 'bin'))}:$PATH\n{script()}"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.endswith("all done\n"), done.stdout + done.stderr
    # Of the calls: the prediction, the metadata, and a state of health that is good.
    assert "probabilities" in done.stdout and '"platform":"onnxruntime_onnx"' in done.stdout
    assert '"ready":true' in done.stdout
    assert "1 model: 0 errors" in done.stdout
    assert (tmp_path / "models" / "model" / "config.pbtxt").is_file()
