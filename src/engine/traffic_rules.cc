// SPDX-License-Identifier: Apache-2.0
#include "engine/traffic_rules.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/trim.h"

namespace nereid::engine {
namespace {

using base::InvalidArgumentError;
using base::Status;

constexpr size_t kMaxLabelLength = 64;
constexpr size_t kMaxLabels = 64;
constexpr size_t kMaxHeaderLength = 128;
constexpr int64_t kMaxMirrorsInFlight = 4096;

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The characters of a token in RFC 9110 that names of headers have in practice; gRPC allows no
// others in names of metadata.
bool IsHeaderName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxHeaderLength && std::ranges::all_of(text, [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '-' || c == '_' || c == '.';
  });
}

Status CheckPercent(std::string_view whose, double percent) {
  if (std::isfinite(percent) && percent >= 0 && percent <= 100) return base::OkStatus();
  return InvalidArgumentError(
      fmt::format("the percent of the {} is {}; expected a number from 0 to 100", whose, percent));
}

Status CheckVersion(std::string_view whose, int64_t version) {
  if (version >= 0) return base::OkStatus();
  return InvalidArgumentError(
      fmt::format("the version of the {} is {}; expected a number of a version", whose, version));
}

Status CheckLabelExists(const service::TrafficRules& rules, std::string_view what,
                        std::string_view label) {
  if (label.empty() || rules.labels.contains(label)) return base::OkStatus();
  return InvalidArgumentError(fmt::format("{} is '{}', which is no label of the model; labels: {}",
                                          what, label, ListLabels(rules)));
}

Status CheckLabels(const service::TrafficRules& rules) {
  for (const auto& [label, version] : rules.labels) {
    if (!IsVersionLabel(label)) {
      return InvalidArgumentError(fmt::format(
          "'{}' cannot be a version label; expected a letter or '_' and then letters, digits, '_', "
          "'-' or '.', {} characters at most",
          label.substr(0, kMaxLabelLength), kMaxLabelLength));
    }
    NEREID_RETURN_IF_ERROR(CheckVersion(fmt::format("label '{}'", label), version));
  }
  if (rules.labels.size() > kMaxLabels) {
    return InvalidArgumentError(
        fmt::format("{} version labels; expected {} at most", rules.labels.size(), kMaxLabels));
  }
  return CheckLabelExists(rules, "the default label", rules.default_label);
}

Status CheckCanary(const service::TrafficRules& rules, const service::Canary& canary) {
  NEREID_RETURN_IF_ERROR(CheckVersion("canary", canary.version));
  NEREID_RETURN_IF_ERROR(CheckPercent("canary", canary.percent));
  if (!IsHeaderName(canary.header)) {
    return InvalidArgumentError(
        fmt::format("the header of the canary is '{}'; expected the name of a header, of letters, "
                    "digits, '-', '_' and '.'",
                    canary.header.substr(0, kMaxHeaderLength)));
  }
  return CheckLabelExists(rules, "the label of the canary", canary.label);
}

Status CheckShadow(const service::Shadow& shadow) {
  if (shadow.model.empty() && !shadow.version) {
    return InvalidArgumentError("the shadow has neither a model nor a version");
  }
  if (shadow.version) NEREID_RETURN_IF_ERROR(CheckVersion("shadow", *shadow.version));
  NEREID_RETURN_IF_ERROR(CheckPercent("shadow", shadow.percent));
  if (!std::isfinite(shadow.tolerance) || shadow.tolerance < 0) {
    return InvalidArgumentError(fmt::format(
        "the tolerance of the shadow is {}; expected a number from 0 on", shadow.tolerance));
  }
  return base::OkStatus();
}

template <typename T>
void SetIfGiven(const std::optional<T>& value, T& place) {
  if (value) place = *value;
}

Status ChangeCanary(const service::CanaryChange& change, service::TrafficRules& rules) {
  if (!rules.canary && !change.version) {
    return InvalidArgumentError("the canary has no version");
  }
  if (!rules.canary) rules.canary.emplace();
  service::Canary& canary = *rules.canary;
  SetIfGiven(change.version, canary.version);
  SetIfGiven(change.percent, canary.percent);
  SetIfGiven(change.header, canary.header);
  SetIfGiven(change.label, canary.label);
  // Names of headers are compared in lower case, in which those of metadata are.
  for (char& c : canary.header) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  return base::OkStatus();
}

Status ChangeShadow(const service::ShadowChange& change, service::TrafficRules& rules) {
  if (!rules.shadow) rules.shadow.emplace();
  service::Shadow& shadow = *rules.shadow;
  // The version of one model says nothing about another.
  if (change.model && *change.model != shadow.model) shadow.version.reset();
  SetIfGiven(change.model, shadow.model);
  if (change.version) shadow.version = change.version;
  SetIfGiven(change.percent, shadow.percent);
  SetIfGiven(change.tolerance, shadow.tolerance);
  if (change.in_flight) {
    if (*change.in_flight < 1 || *change.in_flight > kMaxMirrorsInFlight) {
      return InvalidArgumentError(
          fmt::format("in_flight of the shadow is {}; expected a number from 1 to {}",
                      *change.in_flight, kMaxMirrorsInFlight));
    }
    shadow.in_flight = static_cast<uint32_t>(*change.in_flight);
  }
  return base::OkStatus();
}

// Reads parameters of one model.
class ParameterReader {
 public:
  explicit ParameterReader(const config::ModelConfig& config) : config_(config) {}

  std::optional<std::string> Text(const std::string& key) const {
    const auto found = config_.parameters.find(key);
    if (found == config_.parameters.end()) return std::nullopt;
    return found->second;
  }

