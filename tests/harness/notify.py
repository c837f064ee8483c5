# SPDX-License-Identifier: Apache-2.0
"""The socket of a service manager, as systemd makes it for services of Type=notify."""

import socket


class NotifySocket:
    def __init__(self, path):
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        # Servers that run as somebody else write to it.
        path.chmod(0o666)

    def receive(self):
        """Waits for the next message."""
        self._socket.settimeout(60)
        return self._socket.recv(4096).decode()

    def waiting(self):
        """The messages that have arrived."""
        messages = []
        self._socket.setblocking(False)
        try:
            while True:
                messages.append(self._socket.recv(4096).decode())
        except BlockingIOError:
            return messages
