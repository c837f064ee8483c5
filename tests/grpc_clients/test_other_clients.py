# SPDX-License-Identifier: Apache-2.0
"""grpc++ and grpc-go against the server: each client is a program that checks for itself."""

import os
import pathlib
import shutil
import subprocess

import pytest
from harness import server as servers

HERE = pathlib.Path(__file__).resolve().parent


def run(command, **options):
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=500, **options
    )
    assert done.returncode == 0, done.stdout
    assert "FAILED" not in done.stdout and "ok stream" in done.stdout, done.stdout


def test_grpc_cpp(server):
    client = os.environ.get("NEREID_GRPC_CPP_CLIENT")
    client = pathlib.Path(client) if client else servers.build_folder() / "tests/grpc_clients/grpc_cpp_client"
    if not client.exists():
        pytest.skip("the build has no grpc++ client (libgrpc++-dev, protobuf-compiler-grpc)")
    # In a build with ThreadSanitizer the client has it, too; gRPC's own library has not.
    options = os.environ.get("TSAN_OPTIONS", "") + " report_bugs=0"
    run([client, server.grpc], env={**os.environ, "TSAN_OPTIONS": options})


def test_grpc_go(server):
    if shutil.which("go") is None:
        pytest.skip("no Go toolchain")
    run(["go", "run", ".", server.grpc], cwd=HERE / "go")
