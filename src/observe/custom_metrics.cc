// SPDX-License-Identifier: Apache-2.0
// The error texts follow Triton's core/src/metric_family.cc.
#include "observe/custom_metrics.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/log.h"

namespace nereid::observe {
namespace {

// The families that exist, by name.
struct Registry {
  base::Mutex mutex;
  std::map<std::string, std::weak_ptr<CustomFamily>> families NEREID_GUARDED_BY(mutex);
};

// Leaked on purpose: plug-ins may delete their metrics until the process ends.
Registry& TheRegistry() {
  static Registry* const registry = new Registry;
  return *registry;
}

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool IsName(std::string_view name, bool may_have_colon) {
  if (name.empty()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (IsLetter(c) || (c == ':' && may_have_colon)) continue;
    if (i == 0 || c < '0' || c > '9') return false;
  }
  return true;
}

base::Status Unsupported(MetricKind kind, const char* what) {
  static constexpr const char* kNames[] = {"COUNTER", "GAUGE", "HISTOGRAM"};
  return base::UnsupportedError(std::string("TRITONSERVER_METRIC_KIND_") +
                                kNames[static_cast<size_t>(kind)] + " does not support " + what);
}

}  // namespace

CustomSeries::CustomSeries(MetricKind kind, std::vector<double> bounds)
    : kind_(kind),
      bounds_(std::move(bounds)),
      counts_(kind == MetricKind::kHistogram ? new std::atomic<uint64_t>[bounds_.size() + 1]()
                                             : nullptr) {}

base::Result<double> CustomSeries::Value() const {
  if (kind_ == MetricKind::kHistogram) return Unsupported(kind_, "Value");
  return value_.load();
}

base::Status CustomSeries::Increment(double by) {
  if (kind_ == MetricKind::kHistogram) return Unsupported(kind_, "Increment");
  if (kind_ == MetricKind::kCounter && !(by >= 0)) {
    return base::InvalidArgumentError(
        "TRITONSERVER_METRIC_KIND_COUNTER can only be incremented monotonically by non-negative "
        "values.");
  }
  value_.fetch_add(by);
  return base::OkStatus();
}

base::Status CustomSeries::Set(double value) {
  if (kind_ != MetricKind::kGauge) return Unsupported(kind_, "Set");
  value_.store(value);
  return base::OkStatus();
}

base::Status CustomSeries::Observe(double value) {
  if (kind_ != MetricKind::kHistogram) return Unsupported(kind_, "Observe");
  const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  counts_[static_cast<size_t>(bucket)].fetch_add(1);
  value_.fetch_add(value);
  return base::OkStatus();
}

void CustomSeries::AddTo(MetricsPage& page, const std::string& labels) const {
  const double value = value_.load();
  if (kind_ != MetricKind::kHistogram) return page.Add(labels, value);
  std::vector<uint64_t> counts(bounds_.size() + 1);
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = counts_[i].load();
  page.AddHistogram(labels, {bounds_, counts, value});
}

base::Result<std::shared_ptr<CustomFamily>> CustomFamily::Create(MetricKind kind,
                                                                 const std::string& name,
                                                                 const std::string& help) {
  if (!IsName(name, true)) return base::InvalidArgumentError("Invalid metric name");
  Registry& registry = TheRegistry();
  base::MutexLock lock(registry.mutex);
  std::weak_ptr<CustomFamily>& known = registry.families[name];
  std::shared_ptr<CustomFamily> family = known.lock();
  if (family == nullptr) {
    family = std::make_shared<CustomFamily>(kind, name, help);
    known = family;
  } else if (family->kind() != kind) {
    return base::InvalidArgumentError("Family name already exists with different type");
  }
  return family;
}

CustomFamily::CustomFamily(MetricKind kind, std::string name, std::string help)
    : kind_(kind), name_(std::move(name)), help_(std::move(help)) {}

base::Result<std::shared_ptr<CustomSeries>> CustomFamily::Add(const Labels& labels,
                                                              std::vector<double> bounds) {
  for (const auto& [name, value] : labels) {
    if (!IsName(name, false) || name.starts_with("__") ||
        (kind_ == MetricKind::kHistogram && name == "le")) {
      return base::InvalidArgumentError("Invalid label name");
    }
  }
  if (!std::ranges::all_of(bounds, [](double bound) { return std::isfinite(bound); })) {
    return base::InvalidArgumentError("Bucket Boundaries must be finite numbers");
  }
  if (std::ranges::adjacent_find(bounds, std::greater_equal<>()) != bounds.end()) {
    return base::InvalidArgumentError("Bucket Boundaries must be strictly sorted");
  }
  base::MutexLock lock(mutex_);
  std::weak_ptr<CustomSeries>& known = series_[RenderLabels(labels)];
  std::shared_ptr<CustomSeries> series = known.lock();
  if (series == nullptr) {
    series = std::make_shared<CustomSeries>(kind_, std::move(bounds));
    known = series;
  }
  return series;
}

void CustomFamily::TellNameIsTaken() {
  if (is_told_.exchange(true)) return;
  NEREID_LOG(kWarning,
             "the metrics of a backend's or client's family '{}' are left out: the server has one "
             "of that name",
             name_);
}

void CustomFamily::AddTo(MetricsPage& page) {
  static constexpr MetricsPage::Kind kKinds[] = {
      MetricsPage::Kind::kCounter, MetricsPage::Kind::kGauge, MetricsPage::Kind::kHistogram};
  page.StartFamily(name_, help_, kKinds[static_cast<size_t>(kind_)]);
  base::MutexLock lock(mutex_);
  for (auto entry = series_.begin(); entry != series_.end();) {
    if (const auto series = entry->second.lock(); series != nullptr) {
      series->AddTo(page, entry->first);
      ++entry;
    } else {
      entry = series_.erase(entry);
    }
  }
}

void AddCustomMetrics(MetricsPage& page) {
  std::vector<std::shared_ptr<CustomFamily>> families;
  {
    Registry& registry = TheRegistry();
    base::MutexLock lock(registry.mutex);
    for (auto entry = registry.families.begin(); entry != registry.families.end();) {
      if (auto family = entry->second.lock(); family != nullptr) {
        families.push_back(std::move(family));
        ++entry;
      } else {
        entry = registry.families.erase(entry);
      }
    }
  }
  for (const auto& family : families) {
    // A second family of a name would make the whole page unreadable.
    if (page.HasFamily(family->name())) {
      family->TellNameIsTaken();
    } else {
      family->AddTo(page);
    }
  }
}

std::string CustomFamilyText(const std::string& name) {
  std::shared_ptr<CustomFamily> family;
  {
    Registry& registry = TheRegistry();
    base::MutexLock lock(registry.mutex);
    const auto known = registry.families.find(name);
    if (known != registry.families.end()) family = known->second.lock();
  }
  if (family == nullptr) return {};
  MetricsPage page;
  family->AddTo(page);
  return page.Take();
}

}  // namespace nereid::observe
