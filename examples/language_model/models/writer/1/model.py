# SPDX-License-Identifier: Apache-2.0
"""Writes text letter by letter with the model "letters", whose state the server keeps: each text is
a sequence of requests to it, and of the sequences of several texts the server makes batches."""

import concurrent.futures
import itertools
import os

import numpy as np
import triton_python_backend_utils as pb_utils

CONTEXT = 16  # letters that "letters" looks back
TEXTS_AT_ONCE = 16


class TritonPythonModel:
    def initialize(self, args):
        self.pool = concurrent.futures.ThreadPoolExecutor(TEXTS_AT_ONCE)
        # Ids of sequences, which several processes of this model must not share.
        self.ids = itertools.count(os.getpid() << 32 | 1)

    def execute(self, requests):
        for request in requests:
            prompt = given(request, "text_input", b"").decode(errors="replace")
            options = {
                "most": int(given(request, "max_tokens", 200)),
                "temperature": float(given(request, "temperature", 0.7)),
                "random": np.random.default_rng(abs(int(given(request, "seed", 0))) or None),
            }
            self.pool.submit(self.write, request.get_response_sender(), prompt, **options)

    def write(self, sender, prompt, most, temperature, random):
        sequence = Sequence(next(self.ids))
        try:
            self.write_letters(sender, sequence, prompt, most, temperature, random)
        except Exception as error:  # a thread of a pool has nobody else to tell
            code = pb_utils.TritonError.INVALID_ARG if isinstance(error, ValueError) else pb_utils.TritonError.INTERNAL
            sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error), code)))
        finally:
            sequence.end()  # or it would take the place of another one until it has been idle for long
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def write_letters(self, sender, sequence, prompt, most, temperature, random):
        if most < 1:
            raise ValueError("max_tokens must be 1 or more, not %d" % most)
        codes = encode(prompt or "\n")
        for code in codes[-CONTEXT:-1]:
            sequence.ask(code)
        code = codes[-1]
        for i in range(most):
            is_last = i == most - 1 or sender.is_cancelled()
            code = choose(sequence.ask(code, is_last), temperature, random)
            outputs = {
                "text_output": np.array([decode(code)], object),
                "prompt_tokens": np.array([len(prompt)], np.int32),
                "completion_tokens": np.array([1], np.int32),
            }
            if is_last:
                outputs["finish_reason"] = np.array([b"length"], object)
            tensors = [pb_utils.Tensor(name, value) for name, value in outputs.items()]
            sender.send(pb_utils.InferenceResponse(tensors))
            if is_last:
                return


class Sequence:
    """A sequence of requests to "letters"."""

    def __init__(self, number):
        self.number = number
        self.has_begun = self.has_ended = False

    def ask(self, code, is_last=False):
        """What "letters" makes of the next letter."""
        flags = 0 if self.has_begun else pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
        if is_last:
            flags |= pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END
        self.has_begun = True
        request = pb_utils.InferenceRequest(
            model_name="letters",
            correlation_id=self.number,
            flags=flags,
            inputs=[pb_utils.Tensor("letter", np.array([[code]], np.int64))],
            requested_output_names=["logits"],
        )
        response = request.exec()
        if response.has_error():
            raise pb_utils.TritonModelException(response.error().message())
        self.has_ended = is_last
        return pb_utils.get_output_tensor_by_name(response, "logits").as_numpy()[0]

    def end(self):
        """Ends the sequence if it has begun and has not ended, as after an error."""
        if self.has_begun and not self.has_ended:
            try:
                self.ask(0, is_last=True)
            except pb_utils.TritonModelException:
                pass  # "letters" is gone, and the sequence with it


def given(request, name, otherwise):
    """The only element of an input that the request may have."""
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return otherwise if tensor is None else tensor.as_numpy()[0]


def choose(logits, temperature, random):
    if temperature <= 0:
        return int(np.argmax(logits))
    scaled = (logits - logits.max()).astype(np.float64) / temperature
    odds = np.exp(scaled)
    return int(random.choice(len(odds), p=odds / odds.sum()))


def encode(text):
    """Numbers as train.py gives them: 0 is the end of a line, 1 to 95 printable ASCII."""
    return [code if 1 <= code < 96 else 0 for code in (ord(letter) - 31 for letter in text)]


def decode(code):
    return b"\n" if code == 0 else bytes([code + 31])
