# SPDX-License-Identifier: Apache-2.0
"""Disturbs a server under load and checks every response; docs/reliability.md says how to run it.

oracle.py     what each response must be, and which errors a trouble explains
repository.py the models, of every kind, and what they must answer
clients.py    the load: one small class for each kind of client
other_clients.py  clients of other ways in (Unix socket, OpenAI's API), and of a model with a canary and a shadow
troubles.py   one small class for each kind of trouble; a new kind is a new class there
world.py      the server under test and what it needs: Redis, S3, a collector, a small disk, a clock, certificates, keys
keys.py       API keys that are replaced while clients use them
records.py    memory, descriptors, threads and latency over time, and whether they grow
plots.py      pictures of these
run.py        one run, from a seed
"""
