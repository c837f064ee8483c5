# SPDX-License-Identifier: Apache-2.0
"""Pages that programs write are current."""

import sys

from harness.documents import ROOT
from google.protobuf.descriptor import FieldDescriptor
from tritonclient.grpc import model_config_pb2

sys.path.append(str(ROOT / "tools"))

import configuration_page  # noqa: E402
import mistakes_pages  # noqa: E402


def test_the_reference_of_the_configuration():
    page = configuration_page.PAGE.read_text()
    assert page.endswith(configuration_page.MARK + configuration_page.reference()), "run tools/configuration_page.py"


def fields(message, seen):
    """(message, field) of a message and of all that it holds."""
    seen.add(message.full_name)
    for field in message.fields:
        yield message.full_name.removeprefix("inference."), field.name
        inner = field.message_type
        is_map = inner is not None and inner.GetOptions().map_entry
        if is_map:
            inner = inner.fields_by_name["value"].message_type
        if inner is not None and inner.full_name not in seen and field.type == FieldDescriptor.TYPE_MESSAGE:
            yield from fields(inner, seen)


def test_the_reference_has_every_field_that_clients_know():
    """The clients' own package is asked, so that the page is not compared with what it is made of."""
    sections = configuration_page.PAGE.read_text().split("\n## ") + configuration_page.PAGE.read_text().split("\n### ")
    text = {section.split("\n", 1)[0]: section.split("\n##")[0] for section in sections}
    known = list(fields(model_config_pb2.ModelConfig.DESCRIPTOR, set()))
    assert len(known) > 100
    assert [f"{name}.{field}" for name, field in known if f"\n| `{field}` |" not in text.get(name, "")] == []


def test_the_pages_about_mistakes():
    for name, text in mistakes_pages.pages().items():
        assert (mistakes_pages.FOLDER / name).read_text() == text, "run tools/mistakes_pages.py"
