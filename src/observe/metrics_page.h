// SPDX-License-Identifier: Apache-2.0
// The metrics page: families of values collected during a scrape, printed in Prometheus text
// format. Nothing is kept between scrapes; the counters belong to the objects that they describe.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nereid::observe {

using Labels = std::vector<std::pair<std::string, std::string>>;

// Returns the text between the braces: `name="value",...` in the alphabetical order of the names,
// with values escaped. It is made once for a model and used for each of its values.
std::string RenderLabels(Labels labels);

// The state of a histogram during a scrape. Views only: the data outlives the call of AddHistogram.
struct Histogram {
  std::span<const double> bounds;    // ascending; the last bucket, to infinity, has no bound
  std::span<const uint64_t> counts;  // per bucket, not cumulative; one more than there are bounds
  double sum = 0;
};

// The value below which this share (0 to 1) of all observations lies.
struct Quantile {
  double quantile = 0;
  double value = 0;
};

// The state of a summary during a scrape. The sum has the unit of the observations.
struct SummaryValue {
  std::vector<Quantile> quantiles;
  uint64_t count = 0;
  double sum = 0;
};

// Builds the text of one page. Thread-compatible.
class MetricsPage {
 public:
  enum class Kind { kCounter, kGauge, kHistogram, kSummary };

  // Starts a family; the values that follow belong to it. A family without values is not printed.
  void StartFamily(std::string_view name, std::string_view help, Kind kind);
  // Whether a family of this name was started.
  bool HasFamily(std::string_view name) const { return names_.contains(name); }

  // `labels` is the result of RenderLabels, or empty.
  void Add(std::string_view labels, double value);
  void AddHistogram(std::string_view labels, const Histogram& value);
  void AddSummary(std::string_view labels, const SummaryValue& value);

  const std::string& text() const { return text_; }
  std::string Take() { return std::move(text_); }

 private:
  void AddHeader();
  // Appends name<suffix>{labels,extra} value.
  void AddLine(std::string_view suffix, std::string_view labels, std::string_view extra,
               double value);

  std::set<std::string, std::less<>> names_;
  std::string name_;
  std::string header_;  // kept until the family's first value
  std::string text_;
};

}  // namespace nereid::observe
