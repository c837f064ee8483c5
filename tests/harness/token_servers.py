# SPDX-License-Identifier: Apache-2.0
"""The servers from which clouds, and their machines, hand out tokens and keys, in one fake on this machine.

It checks what the real ones check, as far as a test can see: signatures of assertions, secrets, headers that a
page in a browser could not send.
"""

import base64
import json
import subprocess
import time
import urllib.parse
import uuid

from harness import object_stores
from harness import server as servers

EMAIL = "server@project.iam.gserviceaccount.com"
SECRET = "a+secret/of=many&characters"
ROLE = "arn:aws:iam::123456789012:role/models"


def decode(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


class TokenServer:
    def __init__(self, folder):
        self.folder = folder
        self.port = servers.free_ports(1)[0]
        self.lifetime = 3600
        self.issued = {}  # token → when it expires
        self.requests = []  # what was asked for, in words
        self.refuses = False
        self.keys = ("key", "secret")  # of S3
        self._server = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        fake = self

        class Handler(object_stores.QuietHandler):
            def do_GET(self):
                fake.handle(self, "GET")

            def do_POST(self):
                fake.handle(self, "POST")

            def do_PUT(self):
                fake.handle(self, "PUT")

        self._server = object_stores.HttpServer(("127.0.0.1", self.port), Handler)

    def stop(self):
        self._server.stop()

    def is_good(self, token):
        return self.issued.get(token, 0) > time.time()

    def service_account(self):
        """Writes credentials of a service account with a new key, and returns the path."""
        key, public = self.folder / "key.pem", self.folder / "public.pem"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        subprocess.run(["openssl", "rsa", "-in", key, "-pubout", "-out", public], check=True, capture_output=True)
        content = {"type": "service_account", "client_email": EMAIL, "private_key_id": "1"}
        content |= {"private_key": key.read_text(), "token_uri": f"{self.url}/token"}
        return self._write("service_account.json", content)

    def authorized_user(self):
        content = {"type": "authorized_user", "client_id": "id", "client_secret": SECRET, "refresh_token": "refresh"}
        return self._write("user.json", content | {"token_uri": f"{self.url}/token"})

    def _write(self, name, content):
        path = self.folder / name
        path.write_text(json.dumps(content))
        return str(path)

    # --- What it responds ------------------------------------------------------------------------

    def handle(self, handler, method):
        form = dict(urllib.parse.parse_qsl(handler.body().decode()))
        url = urllib.parse.urlsplit(handler.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if self.refuses:
            self.requests.append("refused")
            # A careless server might even quote what it was sent.
            error = {"error": "invalid_client", "error_description": f"Not you.\nSent was: {form}"}
            return handler.respond(401, json.dumps(error).encode(), {"Metadata-Flavor": "Google"})
        for respond in (self._google, self._azure, self._amazon):
            if respond(handler, method, url.path, query, form):
                return None
        self.requests.append(f"unknown: {method} {handler.path}")
        return handler.respond(404)

    def _issue(self, what):
        token = f"token-{uuid.uuid4().hex}"
        self.issued[token] = time.time() + self.lifetime
        self.requests.append(what)
        return token

    def _bearer(self, handler, what, headers=()):
        reply = {"access_token": self._issue(what), "expires_in": self.lifetime, "token_type": "Bearer"}
        handler.respond(200, json.dumps(reply).encode(), headers)
        return True

    def _google(self, handler, method, path, _, form):
        if (method, path) == ("POST", "/token"):
            if form.get("grant_type") == "refresh_token":
                assert form["client_secret"] == SECRET and form["refresh_token"] == "refresh"
                return self._bearer(handler, "refresh token")
            self._check_assertion(form["assertion"])
            return self._bearer(handler, "assertion")
        if path == "/computeMetadata/v1/instance/service-accounts/default/token":
            assert handler.headers["Metadata-Flavor"] == "Google"
            return self._bearer(handler, "google machine", {"Metadata-Flavor": "Google"})
        return False

    def _check_assertion(self, assertion):
        head, claims, signature = assertion.split(".")
        (self.folder / "signature").write_bytes(decode(signature))
        command = ["openssl", "dgst", "-sha256", "-verify", self.folder / "public.pem"]
        command += ["-signature", self.folder / "signature"]
        subprocess.run(command, input=f"{head}.{claims}".encode(), check=True, capture_output=True)
        claims = json.loads(decode(claims))
        assert claims["iss"] == EMAIL and claims["aud"] == f"{self.url}/token"
        assert claims["iat"] <= time.time() + 1 < claims["exp"]

    def _azure(self, handler, method, path, query, form):
        if (method, path) == ("POST", "/tenant/oauth2/v2.0/token"):
            assert form["scope"] == "https://storage.azure.com/.default" and form["client_id"] == "application"
            if "client_secret" in form:
                assert form["client_secret"] == SECRET
                return self._bearer(handler, "secret")
            assert form["client_assertion"] == "federated"
            return self._bearer(handler, "workload")
        if path == "/metadata/identity/oauth2/token":
            assert handler.headers["Metadata"] == "true" and query["resource"] == "https://storage.azure.com/"
            return self._bearer(handler, f"azure machine {query.get('client_id', '')}".strip())
        return False

    def _amazon(self, handler, method, path, _, form):
        expiration = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.lifetime))
        key, secret = self.keys
        if (method, path) == ("POST", "/") and form.get("Action") == "AssumeRoleWithWebIdentity":
            assert form["RoleArn"] == ROLE and form["WebIdentityToken"] == "federated"
            text = (
                '<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
                f"<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{key}</AccessKeyId>"
                f"<SecretAccessKey>{secret}</SecretAccessKey><SessionToken>{self._issue('web identity')}"
                f"</SessionToken><Expiration>{expiration}</Expiration></Credentials>"
                "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
            )
            handler.respond(200, text.encode())
            return True
        if (method, path) == ("PUT", "/latest/api/token"):
            assert int(handler.headers["X-aws-ec2-metadata-token-ttl-seconds"]) > 0
            handler.respond(200, b"session")
            return True
        roles = "/latest/meta-data/iam/security-credentials/"
        if path.startswith(roles):
            if handler.headers["X-aws-ec2-metadata-token"] != "session":
                handler.respond(401)
            elif path == roles:
                handler.respond(200, b"the-role")
            else:
                assert path == roles + "the-role"
                self._keys(handler, "amazon machine", expiration)
            return True
        if path == "/container/keys":
            assert handler.headers["Authorization"] == "federated"
            self._keys(handler, "container", expiration)
            return True
        return False

    def _keys(self, handler, what, expiration):
        key, secret = self.keys
        reply = {"Code": "Success", "AccessKeyId": key, "SecretAccessKey": secret, "Token": self._issue(what)}
        handler.respond(200, json.dumps(reply | {"Expiration": expiration}).encode())
