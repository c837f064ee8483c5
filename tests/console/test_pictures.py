# SPDX-License-Identifier: Apache-2.0
"""What people look at besides the console, in the same browser: reports, plots, pages of the documentation."""

import functools
import http.server
import os
import subprocess
import threading

import pytest
from chaos import plots
from harness import browser, models
from harness import server as servers

pytestmark = [pytest.mark.newer, pytest.mark.usefixtures("require_server")]

SITE = servers.ROOT / "tools" / "site" / "build.py"
SITE_PYTHON = servers.ROOT / ".deps" / "site" / "bin" / "python"
DIGITS = models.EXAMPLES / "digits"
LOAD = ["--requests", "40", "--rounds", "2", "--warmup", "10ms", "--concurrency", "1,2,4,8"]


@pytest.fixture(autouse=True)
def tools():
    browser.require()


def make(*args):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NEREID_")}
    command = [servers.binary(), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, (done.stdout, done.stderr)


class Files(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        # Browsers ask for it by themselves, and a report is one file.
        if self.path == "/favicon.ico":
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, *_):
        pass


def look(folder, *paths):
    """Opens files of the folder in the browser, as a web server gives them."""
    handler = functools.partial(Files, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            browser.run("pictures.mjs", f"http://127.0.0.1:{server.server_port}", PICTURES=" ".join(paths))
        finally:
            server.shutdown()


def test_the_report_of_a_load(tmp_path):
    if not servers.has_backend("onnxruntime"):
        pytest.skip("the build has no ONNX Runtime")
    model = DIGITS / "1" / "model.onnx"
    make("bench", model, *LOAD, "--save", tmp_path / "before.json")
    make("bench", model, *LOAD, "--compare", tmp_path / "before.json", "--html", tmp_path / "bench.html")
    look(tmp_path, "bench.html")


def test_the_report_of_tuning(tmp_path):
    if not servers.has_backend("onnxruntime"):
        pytest.skip("the build has no ONNX Runtime")
    repository = tmp_path / "models"
    models.copy_example(repository, "digits")
    make("tune", repository / "digits", "--p99", "10s", "--budget", "3s", "--max-concurrency", "4", "--html", tmp_path / "tune.html")
    look(tmp_path, "tune.html")


def run_of_chaos():
    """A report such as a run writes, of ten minutes."""
    samples = [
        {"seconds": 5 * i, "responses": 2000 + 150 * (i % 7), "resident MB": 110 + 0.1 * i + 9 * (i % 5 == 0),
         "p50 ms": 1.2 + 0.1 * (i % 3), "p99 ms": 14 + 160 * (i % 11 == 0), "descriptors": 60 + i % 9,
         "threads": 31 + 4 * (i % 13 == 0), "workers": 3 - (i % 17 == 0)}
        for i in range(1, 121)
    ]  # fmt: skip
    events = [(7.0 * i, ("Reload", "KillWorker", "StopServer")[i % 3], 1.0 + i % 4) for i in range(1, 80)]
    return {"kind": "chaos", "seed": 1, "counts": {"right responses": 294000}, "problems": [], "events": events, "samples": samples}


def test_the_plot_of_chaos_and_those_of_the_documents(tmp_path):
    found = {path.stem: path.read_text() for path in sorted((servers.ROOT / "docs").glob("*/*.svg"))}
    for name, plot in {"run": plots.draw(run_of_chaos()), **found}.items():
        head = f'<meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>{name}</title>'
        (tmp_path / f"{name}.html").write_text(f'<!DOCTYPE html><html lang="en">{head}<main><h1>{name}</h1>{plot}</main></html>')
    look(tmp_path, *(path.name for path in tmp_path.glob("*.html")))


def test_pages_of_the_documentation(tmp_path):
    if not SITE_PYTHON.exists():
        pytest.skip("the generator is not installed: ./x docs, or tools/setup --docs")
    done = subprocess.run([SITE_PYTHON, SITE, "--to", tmp_path / "site"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    # Text and code; tables and plots.
    look(tmp_path, "site/docs/start.html", "site/docs/reliability.html")
