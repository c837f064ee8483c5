# SPDX-License-Identifier: Apache-2.0
"""The chart of deploy/helm: what Helm makes of values, what each option changes, and what is refused; and the manifests
of deploy/kubernetes, which are made of it."""

import contextlib
import json
import pathlib
import re

import charts
import pytest
import schemas
import yaml

SECURE = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
PEERS = [{"namespaceSelector": {"matchLabels": {"team": "clients"}}}]
ALL_OF_METRICS = {"metrics": {name: {"enabled": True} for name in ("serviceMonitor", "prometheusRule", "dashboard")}}
# Sets of values as users have them.
SETS = {
    "default": {},
    "claim": {"models": {"persistentVolumeClaim": "models", "controlMode": "poll", "pollSeconds": 5}},
    "on demand": {"models": {
        "repositories": ["s3://bucket"], "controlMode": "ondemand", "pollSeconds": 60, "loadModels": ["a"],
        "onDemand": {"memoryBudget": "12Gi", "gpuMemoryBudget": "100000000000000", "loadWaitSeconds": 20,
                     "minStaySeconds": 0, "idleSeconds": 900, "pinModels": ["b", "c d"]}}},
    "config map": {"models": {"configMap": {"name": "m", "items": [{"key": "a", "path": "digits/1/model.onnx"}]}}},
    "bucket": {
        "models": {"repositories": ["s3://bucket/models", "gs://bucket"]},
        "credentials": {"environmentSecret": "aws", "fileSecret": "clouds"},
        "cache": {"type": "persistentVolumeClaim", "size": "100Gi", "storageClass": "fast"},
        "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn"}},
    },
    "keys": {"apiKeys": {"existingSecret": "keys"}, "tls": {"existingSecret": "tls"}, "admin": {"port": 9003}},
    "hpa": {"autoscaling": {"enabled": True, "targetPendingRequests": 4}},
    "keda": {"keda": {"enabled": True}, **ALL_OF_METRICS},
    "gpu": {"gpu": {"count": 2}, "runtimeClassName": "nvidia", "sharedMemory": "1Gi",
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]},
    "closed": {"networkPolicy": {"from": PEERS, "metricsFrom": PEERS, "egress": [{"ports": [{"port": 443}]}]},
               "service": {"headless": False, "sessionAffinity": "ClientIP"}},
    "extras": {
        "extraArgs": ["--max-requests=1000"], "extraEnv": [{"name": "A", "value": "b"}],
        "extraEnvFrom": [{"configMapRef": {"name": "c"}}], "extraVolumes": [{"name": "v", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "v", "mountPath": "/v"}],
        "initContainers": [{"name": "fetch", "image": "fetch:1"}], "podAnnotations": {"a": "b"}, "podLabels": {"c": "d"},
        "nodeSelector": {"disk": "fast"}, "priorityClassName": "high", "imagePullSecrets": [{"name": "registry"}],
        "fullnameOverride": "inference", "shutdown": {"preStopSleepSeconds": 3}, "probes": {"grpc": True},
    },
    "folder": {"models": {"persistentVolumeClaim": "models", "folder": "production/models"}},
    "grpc alone": {"extraArgs": ["--allow-http=false"], "probes": {"grpc": True, "timeoutSeconds": 7}, "admin": {"port": 9003}},
    "few": {"metrics": {"enabled": False}, "networkPolicy": {"enabled": False}, "podDisruptionBudget": {"enabled": False},
            "serviceAccount": {"create": False}, "admin": {"enabled": False}, "replicaCount": 1},
}  # fmt: skip


def of_kind(made, kind, suffix=""):
    """The object of a kind, whose name may end in a suffix; None if there is none."""
    found = [one for one in made if one["kind"] == kind and one["metadata"]["name"].endswith(suffix)]
    return min(found, key=lambda one: len(one["metadata"]["name"]), default=None)


