# SPDX-License-Identifier: Apache-2.0
"""The state that the parts of this process share. It runs one model."""


class Session:
    def __init__(self):
        self.memory = None
        self.name = ""  # of the instance
        self.model_name = ""
        self.model_version = 0
        self.model_dir = ""
        self.is_decoupled = False
        self.has_calls = False  # the server handles calls: from initialize to the end
        self.may_infer = False  # during execute, and for what it left running
        self.generation = 0  # of the process; a fork has another one

    def owns(self, thing):
        """Returns whether this process made the object, and so must tell the server of its end."""
        return self.has_calls and thing._generation == self.generation

    def tell(self, kind, payload):
        self.memory.tell(kind, payload)


session = Session()
