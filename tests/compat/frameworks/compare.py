#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows where two recordings differ: README.md.

    cd tests && python -m compat.frameworks.compare ONE.json OTHER.json
"""

import json
import math
import pathlib
import sys

TOLERANCE = 1e-5


def is_close(one, other):
    """Equal, but for the last digits of numbers."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE) or (one != one and other != other)
    return one == other


def is_longer(one, other):
    """Whether a text begins with the other and goes on: what was found, and where."""
    return other.rstrip("\n").startswith(one.rstrip(".;\n"))


def is_alike(key, one, other):
    if one is None or other is None:
        return one == other
    if key.endswith("outputs") and one and isinstance(one[0], list):  # in any order
        return is_close(sorted(one, key=lambda o: o[0]), sorted(other, key=lambda o: o[0]))
    if key.endswith("error"):
        return is_longer(one, other)
    return is_close(one, other)


def differences(one, other):
    """(model, part, what one says, what the other says) of all parts that are not alike."""
    for model in one.keys() | other.keys():
        first, second = one.get(model, {}), other.get(model, {})
        for part in first.keys() | second.keys():
            a, b = first.get(part), second.get(part)
            if a is None or b is None:
                # Without a model there are no requests: its load differs, and says so.
                if first and second and first["load"] != second["load"]:
                    continue
                yield model, part, a, b
            elif not all(is_alike(key, a.get(key), b.get(key)) for key in a.keys() | b.keys()):
                yield model, part, a, b


def main():
    one, other = (json.loads(pathlib.Path(path).read_text()) for path in sys.argv[1:])
    found = sorted(differences(one, other), key=lambda d: d[:2])
    for model, part, a, b in found:
        print(f"{model}: {part}\n  - {json.dumps(a)}\n  + {json.dumps(b)}")
    print(f"{len(one)} models, {sum(map(len, one.values()))} responses, {len(found)} differences")


if __name__ == "__main__":
    main()
