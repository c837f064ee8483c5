# SPDX-License-Identifier: Apache-2.0
"""What the dashboard shows: rows of panels, each with its queries, its unit, and a description for whoever reads it.

Families that begin with nv_ are Triton's, so that most panels show Triton servers as well. Quantiles come from
histograms, which a server has with --metrics-config=nereid_histograms=true.
"""

import dataclasses

# The labels that the variables of the dashboard choose.
SERVER = 'job=~"$job", instance=~"$instance"'
MODEL = f'{SERVER}, model=~"$model", version=~"$version"'
# The probes have jobs of their own.
PROBE = 'job="nereid-reach", instance=~"$instance"'
CERTIFICATE = 'job="nereid-certificates", instance=~"$instance"'
BY_MODEL = "instance, model, version"
MODEL_LEGEND = "{{instance}} {{model}} {{version}}"
NOT_CANCELED, OF_BACKEND = ', reason!="CANCELED"', ', reason="BACKEND"'
NEEDS_HISTOGRAMS = "Needs --metrics-config=nereid_histograms=true."


@dataclasses.dataclass
class Panel:
    title: str
    description: str
    unit: str  # as Grafana calls it
    queries: list  # (legend, expression)
    kind: str = "lines"
    width: int = 8
    height: int = 8
    stacked: bool = False
    steps: list = dataclasses.field(default_factory=list)  # (value, colour)


@dataclasses.dataclass
class Row:
    title: str
    panels: list
    is_closed: bool = False


def rate(family, selector=MODEL, more=""):
    """The increase of a counter in a second."""
    return f"rate({family}{{{selector}{more}}}[$__rate_interval])"


def per_model(expression, more=""):
    return f"sum by ({BY_MODEL}{more}) ({expression})"


def quantile(q, family, by="model"):
    return f"histogram_quantile({q}, sum by ({by}, le) ({rate(family + '_bucket')}))"


def quantiles(family, what=""):
    return [(f"p{round(q * 100)} {{{{model}}}}{what}", quantile(q, family)) for q in (0.5, 0.9, 0.99)]


def mean_us(family, per="nv_inference_request_success"):
    """Microseconds for each request, of all versions of a model."""
    return f"sum by (model) ({rate(family)}) / sum by (model) ({rate(per)} > 0)"


def number(title, description, expression, unit="none", steps=((1, "red"),)):
    return Panel(title, description, unit, [("", expression)], kind="number", width=4, height=4, steps=list(steps))


