// SPDX-License-Identifier: Apache-2.0
// The metrics page: families of values collected at the moment of a scrape, printed in Prometheus text
// format. Nothing is kept between scrapes; the counters live with what they count.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nereid::observe {

using Labels = std::vector<std::pair<std::string, std::string>>;

// Thread-compatible.
class MetricsPage {
 public:
  enum class Kind { kCounter, kGauge };

  MetricsPage();
  ~MetricsPage();

  // Starts a family; the values that follow belong to it. One without values is not printed.
  void StartFamily(std::string_view name, std::string_view help, Kind kind);
  // Labels print in alphabetical order of their names.
  void Add(Labels labels, double value);

  std::string Text() const;

 private:
  struct Families;
  const std::unique_ptr<Families> families_;
};

}  // namespace nereid::observe
