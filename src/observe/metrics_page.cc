// SPDX-License-Identifier: Apache-2.0
#include "observe/metrics_page.h"

#include <algorithm>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace nereid::observe {

struct MetricsPage::Families {
  std::vector<prometheus::MetricFamily> list;
};

MetricsPage::MetricsPage() : families_(std::make_unique<Families>()) {}
MetricsPage::~MetricsPage() = default;

void MetricsPage::StartFamily(std::string_view name, std::string_view help, Kind kind) {
  prometheus::MetricFamily& family = families_->list.emplace_back();
  family.name = name;
  family.help = help;
  family.type = kind == Kind::kCounter ? prometheus::MetricType::Counter
                                       : prometheus::MetricType::Gauge;
}

void MetricsPage::Add(Labels labels, double value) {
  prometheus::MetricFamily& family = families_->list.back();
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  std::ranges::sort(labels);
  for (auto& [name, text] : labels) metric.label.push_back({std::move(name), std::move(text)});
  if (family.type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
}

std::string MetricsPage::Text() const {
  std::vector<prometheus::MetricFamily> filled;
  for (const prometheus::MetricFamily& family : families_->list) {
    if (!family.metric.empty()) filled.push_back(family);
  }
  return prometheus::TextSerializer().Serialize(filled);
}

}  // namespace nereid::observe