HEALTH = Row(
    "Health",
    [
        number("Servers up", "Servers whose metrics can be read, of those that Prometheus knows.",
               f"sum(up{{{SERVER}}})", steps=()),
        number("Servers down", "Servers whose metrics cannot be read.", f"count(up{{{SERVER}}}) - sum(up{{{SERVER}}})"),
        number("Servers not ready", "Servers that say that they are not ready: they need a restart, load models, end, or "
               "have a model that cannot be used.", f"sum(nereid_server_ready{{{SERVER}}} == bool 0)"),
        number("Models not ready", "Versions that are loaded and cannot execute.",
               f"sum(nereid_model_ready{{{MODEL}}} == bool 0)"),
        number("Could not be loaded", "Versions that servers were to serve and could not load.",
               f'sum(nereid_model_versions{{{SERVER}, state="UNAVAILABLE"}})'),
        number("Alerts", "Alerts of deploy/prometheus/rules.yml that fire.",
               'count(ALERTS{alertname=~"Nereid.*", alertstate="firing"}) or vector(0)'),
        number("Not reached", "Servers of which the blackbox exporter gets no answer where clients ask. Needs the job "
               "nereid-reach of deploy/prometheus/prometheus.yml.", f"sum(probe_success{{{PROBE}}} == bool 0)"),
        number("Stuck", "Threads and executions that the watchdog sees not getting on.",
               f"sum(nereid_stuck_threads{{{SERVER}}})"),
        number("Failed GPUs", "GPUs that only a restart of the server makes usable.",
               f"sum(nereid_failed_gpus{{{SERVER}}})"),
        number("Youngest process", "How long the server that was started last has been running.",
               f"time() - max(process_start_time_seconds{{{SERVER}}})", "s", steps=()),
        number("Descriptors used", "Share of its file descriptors that the server uses that has the fewest left. The "
               "alert NereidDescriptorsNearlyUsed fires above 85 %.",
               f"max(process_open_fds{{{SERVER}}} / process_max_fds{{{SERVER}}})", "percentunit", steps=((0.85, "red"),)),
        number("Certificate", "How long the certificate is still valid that expires first. Needs the job "
               "nereid-certificates of deploy/prometheus/prometheus.yml.",
               f"min(probe_ssl_earliest_cert_expiry{{{CERTIFICATE}}}) - time()", "s", steps=()),
        Panel("Health of servers", "Whether each server is live and ready, by its own account, whether its metrics could "
              "be read, and whether it was reached from outside. Green is well.", "none",
              [("{{instance}} live", f"nereid_server_live{{{SERVER}}}"),
               ("{{instance}} ready", f"nereid_server_ready{{{SERVER}}}"),
               ("{{instance}} metrics", f"up{{{SERVER}}}"),
               ("{{instance}} reached", f"probe_success{{{PROBE}}}")], kind="states", width=12),
        Panel("Models that can execute", "Whether an instance of each loaded version can execute requests. Backends are "
              "not asked for this.", "none", [(MODEL_LEGEND, f"nereid_model_ready{{{MODEL}}}")], kind="states", width=12),
        Panel("Versions of models", "How many versions are in which state, without those that were unloaded. "
              "UNAVAILABLE: could not be loaded.", "short",
              [("{{state}}", f"sum by (state) (nereid_model_versions{{{SERVER}}})")], stacked=True, width=12),
        Panel("Stuck, and alarms of the watchdog", "What does not get on now, by its kind: 'reactor' and 'scheduler' "
              "make the server not live, 'instance' and 'execution' a model not ready. Alarms are those in each "
              "interval, also of what went on again.", "short",
              [("{{instance}} {{kind}} stuck", f"sum by (instance, kind) (nereid_stuck_threads{{{SERVER}}})"),
               ("{{instance}} {{kind}} alarms",
                f"sum by (instance, kind) (increase(nereid_watchdog_alarms_total{{{SERVER}}}[$__rate_interval]))")],
              width=12),
    ],
)

TRAFFIC = Row(
    "Traffic",
    [
        Panel("Requests", "Successful requests in a second, whatever their batch size; those from the response cache "
              "count.", "reqps", [(MODEL_LEGEND, per_model(rate("nv_inference_request_success")))]),
        Panel("Inferences", "Inferences in a second: a request of batch size 8 is 8 inferences. Those from the response "
              "cache do not count.", "ops", [(MODEL_LEGEND, per_model(rate("nv_inference_count")))]),
        Panel("Failed requests", "Failed requests in a second. REJECTED: refused by the scheduler, by an overloaded "
              "model or by a quota. CANCELED: by the client. BACKEND: the model's execution failed. OTHER: the rest, "
              "such as inputs that do not fit.", "reqps",
              [("{{model}} {{reason}}", f"sum by (model, reason) ({rate('nv_inference_request_failure')})")]),
        Panel("Share of failed requests", "Failed requests of all, without those that clients cancelled. The alert "
              "NereidErrors fires above 5 %.", "percentunit",
              [("{{model}}", f"sum by (model) ({rate('nv_inference_request_failure', MODEL, NOT_CANCELED)})"
                f" / (sum by (model) ({rate('nv_inference_request_failure')})"
                f" + sum by (model) ({rate('nv_inference_request_success')}) > 0)")],
              steps=[(0.05, "red")]),
        Panel("Requests that wait", "Requests in the queue of a model at the time of the scrape.", "short",
              [(MODEL_LEGEND, per_model(f"nv_inference_pending_request_count{{{MODEL}}}"))]),
        Panel("Load duration", "How long the last load of each model took. A step means that it was loaded again.", "s",
              [(MODEL_LEGEND, f"max by ({BY_MODEL}) (nv_model_load_duration_secs{{{MODEL}}})")]),
    ],
)

