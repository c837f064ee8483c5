# SPDX-License-Identifier: Apache-2.0
"""Files that somebody reads while they change."""


def replace(path, content):
    """Text or bytes as the file's new content, in one step for whoever reads it meanwhile."""
    new = path.with_name(f"{path.name}.new")
    if isinstance(content, str):
        new.write_text(content)
    else:
        new.write_bytes(content)
    new.rename(path)
