# SPDX-License-Identifier: Apache-2.0
"""A collector of OpenTelemetry on this machine, for tests of what servers send to one."""

import http.server
import queue
import ssl
import threading

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector(http.server.ThreadingHTTPServer):
    """Takes spans as a collector does, and decodes them with the published message classes."""

    def __init__(self, certificate=None):
        super().__init__(("127.0.0.1", 0), Collector.Handler)
        self.requests = queue.Queue()
        self.statuses = queue.Queue()  # of the next replies; 200 when there is none
        self.scheme = ""
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate.cert, certificate.key)
            # Each connection's own thread shakes hands, so that a failed one ends nothing else.
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
            self.scheme = "https://"
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.requests.put((self.path, self.headers["Content-Type"], body))
            try:
                status = self.server.statuses.get_nowait()
            except queue.Empty:
                status = 200
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    def handle_error(self, request, client_address):
        """A client that does not trust the certificate is the test's business."""

    @property
    def url(self):
        return f"{self.scheme}127.0.0.1:{self.server_port}/v1/traces"

    def next(self):
        path, kind, body = self.requests.get(timeout=30)
        assert (path, kind) == ("/v1/traces", "application/x-protobuf")
        (resource_spans,) = ExportTraceServiceRequest.FromString(body).resource_spans
        (scope_spans,) = resource_spans.scope_spans
        assert scope_spans.scope.name == "triton-server"
        resource = {a.key: a.value.string_value for a in resource_spans.resource.attributes}
        return resource, list(scope_spans.spans)


def collect(collector, count):
    """At least so many spans, and the resource that the last of them came with."""
    spans = []
    while len(spans) < count:
        resource, more = collector.next()
        spans += more
    return resource, spans
