# SPDX-License-Identifier: Apache-2.0
def load(path):
    raise RuntimeError("PytorchStreamReader failed reading zip archive: " + path)
