// SPDX-License-Identifier: Apache-2.0
// TRITONSERVER_Metrics*: the metrics page. The metrics of plug-ins and embedders are in
// abi_objects.
#include <string>

#include "abi_objects/error.h"
#include "capi/server.h"

using nereid::abi_objects::RunApiCall;
using nereid::base::Status;

// The metrics page as an object. Thread-compatible.
struct TRITONSERVER_Metrics {
  TRITONSERVER_Server* server;
  std::string text;  // the last text that was returned
};

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONSERVER_ServerMetrics(TRITONSERVER_Server* server,
                                               TRITONSERVER_Metrics** metrics) {
  return RunApiCall([&]() -> Status {
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
  return RunApiCall([&]() -> Status {
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
