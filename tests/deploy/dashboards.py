# SPDX-License-Identifier: Apache-2.0
"""The dashboard of deploy/ as tests read it."""

import json
import re

from harness import server as servers

FOLDER = servers.ROOT / "deploy" / "grafana"
# Functions, operators and labels are none of these.
FAMILY = re.compile(r"\b(?:nv|nereid|process)_\w+")
OF_ALL = {"job": "nereid", "instance": ".*", "model": ".*", "version": ".*"}


def dashboard():
    return json.loads((FOLDER / "nereid.json").read_text())


def panels():
    """All panels but the headers of rows, also those in rows that are closed."""
    for panel in dashboard()["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def queries(interval):
    """(panel, expression) of every query, with the values that the variables have at first."""
    for panel in panels():
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", interval)
            for name, value in OF_ALL.items():
                expression = expression.replace(f"${name}", value)
            yield panel["title"], expression


def families(expression):
    """The families of the server in an expression, without what Prometheus adds to names."""
    # What a rule records has a colon in its name.
    plain = re.sub(r"\b\w+:[\w:]+", "", expression)
    plain = re.sub(r'"[^"]*"', '""', plain)
    return {re.sub(r"_bucket$", "", name) for name in FAMILY.findall(plain)}
