# SPDX-License-Identifier: Apache-2.0
"""An issuer of tokens (RFC 7519) for tests, with an RSA key made by the openssl command."""

import base64
import json
import re
import subprocess
import time


def encode(data):
    """Base64 with the alphabet of URLs, without padding."""
    if isinstance(data, dict):
        data = json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    NAME = "https://id.example.com/"
    AUDIENCE = "nereid"

    def __init__(self, folder, key_id="k1"):
        self.key_id = key_id
        self._key = folder / f"{key_id}.pem"
        self._run("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self._key)
        modulus = self._run("rsa", "-in", self._key, "-noout", "-modulus").decode()
        number = bytes.fromhex(re.search(r"Modulus=(\w+)", modulus).group(1))
        self.jwk = {"kty": "RSA", "kid": key_id, "use": "sig", "n": encode(number), "e": "AQAB"}

    @staticmethod
    def _run(*args, data=b""):
        return subprocess.run(
            ["openssl", *map(str, args)], input=data, check=True, capture_output=True, timeout=60
        ).stdout

    def write_keys(self, path):
        path.write_text(json.dumps({"keys": [self.jwk]}))
        return path

    def rule(self, keys, scopes, **more):
        """What the file of --api-keys says about this issuer."""
        return {"issuer": self.NAME, "audience": self.AUDIENCE, "keys": str(keys), "scopes": scopes, **more}

    def token(self, scope, head=None, lasts=600, **claims):
        payload = {
            "iss": self.NAME,
            "aud": self.AUDIENCE,
            "sub": "ann",
            "scope": scope,
            "exp": int(time.time()) + lasts,
            **claims,
        }
        text = encode(head or {"alg": "RS256", "kid": self.key_id}) + "." + encode(payload)
        return text + "." + encode(self._run("dgst", "-sha256", "-sign", self._key, data=text.encode()))
