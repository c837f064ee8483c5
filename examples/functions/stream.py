# SPDX-License-Identifier: Apache-2.0
"""Responses one by one, for any number of clients at once in one event loop.

python examples/functions/stream.py
curl -N http://127.0.0.1:8000/v2/models/say/generate_stream -d '{"text": "one word after the other"}'
"""

import asyncio
import typing

import nereid


@nereid.model
async def say(text: str, delay_s: float = 0.2) -> typing.AsyncIterator[str]:
    for word in text.split():
        await asyncio.sleep(delay_s)
        yield word


if __name__ == "__main__":
    nereid.serve(say)
