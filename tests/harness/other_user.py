# SPDX-License-Identifier: Apache-2.0
"""Commands that run as a user without rights of its own, where the tests run as one who may do everything."""

import contextlib
import os
import pathlib
import tempfile

# In front of a command: a user for whom what root alone may read or write is closed.
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []


@contextlib.contextmanager
def open_folder():
    """A temporary folder that this user may enter, too, other than those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name)
        path.chmod(0o755)
        yield path
