# SPDX-License-Identifier: Apache-2.0
"""What packages are made of: the table of parts, and what every package says about the project.

A part is the smallest thing that a user installs or leaves out. Each becomes one Debian package; a tarball,
an image or a wheel holds several.
"""

import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent

SUMMARY = "Inference server compatible with NVIDIA Triton"
LICENSE = "Apache-2.0"


class Failure(Exception):
    """What went wrong and what to do, for the user."""


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    summary: str
    # Components of the installation (cmake --install --component).
    components: tuple
    # Libraries of a framework that lie beside its backend: their component, and the folder in .deps that
    # they, their version and their licences come from.
    libraries: str = ""
    framework: str = ""
    # Debian packages without which it does not work, beyond what its libraries ask for.
    depends: tuple = ()
    recommends: tuple = ()


PARTS = {
    part.name: part
    for part in (
        Part(
            "nereid",
            SUMMARY,
            (
                "server",
                "cache-local",
                "cache-redis",
                "repoagent-checksum",
                "backend-identity",
                "backend-isolation",
            ),
            # Opened when an object store is first used or traces are sent.
            depends=("libcurl4", "ca-certificates"),
            recommends=("nereid-backend-onnxruntime",),
        ),
        Part(
            "nereid-backend-onnxruntime",
            "ONNX and Caffe2 models for Nereid",
            ("backend-onnxruntime", "backend-caffe2"),
            libraries="backend-onnxruntime-libraries",
            framework="onnxruntime",
        ),
        Part(
            "nereid-backend-python",
            "models in Python for Nereid",
            ("backend-python",),
            depends=("python3", "python3-numpy"),
        ),
        Part(
            "nereid-backend-pytorch",
            "PyTorch models for Nereid",
            ("backend-pytorch",),
            libraries="backend-pytorch-libraries",
            framework="pytorch",
            recommends=("nereid-backend-python",),
        ),
        Part(
            "nereid-backend-tensorflow",
            "TensorFlow models for Nereid",
            ("backend-tensorflow",),
            libraries="backend-tensorflow-libraries",
            framework="tensorflow",
        ),
        Part(
            "nereid-backend-openvino",
            "OpenVINO models for Nereid",
            ("backend-openvino",),
            libraries="backend-openvino-libraries",
            framework="openvino",
        ),
        Part("nereid-backend-tensorrt", "TensorRT plans for Nereid", ("backend-tensorrt",)),
        Part(
            "nereid-backends-trial",
            "small backends to try out the schedulers of Nereid",
            tuple(
                f"backend-{name}"
                for name in (
                    "dyna_sequence",
                    "implicit_state",
                    "iterative_sequence",
                    "repeat",
                    "sequence",
                    "square",
                )
            ),
        ),
        Part(
            "nereid-library",
            "the server of Nereid as a library",
            ("embedding",),
        ),
        # For the Python that the build found: Debian's own on Debian.
        Part(
            "python3-nereid",
            "Python functions as models, and the server inside Python programs",
            ("python-package",),
            depends=("nereid-library", "python3 (>= 3.11)", "python3 (<< 3.12)", "python3-numpy"),
        ),
        Part(
            "nereid-dev",
            "headers to write backends for Nereid",
            ("development",),
            depends=("nereid-library",),
        ),
    )
}

# What the program takes in when it is linked, or uses the headers of: the Debian package that it comes
# from, and its licence.
TAKEN_IN = {
    "libprotobuf-dev": "BSD-3-Clause",
    "libre2-dev": "BSD-3-Clause",
    "libpugixml-dev": "MIT",
    "libspdlog-dev": "MIT",
    "libfmt-dev": "MIT",
    "libboost1.81-dev": "BSL-1.0",
    "libcli11-dev": "BSD-3-Clause",
    "rapidjson-dev": "MIT",
    "libfast-float-dev": "Apache-2.0 OR MIT",
    "libxxhash-dev": "BSD-2-Clause",
    "prometheus-cpp-dev": "MIT",
}

# The licences of libraries that packages bring along, by Debian's source package.
LICENSES = {
    "brotli": "MIT",
    "curl": "curl",
    "cyrus-sasl2": "BSD-4-Clause",
    "e2fsprogs": "MIT",
    "fmtlib": "MIT",
    "gcc-12": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "glibc": "LGPL-2.1-or-later",
    "gmp": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "gnutls28": "LGPL-2.1-or-later",
    "hiredis": "BSD-3-Clause",
    "jemalloc": "BSD-2-Clause",
    "keyutils": "LGPL-2.1-or-later",
    "krb5": "MIT",
    "libffi": "MIT",
    "libidn2": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libpsl": "MIT",
    "libssh2": "BSD-3-Clause",
    "libtasn1-6": "LGPL-2.1-or-later",
    "libunistring": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libzstd": "BSD-3-Clause",
    "nettle": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "nghttp2": "MIT",
    "openldap": "OLDAP-2.8",
    "openssl": "Apache-2.0",
    "p11-kit": "BSD-3-Clause",
    "prometheus-cpp": "MIT",
    "protobuf": "BSD-3-Clause",
    "pugixml": "MIT",
    "re2": "BSD-3-Clause",
    "rtmpdump": "LGPL-2.1-or-later",
    "zlib": "Zlib",
}

# The frameworks: how their packages are called, and their licences.
FRAMEWORKS = {
    "onnxruntime": ("ONNX Runtime", "MIT"),
    "pytorch": ("PyTorch", "BSD-3-Clause"),
    "tensorflow": ("TensorFlow", "Apache-2.0"),
    "openvino": ("OpenVINO", "Apache-2.0"),
}


def project_version():
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"project\(nereid VERSION ([0-9.]+)", text)[1]


def framework_version(framework):
    """The pinned version that tools/setup installs into .deps."""
    if framework == "onnxruntime":
        return re.search(r"(?m)^onnxruntime==(\S+)", (ROOT / "tools/requirements.txt").read_text())[1]
    table = (ROOT / "tools/frameworks.py").read_text()
    return re.search(rf'(?s)"{framework}": Framework\(\s*title="\S+ ([0-9.]+)', table)[1]