  template <typename Number>
  Status ReadNumber(const std::string& key, std::optional<Number>& number) const {
    const auto text = Text(key);
    if (!text) return base::OkStatus();
    Number read{};
    if (!Parse(*text, read)) return Unexpected(key, *text, "a number");
    number = read;
    return base::OkStatus();
  }

  Status ReadLabels(service::TrafficChange& change) const {
    const std::string key = "version_labels";
    const auto text = Text(key);
    if (!text) return base::OkStatus();
    std::string_view rest = *text;
    while (!rest.empty()) {
      const std::string_view pair = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
      const size_t equals = pair.find('=');
      int64_t version = 0;
      if (equals == std::string_view::npos || !Parse(Trim(pair.substr(equals + 1)), version)) {
        return Unexpected(key, *text, "labels and numbers of versions, such as 'stable=3,next=4'");
      }
      const std::string label(Trim(pair.substr(0, equals)));
      if (!change.labels.emplace(label, version).second) {
        return Unexpected(key, *text, fmt::format("the label '{}' only once", label));
      }
    }
    return base::OkStatus();
  }

  Status Named(const Status& status) const {
    return status.ok() ? status : status.WithPrefix(fmt::format("model '{}': ", config_.name));
  }

 private:
  static std::string_view Trim(std::string_view text) { return base::Trim(text, " "); }

  template <typename Number>
  static bool Parse(std::string_view text, Number& number) {
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    return error == std::errc() && rest == end;
  }

  Status Unexpected(std::string_view key, std::string_view value, std::string_view expected) const {
    return InvalidArgumentError(
        fmt::format("parameter '{}' is '{}'; expected {}", key, value, expected));
  }

  const config::ModelConfig& config_;
};

base::Result<service::TrafficChange> ReadParameters(const ParameterReader& reader) {
  service::TrafficChange change;
  NEREID_RETURN_IF_ERROR(reader.ReadLabels(change));
  change.default_label = reader.Text("default_version_label");
  service::CanaryChange canary;
  NEREID_RETURN_IF_ERROR(reader.ReadNumber("canary_version", canary.version));
  NEREID_RETURN_IF_ERROR(reader.ReadNumber("canary_percent", canary.percent));
  canary.header = reader.Text("canary_header");
  canary.label = reader.Text("canary_label");
  if (canary.version || canary.percent || canary.header || canary.label) change.canary = canary;
  service::ShadowChange shadow;
  shadow.model = reader.Text("shadow_model");
  NEREID_RETURN_IF_ERROR(reader.ReadNumber("shadow_version", shadow.version));
  NEREID_RETURN_IF_ERROR(reader.ReadNumber("shadow_percent", shadow.percent));
  NEREID_RETURN_IF_ERROR(reader.ReadNumber("shadow_tolerance", shadow.tolerance));
  NEREID_RETURN_IF_ERROR(reader.ReadNumber("shadow_in_flight", shadow.in_flight));
  if (shadow.model || shadow.version || shadow.percent || shadow.tolerance || shadow.in_flight) {
    change.shadow = shadow;
  }
  return change;
}

}  // namespace

bool IsTrafficParameter(std::string_view name) {
  static constexpr std::array<std::string_view, 11> kNames = {
      "version_labels", "default_version_label", "canary_version",   "canary_percent",
      "canary_header",  "canary_label",          "shadow_model",     "shadow_version",
      "shadow_percent", "shadow_tolerance",      "shadow_in_flight",
  };
  return std::ranges::find(kNames, name) != kNames.end();
}

bool IsVersionLabel(std::string_view text) {
  if (text.empty() || text.size() > kMaxLabelLength) return false;
  if (!IsLetter(text.front()) && text.front() != '_') return false;
  return std::ranges::all_of(
      text, [](char c) { return IsLetter(c) || IsDigit(c) || c == '_' || c == '-' || c == '.'; });
}

std::string ListLabels(const service::TrafficRules& rules) {
  std::string list;
  for (const auto& [label, version] : rules.labels) {
    if (!list.empty()) list += ", ";
    list += fmt::format("'{}'", label);
  }
  return list.empty() ? "none" : list;
}

base::Result<service::TrafficRules> TrafficRulesOf(const config::ModelConfig& config) {
  const ParameterReader reader(config);
  const base::Result<service::TrafficChange> change = ReadParameters(reader);
  if (!change.ok()) return reader.Named(change.status());
  base::Result<service::TrafficRules> rules = ChangedRules({}, *change);
  if (!rules.ok()) return reader.Named(rules.status());
  return rules;
}

base::Result<service::TrafficRules> ChangedRules(service::TrafficRules rules,
                                                 const service::TrafficChange& change) {
  for (const auto& [label, version] : change.labels) {
    if (version) {
      rules.labels[label] = *version;
    } else {
      rules.labels.erase(label);
    }
  }
  if (change.default_label) rules.default_label = *change.default_label;
  if (change.removes_canary) rules.canary.reset();
  if (change.canary) NEREID_RETURN_IF_ERROR(ChangeCanary(*change.canary, rules));
  if (change.removes_shadow) rules.shadow.reset();
  if (change.shadow) NEREID_RETURN_IF_ERROR(ChangeShadow(*change.shadow, rules));
  NEREID_RETURN_IF_ERROR(CheckLabels(rules));
  if (rules.canary) NEREID_RETURN_IF_ERROR(CheckCanary(rules, *rules.canary));
  if (rules.shadow) NEREID_RETURN_IF_ERROR(CheckShadow(*rules.shadow));
  return rules;
}

}  // namespace nereid::engine
