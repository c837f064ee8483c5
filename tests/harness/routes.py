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
        ("GET", "/v1/models"),
        ("GET", "/v1/models/m"),
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/completions"),
        ("POST", "/v1/embeddings"),
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
        ("GET", "/v2/repository/models/m/traffic"),
        ("POST", "/v2/repository/models/m/traffic"),
        ("GET", "/v2/repository/r/models/m/traffic"),
        ("POST", "/v2/repository/r/models/m/traffic"),
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

# The routes of the console beside the API, with the scope that each needs: method, path, scope. Its files need none.
CONSOLE_ROUTES = [
    ("GET", "/ui/api/history", "metrics"),
    ("GET", "/ui/api/live", "metrics"),
    ("GET", "/ui/api/models", "metadata"),
    ("GET", "/ui/api/models/m", "metadata"),
    ("GET", "/ui/api/models/m/sequences", "trace-log"),
    ("GET", "/ui/api/models/m/explanation", "metadata"),
    ("GET", "/ui/api/log", "trace-log"),
    ("GET", "/ui/api/traces", "trace-log"),
    ("GET", "/ui/api/traces/1", "trace-log"),
]

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

# The scope that a sender needs (--api-keys) by category; what differs from its category, after that.
SCOPES = {
    "health": "health",
    "metadata": "metadata",
    "inference": "infer",
    "shared-memory": "shared-memory",
    "model-config": "metadata",
    "model-repository": "model-control",
    "statistics": "metadata",
    "trace": "trace-log",
    "logging": "trace-log",
}
GRANTABLE_SCOPES = ["infer", "metadata", "metrics", "model-control", "shared-memory", "trace-log", "admin"]
# What an admin listener takes away from the other ports.
CONTROL_SCOPES = ["model-control", "trace-log", "admin"]


def scope_of(category, name):
    """The scope for a path or an RPC of the category. The index of the repository only reads."""
    if name.endswith("/index") or name == "RepositoryIndex":
        return "metadata"
    return SCOPES[category]
