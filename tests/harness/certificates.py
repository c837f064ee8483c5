# SPDX-License-Identifier: Apache-2.0
"""Authorities and certificates for tests, made by the openssl command, and contexts to use them."""

import pathlib
import ssl
import subprocess


class Certificate:
    def __init__(self, folder, name):
        self.name = name
        self.cert = pathlib.Path(folder) / f"{name}.crt"
        self.key = pathlib.Path(folder) / f"{name}.key"


def make(folder, name, authority=None, days=2):
    """A certificate for localhost and 127.0.0.1 signed by `authority`; without one, an authority."""
    made = Certificate(folder, name)
    line = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", made.key, "-out", made.cert, "-subj", f"/CN={name}", "-days", str(days)]  # fmt: skip
    if authority is None:
        line += ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]
    else:
        line += ["-CA", authority.cert, "-CAkey", authority.key,
                 "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                 "-addext", "basicConstraints=critical,CA:FALSE"]  # fmt: skip
    subprocess.run(line, check=True, capture_output=True, timeout=60)
    return made


def client_context(authority, certificate=None):
    """Trusts `authority` and shows `certificate`."""
    context = ssl.create_default_context(cafile=str(authority.cert))
    if certificate is not None:
        context.load_cert_chain(certificate.cert, certificate.key)
    return context
