# SPDX-License-Identifier: Apache-2.0
"""What documents link to is there: files, folders and headings of the repository."""

import pytest
from harness.documents import ROOT, anchors, documents, pages


@pytest.mark.parametrize("path", documents(), ids=str)
def test_links(path):
    broken = []
    for target, anchor in pages.links((ROOT / path).read_text()):
        if pages.is_outside(target):
            continue
        # A ValueError is a link that leads out of the repository.
        found = pages.target_of(path, target) if target else path
        if not (ROOT / found).exists():
            broken.append(target)
        elif anchor and anchor not in anchors(found):
            broken.append(f"{target}#{anchor}")
    assert broken == []


def test_every_document_of_the_folder_docs_is_in_the_menu_of_the_site():
    menu = pages.in_menu()
    assert {str(path) for path in documents() if path.parts[0] == "docs"} - set(menu) == set()
    assert [path for path in menu if not (ROOT / path).exists()] == []
    assert len(menu) == len(set(menu))
