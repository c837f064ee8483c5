# SPDX-License-Identifier: Apache-2.0
"""Errors of models, and their texts for clients."""

import enum
import importlib
import os

_OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))
_IMPORT_MACHINERY = ("<frozen importlib", os.path.dirname(importlib.__file__) + os.sep)


class TritonModelException(Exception):
    """pb_utils.TritonModelException."""


class ErrorCode(enum.IntEnum):
    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID_ARG = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7


class TritonError:
    """pb_utils.TritonError: a message and a code."""

    UNKNOWN = ErrorCode.UNKNOWN
    INTERNAL = ErrorCode.INTERNAL
    NOT_FOUND = ErrorCode.NOT_FOUND
    INVALID_ARG = ErrorCode.INVALID_ARG
    UNAVAILABLE = ErrorCode.UNAVAILABLE
    UNSUPPORTED = ErrorCode.UNSUPPORTED
    ALREADY_EXISTS = ErrorCode.ALREADY_EXISTS
    CANCELLED = ErrorCode.CANCELLED

    __slots__ = ("_message", "_code")

    def __init__(self, message, code=ErrorCode.INTERNAL):
        if not isinstance(message, str) or not isinstance(code, ErrorCode):
            raise TypeError(
                "TritonError(): incompatible arguments; expected a str and one of its codes, got "
                "%s and %s" % (type(message).__name__, type(code).__name__)
            )
        self._message = message
        self._code = code

    def message(self):
        return self._message

    def code(self):
        return self._code

    def __str__(self):
        return self._message


def _text(error):
    """Returns the exception's text, which the model's own code may make."""
    try:
        return str(error)
    except BaseException as another:
        return "(its text cannot be told: %s)" % type(another).__name__


def _without_places(error):
    """Returns the exception's type and text; for a syntax error also the file, the line and its source."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        try:
            return _with_source(error)
        except Exception:
            pass  # a model that raises one may have put anything into it
    return "%s: %s" % (type(error).__name__, _text(error))


def _with_source(error):
    text = "%s: %s (%s, line %s)" % (type(error).__name__, error.msg, error.filename, error.lineno)
    line = (error.text or "").rstrip("\n")
    if line.strip():
        text += "\n    " + line.lstrip()
        column = (error.offset or 0) - 1 - (len(line) - len(line.lstrip()))
        if 0 <= column <= len(line):
            text += "\n    " + " " * column + "^"
    return text


def _is_machinery(filename):
    """Returns whether the code belongs to this package or to the import system, not to the model."""
    return os.path.dirname(filename) == _OWN_FOLDER or filename.startswith(_IMPORT_MACHINERY)


def describe(error):
    """Returns the text of an exception for clients: its type, its text, and its traceback, innermost
    frame first."""
    if isinstance(error, TritonModelException) and error.__traceback__ is None:
        return _text(error)
    text = _without_places(error)
    trace = error.__traceback__
    if trace is None:
        return text
    while trace.tb_next is not None:
        trace = trace.tb_next
    frame, line = trace.tb_frame, trace.tb_lineno
    places = []
    while frame is not None:
        code = frame.f_code
        if not _is_machinery(code.co_filename):
            places.append("  %s(%d): %s\n" % (code.co_filename, line, code.co_name))
        frame = frame.f_back
        line = frame.f_lineno if frame is not None else 0
    return text + ("\n\nAt:\n" + "".join(places) if places else "")
