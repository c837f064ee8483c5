# SPDX-License-Identifier: Apache-2.0
"""Every route and every RPC there is, by the category of --http-restricted-api."""

# Every route of the HTTP front end by category: method and path.
ROUTES = {
    "health": [
        ("GET", "/v2/health/live"),
        ("GET", "/v2/health/ready"),
        ("GET", "/v2/models/m/ready"),
        ("GET", "/v2/models/m/versions/1/ready"),
    ],
    "metadata": [
        ("GET", "/v2"),
        ("GET", "/v2/models/m"),
        ("GET", "/v2/models/m/versions/1"),
        ("GET", "/openapi.json"),
    ],
    "inference": [
        ("POST", "/v2/models/m/infer"),
        ("POST", "/v2/models/m/versions/1/infer"),
        ("POST", "/v2/models/m/generate"),
        ("POST", "/v2/models/m/versions/1/generate"),
        ("POST", "/v2/models/m/generate_stream"),
        ("POST", "/v2/models/m/versions/1/generate_stream"),
    ],
    "shared-memory": [
        (method, f"/v2/{kind}sharedmemory/{action}")
        for kind in ("system", "cuda")
        for method, action in (
            ("GET", "status"),
            ("GET", "region/r/status"),
            ("POST", "region/r/register"),
            ("POST", "region/r/unregister"),
            ("POST", "unregister"),
        )
    ],
    "model-config": [("GET", "/v2/models/m/config"), ("GET", "/v2/models/m/versions/1/config")],
    "model-repository": [
        ("POST", "/v2/repository/index"),
        ("POST", "/v2/repository/r/index"),
        ("POST", "/v2/repository/models/m/load"),
        ("POST", "/v2/repository/r/models/m/load"),
        ("POST", "/v2/repository/models/m/unload"),
        ("POST", "/v2/repository/r/models/m/unload"),
    ],
    "statistics": [
        ("GET", "/v2/models/stats"),
        ("GET", "/v2/models/m/stats"),
        ("GET", "/v2/models/m/versions/1/stats"),
    ],
    "trace": [
        ("GET", "/v2/trace/setting"),
        ("POST", "/v2/trace/setting"),
        ("GET", "/v2/models/m/trace/setting"),
        ("POST", "/v2/models/m/trace/setting"),
    ],
    "logging": [("GET", "/v2/logging"), ("POST", "/v2/logging")],
}

# Every RPC by category.
RPCS = {
    "health": ["ServerLive", "ServerReady", "ModelReady"],
    "metadata": ["ServerMetadata", "ModelMetadata"],
    "inference": ["ModelInfer", "ModelStreamInfer"],
    "shared-memory": [
        f"{kind}SharedMemory{action}"
        for kind in ("System", "Cuda")
        for action in ("Status", "Register", "Unregister")
    ],
    "model-config": ["ModelConfig"],
    "model-repository": ["RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload"],
    "statistics": ["ModelStatistics"],
    "trace": ["TraceSetting"],
    "logging": ["LogSettings"],
}
