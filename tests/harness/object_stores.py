# SPDX-License-Identifier: Apache-2.0
"""Google Cloud Storage and Azure Storage on this machine, as far as a server of models asks them.

The fakes check what the real services check (signatures, tokens, generations and ETags), list in pages, and
are written from the services' documentation. The emulators that others have written run through the same
tests: gcp-storage-emulator, which knows no accounts, pages or generations, and Azurite, where it is installed
(tools/setup --emulators, or NEREID_AZURITE names its program azurite-blob).
"""

import base64
import contextlib
import dataclasses
import email.utils
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import xml.sax.saxutils

from harness import server as servers

BUCKET = "bucket"
ACCOUNT = "devstoreaccount1"
# Microsoft publishes this key for emulators.
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
OTHER_KEY = base64.b64encode(b"another").decode()
SIGNATURE = "sv=2021-12-02&sp=rl&sig=a%2Bsignature%3D"


@dataclasses.dataclass
class Stored:
    data: bytes
    version: int
    modified: float

    def md5(self):
        return base64.b64encode(hashlib.md5(self.data).digest()).decode()


class QuietHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def respond(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))


class HttpServer(http.server.ThreadingHTTPServer):
    """A server whose end is also that of its connections."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._connections = set()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def process_request(self, request, client_address):
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, *_):
        pass  # a client that was cut off

    def stop(self):
        self.shutdown()
        self.server_close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class FakeStore:
    """What both fakes share: a bucket whose objects tests change, and a server that can go and come back."""

    def __init__(self):
        self.port = servers.free_ports(1)[0]
        self.objects = {}
        self.lock = threading.Lock()
        self.page_size = 1000
        self.tokens = None  # accepted ones, of a container with .is_good(); None: no token is needed
        self.requests = []
        self.on_read = None  # called with the key before an object is sent
        self._versions = int(time.time() * 1e6)
        self._server = None

    def start(self):
        store = self

        class Handler(QuietHandler):
            def do_GET(self):
                with store.lock:
                    store.requests.append((self.path, dict(self.headers)))
                store.handle(self)

            do_PUT = do_POST = do_GET

        self._server = HttpServer(("127.0.0.1", self.port), Handler)

    def stop(self):
        if self._server is not None:
            self._server.stop()
            self._server = None

    def put(self, key, data):
        with self.lock:
            self._versions += 1
            self.objects[key] = Stored(bytes(data), self._versions, time.time())

    def put_if(self, key, data, is_expected):
        """Writes an object if the one there, or None, is as expected; returns whether it was."""
        with self.lock:
            if not is_expected(self.objects.get(key)):
                return False
        self.put(key, data)
        return True

    def remove(self, prefix):
        with self.lock:
            for key in [key for key in self.objects if key.startswith(prefix)]:
                del self.objects[key]

    def page(self, prefix, token):
        """Keys with the prefix after the token, and the token of the next page."""
        with self.lock:
            keys = sorted(k for k in self.objects if k.startswith(prefix) and k > token)
            page = keys[: self.page_size]
            return {k: self.objects[k] for k in page}, page[-1] if len(keys) > len(page) else ""

    def is_authorized(self, handler):
        kind, _, token = (handler.headers.get("Authorization") or "").partition(" ")
        return kind == "Bearer" and self.tokens.is_good(token)

    @staticmethod
    def part(handler, data):
        """The status, headers and bytes for the request's range."""
        wanted = handler.headers.get("x-ms-range") or handler.headers.get("Range") or ""
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", wanted)
        if match is None:
            return 200, {}, data
        first, last = int(match[1]), min(int(match[2]), len(data) - 1)
        return 206, {"Content-Range": f"bytes {first}-{last}/{len(data)}"}, data[first : last + 1]


