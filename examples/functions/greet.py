# SPDX-License-Identifier: Apache-2.0
"""The smallest server of a Python function.

python examples/functions/greet.py
curl http://127.0.0.1:8000/v2/models/greet/generate -d '{"name": "World"}'
"""

import nereid


@nereid.model
def greet(name: str) -> str:
    return f"Hello, {name}!"


if __name__ == "__main__":
    nereid.serve(greet)