LATENCY = Row(
    "Latency",
    [
        Panel("Duration of requests", "Quantiles of the duration of successful requests, from arrival to response. "
              + NEEDS_HISTOGRAMS, "s", quantiles("nereid_request_duration_seconds")),
        Panel("Time in the queue", "Quantiles of the time that requests waited for an instance. " + NEEDS_HISTOGRAMS,
              "s", quantiles("nereid_queue_duration_seconds")),
        Panel("Time of the execution", "Quantiles of the time of the execution, input and output included. "
              + NEEDS_HISTOGRAMS, "s", quantiles("nereid_compute_duration_seconds")),
        Panel("Where the time goes", "Mean time of a successful request by its stages. A queue that is longer than the "
              "execution asks for more instances or for batching. Every server has these counters, Triton as well.",
              "µs",
              [("{{model}} " + what, mean_us(f"nv_inference_{name}_duration_us"))
               for what, name in (("queue", "queue"), ("input", "compute_input"), ("execution", "compute_infer"),
                                  ("output", "compute_output"))], stacked=True, width=12),
        Panel("Requests by their duration", "How many requests a second took how long, of all chosen models. "
              + NEEDS_HISTOGRAMS, "s",
              [("{{le}}", f"sum by (le) ({rate('nereid_request_duration_seconds_bucket')})")], kind="heatmap", width=12),
    ],
)

BATCHING = Row(
    "Batching",
    [
        Panel("Mean batch size", "Inferences for each execution.", "short",
              [(MODEL_LEGEND, f"{per_model(rate('nv_inference_count'))} / {per_model(rate('nv_inference_exec_count') + ' > 0')}")]),
        Panel("Executions", "Executions of batches in a second.", "ops",
              [(MODEL_LEGEND, per_model(rate("nv_inference_exec_count")))]),
        Panel("Why batches did not wait to grow", "Executed batches in a second by the reason. full: max_batch_size. "
              "preferred: a preferred size. delay: the oldest request had waited its delay. incompatible: the next "
              "request did not fit. eager: an instance was free and no delay is configured.", "ops",
              [("{{model}} {{reason}}", f"sum by (model, reason) ({rate('nereid_batches_closed_total')})")], stacked=True),
        Panel("Batch sizes", "Quantiles of the batch size of executions, by the bounds 1, 2, 4 … 1024. " + NEEDS_HISTOGRAMS,
              "short", quantiles("nereid_batch_size"), width=12),
        Panel("Executions by their batch size", "How many executions a second had which size. " + NEEDS_HISTOGRAMS, "short",
              [("{{le}}", f"sum by (le) ({rate('nereid_batch_size_bucket')})")], kind="heatmap", width=12),
    ],
)

LIMITS = Row(
    "Budgets and overload",
    [
        Panel("Budgets used", "What clients make the server hold, of what they can (docs/limits.md). The alert "
              "NereidBudgetNearlyUsed fires above 85 %.", "percentunit",
              [("{{instance}} {{budget}}", f"nereid_budget_used{{{SERVER}}} / (nereid_budget_limit{{{SERVER}}} > 0)")],
              steps=[(0.85, "red")]),
        Panel("Refused beyond a budget", "Connections, requests and loads in a second that were refused because of a "
              "budget.", "ops",
              [("{{instance}} {{budget}}", rate("nereid_budget_refusals_total", SERVER))]),
        Panel("Refused by overloaded models", "Requests in a second that were refused to keep a model useful for the "
              "others. deadline: the response would come too late. expired: the deadline passed in the queue. "
              "concurrency: the adaptive limit. rate: the caller's quota.", "reqps",
              [("{{model}} {{reason}}", f"sum by (model, reason) ({rate('nereid_overload_refusals_total')})")]),
        Panel("Refused because of who asked", "Requests in a second that were refused for their credentials. Needs "
              "--api-keys.", "reqps",
              [("{{instance}} {{reason}}", rate("nereid_access_denied_total", SERVER))], width=12),
        Panel("File of API keys", "Whether the file as it is now is the one in use. Needs --api-keys.", "none",
              [("{{instance}}", f"nereid_access_file_good{{{SERVER}}}")], kind="states", width=12),
    ],
)

