// SPDX-License-Identifier: Apache-2.0
#include "observe/metrics_page.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace nereid::observe {
namespace {

constexpr double kExactIntegers = 9007199254740992.0;  // 2^53

void AppendNumber(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
  } else if (std::abs(value) < kExactIntegers && value == std::trunc(value)) {
    fmt::format_to(std::back_inserter(out), "{}", static_cast<int64_t>(value));
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
}

void AppendEscaped(std::string& out, std::string_view text, bool escapes_quotes) {
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && escapes_quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

std::string_view KindName(MetricsPage::Kind kind) {
  switch (kind) {
    case MetricsPage::Kind::kCounter:
      return "counter";
    case MetricsPage::Kind::kGauge:
      return "gauge";
    case MetricsPage::Kind::kHistogram:
      return "histogram";
    case MetricsPage::Kind::kSummary:
      break;
  }
  return "summary";
}

}  // namespace

std::string RenderLabels(Labels labels) {
  std::ranges::sort(labels);
  std::string text;
  for (const auto& [name, value] : labels) {
    if (!text.empty()) text += ',';
    text += name;
    text += "=\"";
    AppendEscaped(text, value, true);
    text += '"';
  }
  return text;
}

void MetricsPage::StartFamily(std::string_view name, std::string_view help, Kind kind) {
  names_.emplace(name);
  name_ = name;
  header_ = "# HELP ";
  header_ += name;
  header_ += ' ';
  AppendEscaped(header_, help, false);
  header_ += "\n# TYPE ";
  header_ += name;
  header_ += ' ';
  header_ += KindName(kind);
  header_ += '\n';
}

void MetricsPage::AddHeader() {
  text_ += header_;
  header_.clear();
}

void MetricsPage::AddLine(std::string_view suffix, std::string_view labels, std::string_view extra,
                          double value) {
  text_ += name_;
  text_ += suffix;
  if (!labels.empty() || !extra.empty()) {
    text_ += '{';
    text_ += labels;
    if (!labels.empty() && !extra.empty()) text_ += ',';
    text_ += extra;
    text_ += '}';
  }
  text_ += ' ';
  AppendNumber(text_, value);
  text_ += '\n';
}

void MetricsPage::Add(std::string_view labels, double value) {
  AddHeader();
  AddLine("", labels, "", value);
}

void MetricsPage::AddHistogram(std::string_view labels, const Histogram& value) {
  AddHeader();
  uint64_t count = 0;
  for (const uint64_t in_bucket : value.counts) count += in_bucket;
  AddLine("_count", labels, "", static_cast<double>(count));
  AddLine("_sum", labels, "", value.sum);
  uint64_t cumulative = 0;
  std::string bound;
  for (size_t i = 0; i < value.bounds.size(); ++i) {
    cumulative += value.counts[i];
    bound = "le=\"";
    AppendNumber(bound, value.bounds[i]);
    bound += '"';
    AddLine("_bucket", labels, bound, static_cast<double>(cumulative));
  }
  AddLine("_bucket", labels, "le=\"+Inf\"", static_cast<double>(count));
}

void MetricsPage::AddSummary(std::string_view labels, const SummaryValue& value) {
  AddHeader();
  AddLine("_count", labels, "", static_cast<double>(value.count));
  AddLine("_sum", labels, "", value.sum);
  std::string quantile;
  for (const Quantile& entry : value.quantiles) {
    quantile = "quantile=\"";
    AppendNumber(quantile, entry.quantile);
    quantile += '"';
    AddLine("", labels, quantile, entry.value);
  }
}

}  // namespace nereid::observe
