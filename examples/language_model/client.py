#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets the model "writer" continue a text, and prints it as it comes.

usage: .venv/bin/python examples/language_model/client.py [--url http://localhost:8000/v1] [TEXT]
"""

import argparse

import openai


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="?", default="Return the ")
    parser.add_argument("--url", default="http://localhost:8000/v1")
    parser.add_argument("--letters", type=int, default=300)
    arguments = parser.parse_args()
    client = openai.OpenAI(base_url=arguments.url, api_key="none")
    print(arguments.text, end="", flush=True)
    pieces = client.completions.create(
        model="writer", prompt=arguments.text, max_tokens=arguments.letters, stream=True
    )
    for piece in pieces:
        print(piece.choices[0].text, end="", flush=True)
    print()


if __name__ == "__main__":
    main()
