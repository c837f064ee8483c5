# SPDX-License-Identifier: Apache-2.0
"""The server's log, for the program around it."""

import os
import sys

from nereid import _core
from nereid._api._enums import LogLevel


def LogMessage(level: LogLevel, message: str) -> None:
    """Writes a line to the server's log, if lines of that level are written, with the caller's place."""
    caller = sys._getframe(1)
    _core.log_message(level, os.path.basename(caller.f_code.co_filename), caller.f_lineno, message)
