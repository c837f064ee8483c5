# SPDX-License-Identifier: Apache-2.0
import numpy as np


class Tensor(np.ndarray):
    def to(self, device):
        return self

    detach = cpu = contiguous = lambda self: self