class Pod:
    """What the Deployment says of its pods."""

    def __init__(self, made):
        self.deployment = of_kind(made, "Deployment")
        self.spec = self.deployment["spec"]["template"]["spec"]
        (self.container,) = self.spec["containers"]
        self.args = self.container["args"]
        self.mounts = {mount["mountPath"]: mount["name"] for mount in self.container["volumeMounts"]}
        self.volumes = {volume["name"]: volume for volume in self.spec["volumes"]}
        self.environment = {one["name"]: one.get("value") for one in self.container.get("env", [])}

    def mounted(self, path):
        return self.volumes[self.mounts[path]]


@pytest.fixture(scope="module")
def render(helm):
    return lambda values=None, **options: helm.objects(values, **{"name": "nereid", "namespace": "default", **options})


@pytest.mark.parametrize("values", SETS.values(), ids=SETS)
def test_helm_finds_nothing_wrong(helm, values):
    assert [text for severity, text in helm.lint(values) if severity > 1] == []


@pytest.mark.parametrize("values", SETS.values(), ids=SETS)
def test_objects_have_the_fields_of_kubernetes(render, values):
    made = render(values)
    assert [found for one in made for found in schemas.check(one)] == []
    # What holds together by names and labels.
    pods = of_kind(made, "Deployment")["spec"]["template"]["metadata"]["labels"]
    names = {port["name"] for port in Pod(made).container["ports"]}
    for one in made:
        if one["kind"] == "Service":
            assert one["spec"]["selector"].items() <= pods.items()
            assert {port["targetPort"] for port in one["spec"]["ports"]} <= names
    pod = Pod(made)
    assert set(pod.mounts.values()) == set(pod.volumes)
    assert len({(one["kind"], one["metadata"]["name"]) for one in made}) == len(made)


@pytest.mark.parametrize("values", SETS.values(), ids=SETS)
def test_pods_are_not_root_and_write_nowhere_but_to_their_volumes(render, values):
    pod = Pod(render(values))
    assert pod.spec["securityContext"]["runAsNonRoot"] and pod.spec["securityContext"]["runAsUser"] == 65532
    assert pod.spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod.container["securityContext"] == SECURE
    assert pod.spec["automountServiceAccountToken"] is False
    assert "emptyDir" in pod.mounted("/tmp")


