# SPDX-License-Identifier: Apache-2.0
"""Responses, and the senders that models keep for later ones."""

import threading

from . import native
from . import protocol as p
from .arguments import parameters_json, plain, require
from .errors import TritonError, TritonModelException
from .session import session
from .tensors import Tensor
from .writer import Writer

RELEASE_ALL, RELEASE_RESCHEDULE = 1, 2
COMPLETE_FINAL = 1
NO_PARAMETERS = "{}"


def check_response(output_tensors, error, parameters):
    """Checks the arguments of a response that is more than a list of tensors, and returns them."""
    require(isinstance(output_tensors, (list, tuple)), "output_tensors", output_tensors)
    require(error is None or isinstance(error, TritonError), "error", error)
    output_tensors = list(output_tensors)
    for tensor in output_tensors:
        if tensor is None:
            raise TritonModelException("Output tensor for inference response should not be empty.")
        require(isinstance(tensor, Tensor), "an element of output_tensors", tensor)
    text = NO_PARAMETERS if parameters is None else parameters_json(parameters)
    return output_tensors, error, text


class InferenceResponse(native.Response):
    """pb_utils.InferenceResponse."""

    __slots__ = ("__weakref__",)

    def output_tensors(self):
        return list(self._tensors)  # the caller's own: what the model does with it changes no response

    def has_error(self):
        return self._error is not None

    def error(self):
        return self._error

    def parameters(self):
        return self._parameters


def is_cancelled(handle):
    if not session.has_calls:
        return False
    _, answer = session.memory.ask(p.IS_CANCELLED, p.U64.pack(handle))
    return len(answer) == 8 and p.U64.unpack(answer)[0] != 0


class InferenceResponseSender:
    """pb_utils.InferenceResponseSender."""

    def __init__(self, handle, outputs):
        self._handle = handle  # None for requests that the model made
        self._outputs = outputs
        # A destructor of the model's may send, too, on a thread that is just doing so.
        self._lock = threading.RLock()
        self._is_closed = False
        self._sent = 0
        self._ahead = 0  # responses since the last that have been sent for certain
        self._ahead_bytes = 0
        self._generation = session.generation

    def __del__(self):
        # A client that waits for the end gets an error.
        if self._handle is not None and not self._is_closed and session.owns(self):
            session.tell(p.CLOSE, p.U64.pack(self._handle))

    def _count(self, response, flags):
        """Checks that the response may be sent now."""
        if self._handle is None:
            raise TritonModelException(
                "Unable to send response. Response sender has no reference to the decoupled state "
                "of the model."
            )
        with self._lock:
            if not session.is_decoupled:
                if response is not None and self._sent > 0:
                    raise TritonModelException(
                        "Unable to send response. Non-decoupled model cannot send more than one "
                        "response."
                    )
                if response is None and flags == COMPLETE_FINAL and self._sent == 0:
                    raise TritonModelException(
                        "Unable to send response. Non-decoupled model cannot send complete final "
                        "before sending a response."
                    )
            if self._is_closed:
                raise TritonModelException(
                    "Unable to send response. Response sender has been closed."
                )
            if flags == COMPLETE_FINAL:
                self._is_closed = True
            self._sent += 1

    def send(self, response=None, flags=0):
        require(response is None or isinstance(response, InferenceResponse), "response", response)
        flags = plain(flags)
        require(isinstance(flags, int) and flags >= 0, "flags", flags)
        if flags not in (0, COMPLETE_FINAL):
            raise TritonModelException("Unable to send response. Unsupported flag provided.")
        if flags == 0 and response is None:
            raise TritonModelException(
                "Inference Response object must be provided when the response flags is set to zero."
            )
        self._count(response, flags)
        try:
            self._write(response, flags)
        except BaseException:
            # Nothing was sent, so the model may still send, and the request ends with the sender.
            with self._lock:
                self._sent -= 1
                if flags == COMPLETE_FINAL:
                    self._is_closed = False
            raise

    def _write(self, response, flags):
        writer = Writer(shares=False)
        writer.add(p.SEND_HEAD.pack(self._handle, flags, response is not None))
        if response is not None:
            writer.add_response(response, self._outputs, RELEASE_ALL)
        offset, size = writer.write()
        session.memory.post(p.SEND, offset, size)
        if flags != COMPLETE_FINAL:
            self._keep_pace(writer.byte_size())

    def _keep_pace(self, size):
        """Waits for a client that reads far more slowly than the model sends."""
        self._ahead += 1
        self._ahead_bytes += size
        is_near = self._ahead < p.MOST_RESPONSES_AHEAD and self._ahead_bytes < p.MOST_BYTES_AHEAD
        if is_near or not session.owns(self):
            return
        self._ahead = self._ahead_bytes = 0
        session.memory.ask(p.AWAIT_SENT, p.U64.pack(self._handle))

    def is_cancelled(self):
        return self._handle is not None and is_cancelled(self._handle)

    def _fail(self, text):
        """Completes the request with an error, unless it is complete."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._write(InferenceResponse([], TritonError(text)), COMPLETE_FINAL)

    def _close(self):
        """Records that the server has completed the request."""
        with self._lock:
            self._is_closed = True
