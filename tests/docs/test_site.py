# SPDX-License-Identifier: Apache-2.0
"""The documentation as a site: it is built without a warning, and needs no other host."""

import re
import subprocess

import pytest
from harness.documents import ROOT

PYTHON = ROOT / ".deps" / "site" / "bin" / "python"
# What a browser fetches by itself.
FETCHED = re.compile(r"""<(?:script|img|iframe|link(?! rel="(?:canonical|next|prev)"))[^>]*(?:src|href)="(https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if not PYTHON.exists():
        pytest.skip("the generator is not installed: ./x docs, or tools/setup --docs")
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [PYTHON, ROOT / "tools/site/build.py", "--to", folder], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return folder


def test_pages_need_no_other_host(site):
    found = [str(path.relative_to(site)) for path in site.rglob("*.html") if FETCHED.search(path.read_text())]
    assert found == []


def test_the_search_finds_an_error_text(site):
    index = (site / "search" / "search_index.json").read_text()
    assert "must be integer &gt;= 1, or -1 to indicate a variable-size dimension" in index


def test_configurations_have_colours(site):
    """The highlighter has no such language of its own; without it, they would be plain text and no warning."""
    assert '<span class="na">max_batch_size</span>' in (site / "docs" / "configuration.html").read_text()