class FakeGoogle(FakeStore):
    """https://cloud.google.com/storage/docs/json_api/v1: objects.list, objects.get and objects.insert."""

    name = "gs"
    cache = f"nereid-gs-{os.getuid()}"
    cannot_open = "Unable to create GCS client. Check account credentials."

    def url(self, path, port=None):
        return f"gs://{path}"

    def environment(self, cache, home, port=None, **more):
        cache.mkdir(exist_ok=True)
        return {
            "STORAGE_EMULATOR_HOST": f"127.0.0.1:{port or self.port}",
            "TRITON_GCS_MOUNT_DIRECTORY": str(cache),
            "HOME": str(home),
            "no_proxy": "127.0.0.1",
            **more,
        }

    def handle(self, handler):
        url = urllib.parse.urlsplit(handler.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        is_upload = handler.command == "POST" and url.path.startswith("/upload/")
        match = re.fullmatch(r"(?:/upload)?/storage/v1/b/([^/]+)/o(?:/([^/]+))?", url.path)
        if match is None:
            return self._error(handler, 404, "notFound", "Not Found")
        if self.tokens is not None and not self.is_authorized(handler):
            if handler.headers.get("Authorization"):
                return self._error(handler, 401, "authError", "Invalid Credentials")
            return self._error(
                handler, 401, "required", "Anonymous caller does not have storage.objects.list access"
            )
        if urllib.parse.unquote(match[1]) != BUCKET:
            return self._error(handler, 404, "notFound", "The specified bucket does not exist.")
        if is_upload:
            return self._write(handler, query)
        if match[2] is None:
            return self._list(handler, query)
        return self._read(handler, urllib.parse.unquote(match[2]), query)

    def _write(self, handler, query):
        assert query["uploadType"] == "media"
        expected = query["ifGenerationMatch"]

        def is_expected(stored):
            return str(stored.version if stored else 0) == expected

        if not self.put_if(query["name"], handler.body(), is_expected):
            return self._error(handler, 412, "conditionNotMet", "At least one pre-condition did not hold.")
        handler.respond(200, b"{}")

    def _list(self, handler, query):
        page, token = self.page(query.get("prefix", ""), query.get("pageToken", ""))
        items = []
        for key, stored in page.items():
            when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(stored.modified))
            item = {"name": key, "generation": str(stored.version), "size": str(len(stored.data))}
            items.append(item | {"updated": when + ".123Z", "md5Hash": stored.md5()})
        reply = ({"items": items} if items else {}) | ({"nextPageToken": token} if token else {})
        handler.respond(200, json.dumps(reply).encode(), {"Content-Type": "application/json"})

    def _read(self, handler, key, query):
        assert query["alt"] == "media"
        if self.on_read:
            self.on_read(key)
        with self.lock:
            stored = self.objects.get(key)
        if stored is None:
            return self._error(handler, 404, "notFound", f"No such object: {BUCKET}/{key}")
        if query.get("ifGenerationMatch", str(stored.version)) != str(stored.version):
            return self._error(handler, 412, "conditionNotMet", "At least one pre-condition did not hold.")
        status, headers, data = self.part(handler, stored.data)
        handler.respond(status, data, headers | {"X-Goog-Generation": stored.version, "ETag": "CKih16GjycICEAE="})

    @staticmethod
    def _error(handler, status, reason, message):
        error = {"code": status, "message": message, "errors": [{"reason": reason, "message": message}]}
        handler.respond(status, json.dumps({"error": error}).encode())


def shared_key(method, path, query, headers, key=ACCOUNT_KEY):
    """The value of Authorization, by
    https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key."""
    headers = {name.lower(): value for name, value in headers.items()}
    plain = ["content-encoding", "content-language", "content-length", "content-md5", "content-type", "date"]
    plain += ["if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"]
    lines = [method, *("" if headers.get(n) == "0" and n == "content-length" else headers.get(n, "") for n in plain)]
    lines += [f"{name}:{headers[name]}" for name in sorted(headers) if name.startswith("x-ms-")]
    lines.append(f"/{ACCOUNT}{path}")
    lines += [f"{name}:{query[name]}" for name in sorted(query)]
    digest = hmac.digest(base64.b64decode(key), "\n".join(lines).encode(), "sha256")
    return f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"


