// SPDX-License-Identifier: Apache-2.0
// Which version of a model requests go to that name no version or a label: labels, a canary that
// gets a share of them, and a shadow that gets copies of them (docs/versions.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace nereid::service {

// A version that gets a share of the requests that name no version or a certain label.
struct Canary {
  int64_t version = 0;
  double percent = 0;
  // Requests with the same value of this header stay together; names of headers are not
  // case-sensitive.
  std::string header = "x-canary-key";
  std::string label;  // whose requests are divided as well; empty: none

  bool operator==(const Canary&) const = default;
};

// A version that gets copies of a share of the requests. Its answers are compared and dropped.
struct Shadow {
  std::string model;               // empty: the same model
  std::optional<int64_t> version;  // nothing: the one that requests without a version get
  double percent = 100;
  double tolerance = 1e-5;  // of numbers in outputs; relative for those beyond 1
  uint32_t in_flight = 16;  // copies at the same time; further ones are dropped

  bool operator==(const Shadow&) const = default;
};

// The rules of one model. Without any, requests that name no version go to the highest one.
struct TrafficRules {
  std::map<std::string, int64_t, std::less<>> labels;
  std::string default_label;  // of requests that name no version; empty: the highest version
  std::optional<Canary> canary;
  std::optional<Shadow> shadow;

  bool operator==(const TrafficRules&) const = default;
};

// A change of a canary: what it does not name stays as it is.
struct CanaryChange {
  std::optional<int64_t> version;
  std::optional<double> percent;
  std::optional<std::string> header;
  std::optional<std::string> label;
};

// A change of a shadow: what it does not name stays as it is.
struct ShadowChange {
  std::optional<std::string> model;
  std::optional<int64_t> version;
  std::optional<double> percent;
  std::optional<double> tolerance;
  std::optional<int64_t> in_flight;
};

// A change of the rules, which takes effect in one step.
struct TrafficChange {
  std::map<std::string, std::optional<int64_t>> labels;  // nothing: the label is removed
  std::optional<std::string> default_label;              // empty: there is none any more
  std::optional<CanaryChange> canary;
  bool removes_canary = false;
  std::optional<ShadowChange> shadow;
  bool removes_shadow = false;
};

// How many copies of requests had which end.
struct ShadowCounts {
  uint64_t equal = 0;
  uint64_t different = 0;
  uint64_t failed = 0;   // the shadow answered with an error
  uint64_t dropped = 0;  // not sent
};

// The rules of a model and where they come from.
struct TrafficState {
  TrafficRules rules;
  bool is_as_configured = true;  // no control call has changed them since the model was loaded
  ShadowCounts shadow_counts;
};

// Returns the value of a header of a request; empty if it has none.
using HeaderLookup = std::function<std::string_view(std::string_view name)>;

}  // namespace nereid::service