def test_a_field_that_kubernetes_does_not_have_would_be_noticed(render):
    made = of_kind(render(), "Deployment")
    made["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    made["spec"]["replicas"] = "2"
    del made["spec"]["selector"]
    assert len(schemas.check(made)) == 3


def test_probes_ask_what_they_are_for(render):
    container = Pod(render()).container
    asked = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")}
    assert asked == {"startup": "/v2/health/live", "liveness": "/v2/health/live", "readiness": "/v2/health/ready"}
    patient = Pod(render({"probes": {"startupSeconds": 600}})).container["startupProbe"]
    assert patient["periodSeconds"] * patient["failureThreshold"] == 600
    with_tls = Pod(render({"tls": {"existingSecret": "tls"}})).container
    assert with_tls["livenessProbe"]["httpGet"]["scheme"] == "HTTPS"


def test_probes_over_grpc_ask_nothing_over_http_and_do_not_end_what_is_not_ready(render):
    container = Pod(render({"ports": {"grpc": 9001}, **SETS["grpc alone"]})).container
    assert container["readinessProbe"]["grpc"] == {"port": 9001}
    for name in ("startup", "liveness"):
        # gRPC's health service says whether a server is ready and nothing else.
        assert not {"httpGet", "grpc"} & set(container[f"{name}Probe"])
        asked = container[f"{name}Probe"]["exec"]["command"]
        assert asked == ["nereid", "health", "--live", "--url=http://127.0.0.1:9003", "--timeout=7s"]
    assert of_kind(render(), "Pod") is not None
    # `helm test` could only ask over HTTP.
    assert of_kind(render(SETS["grpc alone"]), "Pod") is None


def test_helm_test_trusts_the_certificate_that_the_pods_have(render):
    tester = of_kind(render(SETS["keys"]), "Pod")["spec"]
    (container,) = tester["containers"]
    assert {"--url=https://nereid:8000", "--ca=/etc/nereid/tls/tls.crt"} <= set(container["args"])
    (mount,), (volume,) = container["volumeMounts"], tester["volumes"]
    assert mount["mountPath"] == "/etc/nereid/tls" and mount["name"] == volume["name"]
    assert volume["secret"] == {"secretName": "tls", "items": [{"key": "tls.crt", "path": "tls.crt"}]}
    assert not any("--ca" in arg for arg in of_kind(render(), "Pod")["spec"]["containers"][0]["args"])


# A label of a Service's name: https://kubernetes.io/docs/concepts/overview/working-with-objects/names
LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
RELEASES = ("123", "1e5", "0x1f", "a.b", "1.5", "yes", "null", "x" * 53)


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_may_be_called_as_helm_permits(helm, release):
    everything = {**SETS["hpa"], **ALL_OF_METRICS, "models": SETS["bucket"]["models"], "cache": {"type": "persistentVolumeClaim"}}
    for values in (everything, {**SETS["keda"], "nameOverride": "yes"}):
        made = helm.objects(values, name=release, namespace="default")
        assert [found for one in made for found in schemas.check(one)] == []
        for one in made:
            assert LABEL.fullmatch(one["metadata"]["name"]), one["metadata"]["name"]
            assert all(isinstance(value, str) for value in one["metadata"]["labels"].values())
        deployment = of_kind(made, "Deployment")
        name, labels = deployment["metadata"]["name"], deployment["spec"]["selector"]["matchLabels"]
        assert labels["app.kubernetes.io/instance"] == release
        assert labels["app.kubernetes.io/name"] == values.get("nameOverride", "nereid")
        # What is referred to by its name.
        assert Pod(made).spec["serviceAccountName"] == of_kind(made, "ServiceAccount")["metadata"]["name"] == name
        scaler = of_kind(made, "HorizontalPodAutoscaler") or of_kind(made, "ScaledObject")
        assert scaler["spec"]["scaleTargetRef"]["name"] == name
        assert {one["metadata"]["name"] for one in made if one["kind"] == "Service"} == {name, f"{name}-pods", f"{name}-metrics"}


def test_names_that_yaml_takes_for_something_else_arrive_as_they_are(render):
    values = {"serviceAccount": {"create": False, "name": "123"}, "runtimeClassName": "1e5", "priorityClassName": "yes"}
    pod = Pod(render(values)).spec
    assert (pod["serviceAccountName"], pod["runtimeClassName"], pod["priorityClassName"]) == ("123", "1e5", "yes")
    made = render({"serviceAccount": {"name": "123"}, "fullnameOverride": "null"})
    assert of_kind(made, "ServiceAccount")["metadata"]["name"] == "123"
    assert of_kind(made, "Deployment")["metadata"]["name"] == "null"


def test_the_grace_period_is_as_long_as_the_server_may_take(render):
    shutdown = {"preStopSleepSeconds": 7, "drainSeconds": 20, "exitTimeoutSeconds": 100}
    pod = Pod(render({"shutdown": shutdown}))
    assert "--drain-secs=20" in pod.args and "--exit-timeout-secs=100" in pod.args
    assert pod.container["lifecycle"] == {"preStop": {"sleep": {"seconds": 7}}}
    assert sum(shutdown.values()) < pod.spec["terminationGracePeriodSeconds"] <= sum(shutdown.values()) + 10
    pod = Pod(render())
    assert "lifecycle" not in pod.container
    # Who balances by readiness notices in time.
    drain = int(next(a for a in pod.args if a.startswith("--drain-secs=")).split("=")[1])
    readiness = pod.container["readinessProbe"]
    assert drain > readiness["periodSeconds"] * readiness["failureThreshold"] + readiness["timeoutSeconds"]


def test_models_come_from_a_claim_a_config_map_or_a_store(render):
    pod = Pod(render(SETS["claim"]))
    assert pod.mounted("/models")["persistentVolumeClaim"] == {"claimName": "models", "readOnly": True}
    assert {"--model-repository=/models", "--model-control-mode=poll", "--repository-poll-secs=5"} <= set(pod.args)
    (mount,) = [one for one in Pod(render(SETS["folder"])).container["volumeMounts"] if one["name"] == "models"]
    assert mount == {"name": "models", "mountPath": "/models", "readOnly": True, "subPath": "production/models"}
    pod = Pod(render(SETS["config map"]))
    assert pod.mounted("/models")["configMap"]["items"] == [{"key": "a", "path": "repository/digits/1/model.onnx"}]
    assert "--model-repository=/models/repository" in pod.args
    pod = Pod(render(SETS["bucket"]))
    assert {"--model-repository=s3://bucket/models", "--model-repository=gs://bucket"} <= set(pod.args)
    assert "/models" not in pod.mounts
    chosen = {"models": {"controlMode": "explicit", "loadModels": ["a", "b"], "strictReadiness": False, "exitOnError": False}}
    pod = Pod(render(chosen))
    assert {"--load-model=a", "--load-model=b", "--strict-readiness=false", "--exit-on-error=false"} <= set(pod.args)


def test_models_on_demand_have_their_budgets_and_times(render):
    args = Pod(render(SETS["on demand"])).args
    first = args.index("--model-control-mode=ondemand")
    assert args[first + 1 : first + 10] == [
        "--repository-poll-secs=60", "--model-memory-budget=12884901888", "--model-gpu-memory-budget=100000000000000",
        "--load-wait-secs=20", "--model-min-stay-secs=0", "--model-idle-secs=900", "--pin-model=b", "--pin-model=c d",
        "--load-model=a"]  # fmt: skip
    plain = Pod(render({"models": {"controlMode": "ondemand"}})).args
    assert {"--model-memory-budget=0", "--model-gpu-memory-budget=0", "--load-wait-secs=30"} <= set(plain)
    # Other modes refuse these flags.
    ours = ("--model-memory-budget", "--load-wait-secs", "--model-idle-secs", "--pin-model")
    for values in (SETS["default"], SETS["claim"]):
        assert [arg for arg in Pod(render(values)).args if arg.startswith(ours)] == []


def test_access_to_stores_comes_from_secrets_and_copies_go_to_the_cache(render):
    made = render(SETS["bucket"])
    pod = Pod(made)
    assert pod.container["envFrom"] == [{"secretRef": {"name": "aws"}}]
    assert pod.environment["TRITON_CLOUD_CREDENTIAL_PATH"] == "/etc/nereid/credentials/credentials.json"
    assert pod.mounted("/etc/nereid/credentials")["secret"] == {"secretName": "clouds"}
    for cloud in ("AWS", "GCS", "AZURE"):
        assert pod.environment[f"TRITON_{cloud}_MOUNT_DIRECTORY"] == "/var/cache/nereid"
    claim = of_kind(made, "PersistentVolumeClaim")
    assert pod.mounted("/var/cache/nereid")["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "100Gi"
    assert claim["spec"]["storageClassName"] == "fast"
    assert of_kind(made, "ServiceAccount")["metadata"]["annotations"] == {"eks.amazonaws.com/role-arn": "arn"}
    stores = {"models": {"repositories": ["as://account/container", "azure://account/other"]}}
    assert Pod(render(stores)).mounted("/var/cache/nereid")["emptyDir"] == {"sizeLimit": "10Gi"}
    for store in ("s3", "gs", "as", "azure"):
        pod = Pod(render({"models": {"repositories": [f"{store}://place/models"]}}))
        assert "emptyDir" in pod.mounted("/var/cache/nereid"), store
        assert pod.environment["TRITON_AZURE_MOUNT_DIRECTORY"] == "/var/cache/nereid"
    own = render({**stores, "cache": {"type": "persistentVolumeClaim", "existingClaim": "mine"}})
    assert of_kind(own, "PersistentVolumeClaim") is None
    assert Pod(own).mounted("/var/cache/nereid")["persistentVolumeClaim"] == {"claimName": "mine"}


def test_the_admin_listener_stays_in_the_pod(render):
    for values in ({}, SETS["keys"]):
        made = render(values)
        pod = Pod(made)
        assert "--admin-address=127.0.0.1" in pod.args
        port = values.get("admin", {}).get("port", 8003)
        assert f"--admin-port={port}" in pod.args
        ports = [p["port"] for one in made if one["kind"] == "Service" for p in one["spec"]["ports"]]
        assert port not in ports + [p["containerPort"] for p in pod.container["ports"]]
    assert "--api-keys=/etc/nereid/access/keys.json" in pod.args
    assert pod.mounted("/etc/nereid/access")["secret"] == {"secretName": "keys"}
    assert "--grpc-server-cert=/etc/nereid/tls/tls.crt" in pod.args and "--http-use-ssl=true" in pod.args
    assert not any("--admin" in arg for arg in Pod(render(SETS["few"])).args)


def test_something_scales_the_pods_or_their_number_is_given(render):
    assert of_kind(render(), "Deployment")["spec"]["replicas"] == 2
    assert of_kind(render({"replicaCount": 5}), "Deployment")["spec"]["replicas"] == 5
    for kind in ("hpa", "keda"):
        assert "replicas" not in of_kind(render(SETS[kind]), "Deployment")["spec"]
    scaler = of_kind(render(SETS["hpa"]), "HorizontalPodAutoscaler")["spec"]
    assert scaler["scaleTargetRef"]["name"] == "nereid" and (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 10)
    cpu, pending = scaler["metrics"]
    assert cpu["resource"]["target"]["averageUtilization"] == 70
    assert pending["pods"]["metric"]["name"] == "nv_inference_pending_request_count"
    assert pending["pods"]["target"]["averageValue"] == "4"
    made = render(SETS["keda"], namespace="prod")
    query = of_kind(made, "ScaledObject")["spec"]["triggers"][0]["metadata"]["query"]
    service = of_kind(made, "Service", "-metrics")["metadata"]["name"]
    assert query == f'sum(nv_inference_pending_request_count{{namespace="prod", service="{service}"}})'
    own = render({"keda": {"enabled": True, "query": "up", "targetCPU": 0}})
    assert [one["metadata"].get("query") for one in of_kind(own, "ScaledObject")["spec"]["triggers"]] == ["up"]
    none = render({"keda": {"enabled": True, "query": "up", "minReplicas": 0}})
    assert of_kind(none, "ScaledObject")["spec"]["minReplicaCount"] == 0


def test_metrics_are_scraped_under_the_names_of_the_rules(render):
    made = render(SETS["keda"])
    monitor = of_kind(made, "ServiceMonitor")["spec"]
    service = of_kind(made, "Service", "-metrics")
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    others = [one for one in made if one["kind"] == "Service" and one is not service]
    assert not any(monitor["selector"]["matchLabels"].items() <= one["metadata"]["labels"].items() for one in others)
    (endpoint,) = monitor["endpoints"]
    assert endpoint["port"] == service["spec"]["ports"][0]["name"] == "metrics"
    assert {"targetLabel": "job", "replacement": "nereid"} in endpoint["relabelings"]
    assert "authorization" not in endpoint
    with_key = {"enabled": True, "authorization": {"existingSecret": "scraper", "key": "nereid"}}
    (endpoint,) = of_kind(render({"metrics": {"serviceMonitor": with_key}}), "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["authorization"] == {"type": "Bearer", "credentials": {"name": "scraper", "key": "nereid"}}
    rules = yaml.safe_load((charts.DEPLOY / "prometheus" / "rules.yml").read_text())
    assert of_kind(made, "PrometheusRule")["spec"] == rules
    dashboard = of_kind(made, "ConfigMap", "-dashboard")
    assert json.loads(dashboard["data"]["nereid.json"]) == json.loads((charts.DEPLOY / "grafana" / "nereid.json").read_text())
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    few = render(SETS["few"])
    assert "--allow-metrics=false" in Pod(few).args and of_kind(few, "Service", "-metrics") is None


def test_the_network_policy_says_who_reaches_what(render):
    policy = of_kind(render(), "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress"]
    assert [[port["port"] for port in rule["ports"]] for rule in policy["ingress"]] == [["http", "grpc"], ["metrics"]]
    policy = of_kind(render(SETS["closed"]), "NetworkPolicy")["spec"]
    assert [rule["from"] for rule in policy["ingress"]] == [PEERS, PEERS]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert [[port["port"] for port in rule["ports"]] for rule in policy["egress"]] == [[53, 53], [443]]
    assert of_kind(render(SETS["few"]), "NetworkPolicy") is None


def test_gpus_and_extras_arrive(render):
    pod = Pod(render(SETS["gpu"]))
    assert pod.container["resources"]["limits"] == {"memory": "2Gi", "nvidia.com/gpu": 2}
    assert pod.spec["runtimeClassName"] == "nvidia" and pod.spec["tolerations"][0]["operator"] == "Exists"
    assert pod.mounted("/dev/shm")["emptyDir"] == {"medium": "Memory", "sizeLimit": "1Gi"}
    made = render(SETS["extras"])
    pod = Pod(made)
    assert pod.args[-1] == "--max-requests=1000"
    assert pod.environment == {"A": "b"} and pod.container["envFrom"] == [{"configMapRef": {"name": "c"}}]
    assert "emptyDir" in pod.mounted("/v")
    assert pod.spec["initContainers"] == [{"name": "fetch", "image": "fetch:1"}]
    assert pod.spec["priorityClassName"] == "high" and pod.spec["nodeSelector"] == {"disk": "fast"}
    assert pod.spec["imagePullSecrets"] == [{"name": "registry"}]
    metadata = pod.deployment["spec"]["template"]["metadata"]
    assert metadata["annotations"] == {"a": "b"} and metadata["labels"]["c"] == "d"
    assert pod.deployment["metadata"]["name"] == "inference"


def test_a_disruption_leaves_a_pod_in_service(render):
    budget = of_kind(render(), "PodDisruptionBudget")["spec"]
    assert budget["maxUnavailable"] == 1 and budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert of_kind(render(SETS["few"]), "PodDisruptionBudget") is None
    assert of_kind(render(), "Deployment")["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


WRONG = {
    "a text for a number": ({"replicaCount": "two"}, "/replicaCount"),
    "a misspelt value": ({"replicas": 3}, "'replicas' not allowed"),
    "a misspelt value inside": ({"models": {"controlmode": "poll"}}, "'controlmode' not allowed"),
    "an unknown mode": ({"models": {"controlMode": "sometimes"}}, "/models/controlMode"),
    "an unknown store": ({"models": {"repositories": ["ftp://host/models"]}}, "/models/repositories/0"),
    "a port beyond all ports": ({"ports": {"http": 80000}}, "/ports/http"),
    "a size without a unit that is one": ({"cache": {"size": "10 gigabytes"}}, "/cache/size"),
    "a tag in the name of the image": ({"image": {"repository": "registry/nereid:1"}}, "/image/repository"),
    "a flag without dashes": ({"extraArgs": ["max-requests=1"]}, "/extraArgs/0"),
    "a negative time": ({"shutdown": {"drainSeconds": -1}}, "/shutdown/drainSeconds"),
    "a type of service": ({"service": {"type": "Loadbalancer"}}, "/service/type"),
    "a name with capitals": ({"apiKeys": {"existingSecret": "My_Keys"}}, "/apiKeys/existingSecret"),
    "two that scale": ({"autoscaling": {"enabled": True}, "keda": {"enabled": True}}, "choose one"),
    "nothing to scale by": ({"autoscaling": {"enabled": True, "targetCPU": 0}}, "nothing to scale by"),
    "less at most than at least": ({"keda": {"minReplicas": 20}}, "more than keda.maxReplicas"),
    "two sources at one place": (
        {"models": {"persistentVolumeClaim": "a", "configMap": {"name": "b", "items": [{"key": "k", "path": "m/1/f"}]}}},
        "choose one"),
    "a config map without files": ({"models": {"configMap": {"name": "m"}}}, "items is empty"),
    "models to load, and no mode that loads": ({"models": {"loadModels": ["a"]}}, "controlMode explicit"),
    "all models at once on demand": ({"models": {"controlMode": "ondemand", "loadModels": ["*"]}}, "leave * out"),
    "a budget without models on demand": (
        {"models": {"onDemand": {"memoryBudget": "1Gi"}}}, "onDemand.memoryBudget needs models.controlMode ondemand"),
    "a pinned model without models on demand": (
        {"models": {"onDemand": {"pinModels": ["a"]}}}, "onDemand.pinModels needs models.controlMode ondemand"),
    "a budget in a unit that is none": ({"models": {"onDemand": {"memoryBudget": "1 GB"}}}, "/models/onDemand/memoryBudget"),
    "no time to wait for a model": ({"models": {"onDemand": {"loadWaitSeconds": 0}}}, "/models/onDemand/loadWaitSeconds"),
    "rules without metrics": ({"metrics": {"enabled": False, "prometheusRule": {"enabled": True}}}, "metrics.enabled is false"),
    "no pods, and nothing that says when to start one": ({"keda": {"enabled": True, "minReplicas": 0}}, "set keda.query"),
    "a folder of no claim": ({"models": {"folder": "a"}}, "models.persistentVolumeClaim is not"),
    "a folder outside of the claim": ({"models": {"persistentVolumeClaim": "m", "folder": "../a"}}, "/models/folder"),
    "a name that no Service may have": ({"fullnameOverride": "1a"}, "/fullnameOverride"),
    "pods without HTTP that are asked over it": ({"extraArgs": ["--allow-http=FALSE"]}, "set probes.grpc"),
    "nothing that says whether a pod is live": (
        {"probes": {"grpc": True}, "admin": {"enabled": False}}, "set admin.enabled"),
    "a probe over gRPC with TLS": ({"probes": {"grpc": True}, "tls": {"existingSecret": "t"}}, "without TLS only"),
}  # fmt: skip


@pytest.mark.parametrize("values, said", WRONG.values(), ids=WRONG)
def test_a_wrong_value_is_refused_and_named(render, values, said):
    with pytest.raises(charts.Refused) as refused:
        render(values)
    assert said in str(refused.value)


def test_every_value_has_a_type_and_every_type_a_value():
    """The schema and values.yaml know the same values."""

    def paths(schema, path=()):
        for name, part in schema.get("properties", {}).items():
            if name != "global":
                yield (*path, name)
                yield from paths(part, (*path, name))

    values = yaml.safe_load((charts.CHART / "values.yaml").read_text())
    missing = []
    for path in paths(json.loads((charts.CHART / "values.schema.json").read_text())):
        place = values
        with contextlib.suppress(KeyError, TypeError):
            for name in path:
                place = place[name]
            continue
        missing.append(path)
    # Helm refuses values without a type by itself: additionalProperties is false everywhere.
    assert missing == [("resources", "claims")]


def test_the_manifests_are_those_of_the_chart(helm):
    folder = charts.DEPLOY / "kubernetes"
    made = helm.manifests()
    assert {path.name for path in folder.glob("*.yaml")} == set(made)
    old = [name for name, text in made.items() if pathlib.Path(folder / name).read_text() != text]
    assert old == [], "run deploy/kubernetes/render.py"
    found = [one for text in made.values() for one in yaml.safe_load_all(text)]
    assert [problem for one in found for problem in schemas.check(one)] == []
    assert "helm" not in "".join(made.values()).lower()
