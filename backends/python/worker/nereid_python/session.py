# SPDX-License-Identifier: Apache-2.0
"""What the parts of this process share. There is one model in it."""


class Session:
    def __init__(self):
        self.memory = None
        self.name = ""  # of the instance
        self.model_dir = ""
        self.is_decoupled = False
        self.has_calls = False  # the server answers calls: from initialize to the end
        self.may_infer = False  # during execute, and what it left running
        self.generation = 0  # of processes: those that the model forks are others

    def owns(self, thing):
        """Whether this process made the thing, and what goes with it must be told to the server."""
        return self.has_calls and thing._generation == self.generation

    def tell(self, kind, payload):
        self.memory.tell(kind, payload)


session = Session()
