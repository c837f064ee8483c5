// SPDX-License-Identifier: Apache-2.0
#include "http/traffic_change.h"

#include <initializer_list>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "http/json_dom.h"

namespace nereid::http {
namespace {

using base::InvalidArgumentError;
using base::Status;

// More of a wrong name is not repeated.
constexpr size_t kMaxShownName = 64;

Status Unexpected(std::string_view member, std::string_view expected) {
  return InvalidArgumentError(
      fmt::format("'{}' of the traffic: expected {}", member.substr(0, kMaxShownName), expected));
}

std::string_view NameOf(const rapidjson::Value::Member& member) {
  return {member.name.GetString(), member.name.GetStringLength()};
}

// Reads values of members; `path` is the member's, for errors.
Status ReadValue(const JsonValue& value, std::string_view path, std::optional<int64_t>& place) {
  if (!value.IsInt64()) return Unexpected(path, "a whole number");
  place = value.GetInt64();
  return base::OkStatus();
}
Status ReadValue(const JsonValue& value, std::string_view path, std::optional<double>& place) {
  if (!value.IsNumber()) return Unexpected(path, "a number");
  place = value.GetDouble();
  return base::OkStatus();
}
Status ReadValue(const JsonValue& value, std::string_view path, std::optional<std::string>& place) {
  if (value.IsNull()) {
    place.emplace();
    return base::OkStatus();
  }
  if (!value.IsString()) return Unexpected(path, "a string or null");
  place = std::string(value.GetString(), value.GetStringLength());
  return base::OkStatus();
}

Status UnknownMember(std::string_view of, std::string_view name, std::string_view known) {
  return InvalidArgumentError(fmt::format("'{}' is no member of {}; expected {}",
                                          name.substr(0, kMaxShownName), of, known));
}

Status ReadLabels(const JsonValue& labels, service::TrafficChange& change) {
  if (!labels.IsObject()) return Unexpected("labels", "an object of labels and versions");
  for (const auto& member : labels.GetObject()) {
    std::optional<int64_t> version;
    if (!member.value.IsNull()) {
      const std::string path = fmt::format("labels.{}", NameOf(member).substr(0, kMaxShownName));
      NEREID_RETURN_IF_ERROR(ReadValue(member.value, path, version));
    }
    if (!change.labels.emplace(NameOf(member), version).second) {
      return Unexpected("labels", fmt::format("each label once; '{}' is there twice",
                                              NameOf(member).substr(0, kMaxShownName)));
    }
  }
  return base::OkStatus();
}

base::Result<service::CanaryChange> ReadCanary(const JsonValue& canary) {
  service::CanaryChange change;
  if (!canary.IsObject()) return Unexpected("canary", "an object or null");
  for (const auto& member : canary.GetObject()) {
    const std::string_view name = NameOf(member);
    if (name == "version") {
      NEREID_RETURN_IF_ERROR(ReadValue(member.value, "canary.version", change.version));
    } else if (name == "percent") {
      NEREID_RETURN_IF_ERROR(ReadValue(member.value, "canary.percent", change.percent));
    } else if (name == "header") {
      NEREID_RETURN_IF_ERROR(ReadValue(member.value, "canary.header", change.header));
    } else if (name == "label") {
      NEREID_RETURN_IF_ERROR(ReadValue(member.value, "canary.label", change.label));
    } else {
      return UnknownMember("the canary", name, "version, percent, header or label");
    }
  }
  return change;
}

base::Result<service::ShadowChange> ReadShadow(const JsonValue& shadow) {
  service::ShadowChange change;
  if (!shadow.IsObject()) return Unexpected("shadow", "an object or null");
  for (const auto& member : shadow.GetObject()) {
    const std::string_view name = NameOf(member);
    if (name == "model") {
      NEREID_RETURN_IF_ERROR(ReadValue(member.value, "shadow.model", change.model));
    } else if (name == "version") {
      NEREID_RETURN_IF_ERROR(ReadValue(member.value, "shadow.version", change.version));
    } else if (name == "percent") {
      NEREID_RETURN_IF_ERROR(ReadValue(member.value, "shadow.percent", change.percent));
    } else if (name == "tolerance") {
      NEREID_RETURN_IF_ERROR(ReadValue(member.value, "shadow.tolerance", change.tolerance));
    } else if (name == "in_flight") {
      NEREID_RETURN_IF_ERROR(ReadValue(member.value, "shadow.in_flight", change.in_flight));
    } else {
      return UnknownMember("the shadow", name, "model, version, percent, tolerance or in_flight");
    }
  }
  return change;
}

Status ReadMember(std::string_view name, const JsonValue& value, service::TrafficChange& change) {
  if (name == "labels") return ReadLabels(value, change);
  if (name == "default_label") return ReadValue(value, "default_label", change.default_label);
  if (name == "canary") {
    change.removes_canary = value.IsNull();
    if (change.removes_canary) return base::OkStatus();
    NEREID_ASSIGN_OR_RETURN(change.canary, ReadCanary(value));
    return base::OkStatus();
  }
  if (name == "shadow") {
    change.removes_shadow = value.IsNull();
    if (change.removes_shadow) return base::OkStatus();
    NEREID_ASSIGN_OR_RETURN(change.shadow, ReadShadow(value));
    return base::OkStatus();
  }
  return UnknownMember("the traffic", name, "labels, default_label, canary or shadow");
}

}  // namespace

base::Result<service::TrafficChange> ReadTrafficChange(std::string_view body) {
  rapidjson::Document document;
  if (const Status status = ParseJson(body, document); !status.ok()) {
    return InvalidArgumentError(std::string(status.message()));
  }
  if (!document.IsObject()) {
    return InvalidArgumentError("the traffic is no JSON object");
  }
  service::TrafficChange change;
  for (const auto& member : document.GetObject()) {
    NEREID_RETURN_IF_ERROR(ReadMember(NameOf(member), member.value, change));
  }
  return change;
}

}  // namespace nereid::http
