# SPDX-License-Identifier: Apache-2.0
"""Decoupled models of the backends repeat, square and iterative_sequence."""

from harness import models

DECOUPLED = "model_transaction_policy { decoupled: true }\ninstance_group [ { kind: KIND_CPU count: 1 } ]\n"


def write_repeat(repository):
    config = (
        'backend: "repeat"\nmax_batch_size: 0\n'
        f"input [ {models.tensor_config('IN', 'INT32', [-1])}, {models.tensor_config('DELAY', 'UINT32', [-1])}, "
        f"{models.tensor_config('WAIT', 'UINT32', [1])} ]\n"
        f"output [ {models.tensor_config('OUT', 'INT32', [1])}, {models.tensor_config('IDX', 'UINT32', [1])} ]\n"
    )
    models.write_model(repository, "repeat", config + DECOUPLED)


def write_square(repository, name="square", **parameters):
    config = (
        'backend: "square"\nmax_batch_size: 0\n'
        f"input [ {models.tensor_config('IN', 'INT32', [1])} ]\n"
        f"output [ {models.tensor_config('OUT', 'INT32', [1])} ]\n"
    )
    for key, value in parameters.items():
        config += f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n'
    models.write_model(repository, name, config + DECOUPLED)


def write_iterative(repository):
    config = (
        'backend: "iterative_sequence"\nmax_batch_size: 1\n'
        f"input [ {models.tensor_config('INPUT', 'INT32', [1])} ]\n"
        f"output [ {models.tensor_config('OUTPUT', 'INT32', [1])} ]\n"
        "sequence_batching { iterative_sequence: true }\n"
        'parameters { key: "reschedule_delay_ms" value: { string_value: "1" } }\n'
    )
    models.write_model(repository, "iterative", config + DECOUPLED)