MEMORY = Row(
    "Memory and processor",
    [
        Panel("Memory of servers", "What the process of each server holds. Python and isolated models have processes of "
              "their own. The alert NereidMemoryRising fires when this rises for hours.", "bytes",
              [("{{instance}}", f"process_resident_memory_bytes{{{SERVER}}}")]),
        Panel("Memory of models", "What models hold, as their backends report it, by the place of the memory. Only "
              "backends that report it have lines.", "bytes",
              [("{{model}} {{version}} {{memory_type}} {{memory_id}}",
                f"sum by ({BY_MODEL}, memory_type, memory_id) (nereid_model_memory_bytes{{{MODEL}}})")], stacked=True),
        Panel("Memory that requests hold", "Bytes of bodies that arrive or are in use, of responses that wait for "
              "clients, and of models in load requests.", "bytes",
              [("{{instance}} {{budget}}", f'nereid_budget_used{{{SERVER}, budget=~".*_memory"}}')]),
        Panel("Memory of the machine", "What all processes of the machine use, and what it has.", "bytes",
              [("{{instance}} used", f"nv_cpu_memory_used_bytes{{{SERVER}}}"),
               ("{{instance}} total", f"nv_cpu_memory_total_bytes{{{SERVER}}}")]),
        Panel("Processor of the machine", "Share of the processor time that all processes of the machine use.", "percentunit",
              [("{{instance}}", f"nv_cpu_utilization{{{SERVER}}}")]),
        Panel("Processors that servers use", "Processors that the process of each server keeps busy; 1.5 is one and a "
              "half.", "short", [("{{instance}}", rate("process_cpu_seconds_total", SERVER))]),
        Panel("Pinned memory", "The pool of host memory for copies to GPUs.", "bytes",
              [("{{instance}} used", f"nv_pinned_memory_pool_used_bytes{{{SERVER}}}"),
               ("{{instance}} total", f"nv_pinned_memory_pool_total_bytes{{{SERVER}}}")]),
        Panel("File descriptors", "Files and connections that each server has open.", "short",
              [("{{instance}}", f"process_open_fds{{{SERVER}}}")]),
        Panel("Threads", "Threads of each server, those of backends included.", "short",
              [("{{instance}}", f"process_threads{{{SERVER}}}")]),
    ],
)

PROCESSES = Row(
    "Python and isolated models",
    [
        Panel("Failures in backends", "Requests in a second that failed in the backend: an exception of a Python model, "
              "or the end of the process of an isolated or a Python model. The log says which.", "reqps",
              [("{{instance}} {{model}}", f"sum by (instance, model) ({rate('nv_inference_request_failure', MODEL, OF_BACKEND)})")], width=12),
        Panel("Loads", "How often models were loaded again in ten minutes.", "short",
              [("{{instance}} {{model}}", f"sum by (instance, model) (changes(nv_model_load_duration_secs{{{MODEL}}}[10m]))")],
              width=12),
    ],
)

