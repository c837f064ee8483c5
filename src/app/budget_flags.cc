// SPDX-License-Identifier: Apache-2.0
#include "app/budget_flags.h"

#include <limits>

#include "app/flag_setters.h"

namespace nereid::app {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

#define BUDGET(name) +[](Options& o) -> auto& { return o.engine.budgets.name; }
#define LIMIT(name) +[](Options& o) -> auto& { return o.limits.name; }

constexpr Flag kFlags[] = {
    {"max-connections", kInteger,
     "Connections over all ports; 0: as many as 'ulimit -n' and memory allow, at most 65536 (0).",
     SetInteger<BUDGET(connections), 0, kIntMax>},
    {"max-connections-per-address", kInteger,
     "Connections from one address, or one IPv6 network; 0: three quarters of all (0).",
     SetInteger<BUDGET(connections_per_address), 0, kIntMax>},
    {"max-requests", kInteger,
     "Inference requests that are in flight at once; 0: as many as memory allows, at most 65536 "
     "(0).",
     SetInteger<BUDGET(requests), 0, kIntMax>},
    {"max-requests-per-model", kInteger,
     "Of them, requests to one version of a model; 0: three quarters of all (0).",
     SetInteger<BUDGET(requests_per_model), 0, kIntMax>},
    {"max-requests-per-connection", kInteger,
     "Calls of one gRPC connection, and requests of one stream, that are in progress at once "
     "(8192).",
     SetInteger<LIMIT(requests), 1, kIntMax>},
    {"max-request-memory", kInteger,
     "Bytes that requests may take which arrive or are in use; what has arrived counts, not what "
     "was announced. 0: a quarter of the memory (0).",
     SetInteger<BUDGET(request_bytes), 0, kMax>},
    {"max-unsent-memory", kInteger,
     "Bytes of responses that may wait for clients that do not read; 0: an eighth of the memory "
     "(0).",
     SetInteger<BUDGET(unsent_bytes), 0, kMax>},
    {"max-stream-backlog", kInteger,
     "Bytes of responses of one stream that may wait until its client reads them (67108864).",
     SetInteger<LIMIT(stream_backlog_bytes), 1, kMax>},
    {"min-read-rate", kInteger,
     "Bytes a second that a client must at least read of a response over HTTP, checked every 30 s; "
     "0: none (240).",
     SetInteger<LIMIT(min_read_rate), 0, kIntMax>},
    {"write-timeout-secs", kInteger,
     "Seconds after which a connection is closed whose client reads nothing of a response (120).",
     SetSeconds<LIMIT(write_timeout), 1>},
    {"max-header-bytes", kInteger, "Size of the headers or the metadata of a request (65536).",
     SetInteger<LIMIT(header_bytes), 1024, int64_t{16} << 20>},
    {"max-resets-per-second", kInteger,
     "Streams that a client of gRPC may reset every second, and five times as many at once (1000).",
     SetInteger<BUDGET(resets_per_second), 1, 1'000'000>},
    {"max-control-frames-per-second", kInteger,
     "Frames of HTTP/2 that belong to no call which a client may send every second, and five times "
     "as many at once; pings: twenty times as many (1000).",
     SetInteger<BUDGET(control_frames_per_second), 1, 1'000'000>},
    {"max-load-memory", kInteger,
     "Bytes of files that load requests in progress may bring; 0: a quarter of the memory (0).",
     SetInteger<BUDGET(load_bytes), 0, kMax>},
    {"max-load-instances", kInteger,
     "Instances that the configuration in a load request may ask for (128).",
     SetInteger<BUDGET(load_instances), 1, kIntMax>},
    {"max-load-warm-up-runs", kInteger,
     "Executions to warm up that the configuration in a load request may ask for (10000).",
     SetInteger<BUDGET(load_warm_up_runs), 0, kIntMax>},
};

#undef BUDGET
#undef LIMIT

}  // namespace

std::span<const Flag> BudgetFlags() { return kFlags; }

}  // namespace nereid::app