class FakeAzure(FakeStore):
    """https://learn.microsoft.com/rest/api/storageservices: List Blobs, Get Blob and Put Blob."""

    name = "as"
    cache = f"nereid-as-{os.getuid()}"
    cannot_open = "Unable to create Azure filesystem client. Check account credentials."

    def url(self, path, port=None):
        return f"as://{ACCOUNT}/{path}"

    def environment(self, cache, home, port=None, key=ACCOUNT_KEY, **more):
        cache.mkdir(exist_ok=True)
        return {
            "AZURE_STORAGE_SERVICE_ENDPOINT": f"http://127.0.0.1:{port or self.port}/{ACCOUNT}",
            "AZURE_STORAGE_ACCOUNT": ACCOUNT,
            "AZURE_STORAGE_KEY": key,
            "TRITON_AZURE_MOUNT_DIRECTORY": str(cache),
            "HOME": str(home),
            "no_proxy": "127.0.0.1",
            **more,
        }

    def is_authorized(self, handler):
        url = urllib.parse.urlsplit(handler.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        if url.query.endswith(SIGNATURE):
            return True
        if self.tokens is not None:
            return super().is_authorized(handler)
        expected = shared_key(handler.command, url.path, query, handler.headers)
        return handler.headers.get("Authorization") == expected

    def handle(self, handler):
        url = urllib.parse.urlsplit(handler.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        match = re.fullmatch(rf"/{ACCOUNT}/([^/]+)(?:/(.+))?", url.path)
        if match is None or "x-ms-version" not in handler.headers:
            return self._error(handler, 400, "InvalidUri", "The requested URI does not represent any resource.")
        if not self.is_authorized(handler):
            text = "Server failed to authenticate the request."
            status = 401 if (handler.headers.get("Authorization") or "").startswith("Bearer") else 403
            return self._error(handler, status, "AuthenticationFailed", text)
        if urllib.parse.unquote(match[1]) != BUCKET:
            return self._error(handler, 404, "ContainerNotFound", "The specified container does not exist.")
        if match[2] is None:
            assert query["comp"] == "list" and query["restype"] == "container"
            return self._list(handler, query)
        if handler.command == "PUT":
            return self._write(handler, urllib.parse.unquote(match[2]))
        return self._read(handler, urllib.parse.unquote(match[2]))

    def _write(self, handler, key):
        assert handler.headers["x-ms-blob-type"] == "BlockBlob"
        wanted = handler.headers.get("If-Match")
        must_be_new = handler.headers.get("If-None-Match") == "*"

        def is_expected(stored):
            if stored is None:
                return wanted is None
            return not must_be_new and wanted in (None, f'"0x{stored.version:X}"')

        if self.put_if(key, handler.body(), is_expected):
            return handler.respond(201)
        if must_be_new:
            return self._error(handler, 409, "BlobAlreadyExists", "The specified blob already exists.")
        return self._error(handler, 412, "ConditionNotMet", "The condition specified was not met.")

    def _list(self, handler, query):
        page, token = self.page(query.get("prefix", ""), query.get("marker", ""))
        escape = xml.sax.saxutils.escape
        blobs = "".join(
            f"<Blob><Name>{escape(key)}</Name><Properties>"
            f"<Last-Modified>{email.utils.formatdate(stored.modified, usegmt=True)}</Last-Modified>"
            f"<Etag>0x{stored.version:X}</Etag><Content-Length>{len(stored.data)}</Content-Length>"
            f"<Content-MD5>{stored.md5()}</Content-MD5></Properties></Blob>"
            for key, stored in page.items()
        )
        text = (
            '\ufeff<?xml version="1.0" encoding="utf-8"?><EnumerationResults>'
            f"<Blobs>{blobs}</Blobs><NextMarker>{escape(token)}</NextMarker></EnumerationResults>"
        )
        handler.respond(200, text.encode(), {"Content-Type": "application/xml"})

    def _read(self, handler, key):
        if self.on_read:
            self.on_read(key)
        with self.lock:
            stored = self.objects.get(key)
        if stored is None:
            return self._error(handler, 404, "BlobNotFound", "The specified blob does not exist.")
        etag = f'"0x{stored.version:X}"'
        if handler.headers.get("If-Match", etag) != etag:
            return self._error(handler, 412, "ConditionNotMet", "The condition specified was not met.")
        status, headers, data = self.part(handler, stored.data)
        handler.respond(status, data, headers | {"ETag": etag})

    @staticmethod
    def _error(handler, status, code, message):
        text = f"\ufeff<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}\nRequestId:1</Message></Error>"
        handler.respond(status, text.encode(), {"x-ms-error-code": code})


class Emulator:
    """A program of somebody else's, to which objects are sent by HTTP."""

    def __init__(self, folder):
        self.port = servers.free_ports(1)[0]
        self.folder = folder
        self.process = None

    def start(self):
        self.folder.mkdir(exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, cwd=self.folder)
        servers.wait_until(self._responds, "the emulator responds", timeout=60)
        self.make_bucket()

    def _responds(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()
        with contextlib.suppress(OSError):
            self.send("GET", "/", None, {})
            return True
        return False

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None

    def send(self, method, path, data, headers):
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, data, headers, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=10) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()


class GoogleEmulator(Emulator):
    url, environment = FakeGoogle.url, FakeGoogle.environment
    name, cache, cannot_open = FakeGoogle.name, FakeGoogle.cache, FakeGoogle.cannot_open

    def command(self):
        start = ["start", "--host=127.0.0.1", f"--port={self.port}", "--in-memory", f"--default-bucket={BUCKET}"]
        return [sys.executable, "-m", "gcp_storage_emulator", *start]

    def make_bucket(self):
        pass

    def put(self, key, data):
        path = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={urllib.parse.quote(key, safe='')}"
        reply = self.send("POST", path, data, {"Content-Type": "application/octet-stream"})
        assert reply[0] == 200, reply


class Azurite(Emulator):
    url, environment = FakeAzure.url, FakeAzure.environment
    name, cache, cannot_open = FakeAzure.name, FakeAzure.cache, FakeAzure.cannot_open

    @staticmethod
    def program():
        installed = servers.ROOT / ".deps/azurite/node_modules/.bin/azurite-blob"
        return pathlib.Path(os.environ.get("NEREID_AZURITE") or installed)

    def command(self):
        options = ["--blobHost=127.0.0.1", f"--blobPort={self.port}", "--location=data", "--silent"]
        return [self.program(), *options, "--disableTelemetry"]

    def make_bucket(self):
        reply = self._signed("PUT", "", {"restype": "container"}, None, {})
        assert reply[0] == 201, reply

    def put(self, key, data):
        headers = {"x-ms-blob-type": "BlockBlob"}
        reply = self._signed("PUT", "/" + urllib.parse.quote(key), {}, data, headers)
        assert reply[0] == 201, reply

    def _signed(self, method, blob, query, data, headers):
        path = f"/{ACCOUNT}/{BUCKET}{blob}"
        now = email.utils.formatdate(usegmt=True)
        headers = {"x-ms-date": now, "x-ms-version": "2021-12-02", **headers}
        headers["Content-Type"] = "application/octet-stream"
        headers["Content-Length"] = str(len(data or b""))
        headers["Authorization"] = shared_key(method, path, query, headers)
        question = "?" + urllib.parse.urlencode(query) if query else ""
        return self.send(method, path + question, data or b"", headers)


def put_folder(store, folder, prefix=""):
    """Sends the files of a folder."""
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.is_file():
            store.put(prefix + str(path.relative_to(folder)), path.read_bytes())
