// SPDX-License-Identifier: Apache-2.0
// The text format of Prometheus, as the metrics page of a server has it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nereid::cli {

// One line of the page. A value type.
struct MetricSample {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;
  std::string value;  // as it stands there: "12", "0.25", "NaN"
  std::string type;   // "counter", "gauge", ...; empty if the page does not say
  std::string help;

  // Returns "" if there is no such label.
  std::string_view label(std::string_view name) const;
};

// Reads a page; lines that are not of the format are skipped.
std::vector<MetricSample> ReadMetrics(std::string_view page);

}  // namespace nereid::cli
