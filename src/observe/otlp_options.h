// SPDX-License-Identifier: Apache-2.0
// The user's settings for sending spans to an OpenTelemetry collector.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace nereid::observe {

// The settings. A value type.
struct OtlpOptions {
  std::string url = "http://localhost:4318/v1/traces";  // http:// and https://; http:// if neither
  std::string ca_file;  // certificates to trust instead of the system's, if not empty
  // Attributes of the process, besides service.name and telemetry.sdk.*.
  std::vector<std::pair<std::string, std::string>> resource;
  uint32_t max_queue_size = 2048;  // further spans are dropped
  std::chrono::milliseconds schedule_delay{5000};
  uint32_t max_export_batch_size = 512;
};

}  // namespace nereid::observe
