# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each error code of the C API."""


class TritonError(Exception):
    """What the server reports; its subclasses are the codes.

    `str()` gives the message. An error that came as the response to a request has the response as its
    second argument (`error.args[1]`).
    """

    def __str__(self):
        return str(self.args[0]) if self.args else ""


class UnknownError(TritonError):
    """A failure of no known kind."""


class InternalError(TritonError):
    """A failure inside the server or a model."""


class NotFoundError(TritonError):
    """Something that was named does not exist."""


class InvalidArgumentError(TritonError):
    """A request, option or argument is wrong."""


class UnavailableError(TritonError):
    """What was asked for exists but cannot be had now."""


class UnsupportedError(TritonError):
    """The server, or this build of it, cannot do that."""


class AlreadyExistsError(TritonError):
    """Something of that name is there already."""


class CancelledError(UnknownError):
    """The request was cancelled. Triton's package has no class for it and raises UnknownError."""


# By TRITONSERVER_Error_Code; the compiled part raises these.
CLASS_OF_CODE = (
    UnknownError,
    InternalError,
    NotFoundError,
    InvalidArgumentError,
    UnavailableError,
    UnsupportedError,
    AlreadyExistsError,
    CancelledError,
)

for _class in (TritonError, *CLASS_OF_CODE):
    _class.__module__ = "nereid"