ON_DEMAND = Row(
    "Models on demand",
    [
        Panel("Models loaded", "How many models are loaded, and how many the server could load. Needs "
              "--model-control-mode=ondemand, as all of this row.", "short",
              [("{{instance}} {{state}}", f"nereid_on_demand_models{{{SERVER}}}")]),
        Panel("Memory against the budget", "What the loaded models took when they were loaded, and what they may take "
              "together. Without a budget there is no line for it.", "bytes",
              [("{{instance}} {{memory}} used", f"nereid_on_demand_memory_bytes{{{SERVER}}}"),
               ("{{instance}} {{memory}} budget", f"nereid_on_demand_budget_bytes{{{SERVER}}} > 0")]),
        Panel("Loads on demand", "Loads in a second by their result.", "ops",
              [("{{instance}} {{result}}", rate("nereid_on_demand_loads_total", SERVER))]),
        Panel("Time spent loading", "Share of the time in which models were being loaded. Models are loaded one after the "
              "other, so that near 100 % requests wait for the loads of other models as well.", "percentunit",
              [("{{instance}}", rate("nereid_on_demand_load_seconds_total", SERVER))], steps=[(0.85, "red")]),
        Panel("Models unloaded", "Models in a second that were unloaded. memory: to make room for others. idle: nobody had "
              "asked for them. Many for memory while requests wait: more memory would help.", "ops",
              [("{{instance}} {{reason}}", rate("nereid_on_demand_unloads_total", SERVER))]),
        Panel("Requests that wait for a model", "Requests that wait now for their model to be loaded.", "short",
              [("{{instance}}", f"nereid_on_demand_waiting_requests{{{SERVER}}}")]),
        Panel("Requests that waited", "Requests in a second that waited for their model, and those of them that were refused. "
              "timeout: not loaded within --load-wait-secs. budget: the model can never fit.", "reqps",
              [("{{instance}} waited", rate("nereid_on_demand_waits_total", SERVER)),
               ("{{instance}} refused: {{reason}}", rate("nereid_on_demand_refusals_total", SERVER))], width=12),
        Panel("Mean number of requests that wait", "The time that requests have waited for models, in each second.", "short",
              [("{{instance}}", rate("nereid_on_demand_wait_seconds_total", SERVER))], width=12),
    ],
    is_closed=True,
)

CACHES = Row(
    "Response cache",
    [
        Panel("Share of hits", "Requests that the response cache answered, of those to models that use it.", "percentunit",
              [("{{model}}", f"sum by (model) ({rate('nv_cache_num_hits_per_model')}) / (sum by (model) "
                f"({rate('nv_cache_num_hits_per_model')}) + sum by (model) ({rate('nv_cache_num_misses_per_model')}) > 0)")]),
        Panel("Hits and misses", "Lookups in a second.", "ops",
              [("{{model}} hits", f"sum by (model) ({rate('nv_cache_num_hits_per_model')})"),
               ("{{model}} misses", f"sum by (model) ({rate('nv_cache_num_misses_per_model')})")], stacked=True),
        Panel("Time in the cache", "Mean time of a lookup that hits, and of lookup and insertion where it misses.", "µs",
              [("{{model}} hit", mean_us("nv_cache_hit_duration_per_model", "nv_cache_num_hits_per_model")),
               ("{{model}} miss", mean_us("nv_cache_miss_duration_per_model", "nv_cache_num_misses_per_model"))]),
    ],
)

GPUS = Row(
    "GPUs",
    [
        Panel("GPU utilization", "Share of the time in which the GPU executed something.", "percentunit",
              [("{{instance}} {{gpu_uuid}}", f"nv_gpu_utilization{{{SERVER}}}")]),
        Panel("GPU memory", "What all processes use of the memory of each GPU, and what it has.", "bytes",
              [("{{instance}} {{gpu_uuid}} used", f"nv_gpu_memory_used_bytes{{{SERVER}}}"),
               ("{{instance}} {{gpu_uuid}} total", f"nv_gpu_memory_total_bytes{{{SERVER}}}")]),
        Panel("GPU power", "What each GPU takes, and may take.", "watt",
              [("{{instance}} {{gpu_uuid}} used", f"nv_gpu_power_usage{{{SERVER}}}"),
               ("{{instance}} {{gpu_uuid}} limit", f"nv_gpu_power_limit{{{SERVER}}}")]),
    ],
    is_closed=True,
)

ROWS = [HEALTH, TRAFFIC, LATENCY, BATCHING, LIMITS, MEMORY, PROCESSES, ON_DEMAND, CACHES, GPUS]
