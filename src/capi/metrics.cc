// SPDX-License-Identifier: Apache-2.0
// TRITONSERVER_Metrics*: the metrics page. Metrics that plug-ins and embedders add are in
// abi_objects.
#include <string>

#include "abi_objects/error.h"
#include "capi/server.h"

using nereid::abi_objects::Answer;
using nereid::base::Status;

// Thread-compatible.
struct TRITONSERVER_Metrics {
  TRITONSERVER_Server* server;
  std::string text;  // what was handed out last
};

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONSERVER_ServerMetrics(TRITONSERVER_Server* server,
                                               TRITONSERVER_Metrics** metrics) {
  return Answer([&]() -> Status {
    *metrics = nullptr;
    *metrics = new TRITONSERVER_Metrics{server, {}};
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_MetricsDelete(TRITONSERVER_Metrics* metrics) {
  delete metrics;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricsFormatted(TRITONSERVER_Metrics* metrics,
                                                  TRITONSERVER_MetricFormat format,
                                                  const char** base, size_t* byte_size) {
  return Answer([&]() -> Status {
    if (format != TRITONSERVER_METRIC_PROMETHEUS) {
      return nereid::base::InvalidArgumentError("unknown metrics format '" +
                                                std::to_string(static_cast<int>(format)) + "'");
    }
    metrics->text = metrics->server->engine.MetricsText();
    *base = metrics->text.c_str();
    *byte_size = metrics->text.size();
    return {};
  });
}

}  // extern "C"
#pragma GCC visibility pop
