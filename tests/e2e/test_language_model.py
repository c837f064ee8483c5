# SPDX-License-Identifier: Apache-2.0
"""The example of a language model (examples/language_model), with the client of OpenAI's API."""

import concurrent.futures
import queue
import shutil
import subprocess
import sys

import numpy as np
import onnx
import openai
import pytest
import tritonclient.grpc as grpcclient
from harness import python_models
from harness import server as servers

pytestmark = pytest.mark.newer  # ours

EXAMPLE = servers.ROOT / "examples" / "language_model"


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    if not servers.has_backend("onnxruntime"):
        pytest.skip("without the onnxruntime backend")
    repository = tmp_path_factory.mktemp("language") / "models"
    shutil.copytree(EXAMPLE / "models", repository)
    log_dir = tmp_path_factory.mktemp("log")
    with servers.running(repository, env=python_models.ENVIRONMENT, log_dir=log_dir) as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    url = f"http://{server.http}/v1"
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=120) as client:
        yield client


def write(client, prompt, **options):
    options = {"max_tokens": 40, "temperature": 0} | options
    return client.completions.create(model="writer", prompt=prompt, **options)


def expected(prompt, count):
    """What the network itself says is likeliest, letter after letter."""
    model = onnx.load(EXAMPLE / "models" / "letters" / "1" / "model.onnx")
    weights = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
    codes = [0] * 16 + [ord(letter) - 31 for letter in prompt]
    for _ in range(count):
        x = weights["embedding"][codes[-16:]].reshape(1, -1)
        hidden = np.maximum(x @ weights["w0"] + weights["b0"], 0)
        codes.append(int((hidden @ weights["w1"] + weights["b1"]).argmax()))
    return "".join(chr(code + 31) if code else "\n" for code in codes[16 + len(prompt) :])


@pytest.mark.parametrize("prompt", ["Return the ", "x", "Raise an exception if the file is not "])
def test_text_is_what_the_network_says(client, prompt):
    answer = write(client, prompt)
    assert answer.choices[0].text == expected(prompt, 40)
    assert answer.choices[0].finish_reason == "length"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (len(prompt), 40)


def test_texts_at_once_do_not_mix(client):
    prompts = [f"{word} the {noun} " for word in ("Return", "Set", "Close", "Read") for noun in ("file", "name")]
    with concurrent.futures.ThreadPoolExecutor(len(prompts)) as pool:
        texts = list(pool.map(lambda prompt: write(client, prompt).choices[0].text, prompts))
    assert texts == [expected(prompt, 40) for prompt in prompts]


def test_a_seed_makes_chance_the_same_again(client):
    first, again, other = (
        write(client, "The ", temperature=1, seed=seed).choices[0].text for seed in (1, 1, 2)
    )
    assert first == again != other


def test_a_chat_streams(client):
    messages = [{"role": "user", "content": "What is a class?"}]
    pieces = client.chat.completions.create(model="writer", messages=messages, max_tokens=30, seed=1, stream=True)
    text = [piece.choices[0].delta.content or "" for piece in pieces]
    assert len("".join(text)) == 30 and sum(map(bool, text)) == 30


def ask_for_texts(server, count, **fields):
    """The errors that a stream of requests to the writer gets until all of them have had their final response."""
    inputs = [grpcclient.InferInput("text_input", [1], "BYTES")]
    inputs[0].set_data_from_numpy(np.array([b"Return the "], object))
    for name, (kind, value) in fields.items():
        inputs.append(grpcclient.InferInput(name, [1], kind))
        inputs[-1].set_data_from_numpy(value)
    answers, errors = queue.Queue(), []
    with grpcclient.InferenceServerClient(server.grpc) as one:
        one.start_stream(lambda result, error: answers.put((result, error)))
        for _ in range(count):
            one.async_stream_infer("writer", inputs, enable_empty_final_response=True)
        while count > 0:
            result, error = answers.get(timeout=60)
            if error is not None:
                errors.append(error.message())
            else:
                count -= result.get_response().parameters["triton_final_response"].bool_param
    return errors


@pytest.mark.parametrize(
    ("max_tokens", "temperature", "text"),
    [(0, 0.7, "max_tokens must be 1 or more, not 0"), (-5, 0.7, "must be 1 or more, not -5"), (5, np.nan, "NaN")],
)
def test_a_text_that_is_not_written_leaves_no_sequence_behind(server, client, max_tokens, temperature, text):
    # As many as "letters" has places for sequences.
    errors = ask_for_texts(server, 64, max_tokens=("INT32", np.array([max_tokens], np.int32)),
                           temperature=("FP32", np.array([temperature], np.float32)))  # fmt: skip
    assert len(errors) == 64 and all(text in error for error in errors), errors
    # With no place left, this would wait until one of them has been idle for a minute.
    assert write(client.with_options(timeout=30), "Return the ").choices[0].text == expected("Return the ", 40)


def test_the_client_of_the_example(server):
    command = [sys.executable, EXAMPLE / "client.py", "--url", f"http://{server.http}/v1", "--letters", "20", "Open a "]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Open a ") and len(done.stdout) == len("Open a ") + 20 + 1
