// SPDX-License-Identifier: Apache-2.0
#include "observe/summary.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <prometheus/summary.h>

namespace nereid::observe {
namespace {

// Reads the number at the front of the text, like strtod: "0.0.1" is 0.
std::optional<double> ReadNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

}  // namespace

Quantiles ParseQuantiles(std::string_view text) {
  Quantiles quantiles;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
    const size_t colon = entry.find(':');
    const auto quantile = ReadNumber(entry.substr(0, colon));
    const auto error =
        colon == std::string_view::npos ? std::nullopt : ReadNumber(entry.substr(colon + 1));
    if (!quantile || !error || *quantile < 0 || *quantile > 1 || *error < 0 || *error > 1) {
      quantiles.invalid.emplace_back(entry);
    } else {
      quantiles.list.push_back({*quantile, *error});
    }
  }
  return quantiles;
}

struct Summary::Body {
  explicit Body(const prometheus::Summary::Quantiles& quantiles) : summary(quantiles) {}
  prometheus::Summary summary;
};

Summary::Summary(const std::vector<QuantileError>& quantiles)
    : body_([&] {
        prometheus::Summary::Quantiles list;
        for (const QuantileError& entry : quantiles) list.push_back({entry.quantile, entry.error});
        return std::make_unique<Body>(list);
      }()) {}

Summary::~Summary() = default;

void Summary::Observe(double value) { body_->summary.Observe(value); }

SummaryValue Summary::Read() const {
  const prometheus::ClientMetric metric = body_->summary.Collect();
  SummaryValue value;
  value.count = metric.summary.sample_count;
  value.sum = metric.summary.sample_sum;
  for (const auto& entry : metric.summary.quantile) {
    value.quantiles.push_back({entry.quantile, entry.value});
  }
  return value;
}

}  // namespace nereid::observe
