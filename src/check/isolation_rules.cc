// SPDX-License-Identifier: Apache-2.0
// Rules about the parameters of models in processes of their own (docs/isolation.md).
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "check/rules.h"

namespace nereid::check {
namespace {

constexpr std::string_view kPrefix = "isolation";

// Whether a value is one that the parameter may have.
using IsValid = bool (*)(const std::string& value);

struct IsolationParameter {
  std::string_view name;
  IsValid is_valid;
  std::string_view expected;
};

bool IsPositive(const std::string& value) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  return end != value.c_str() && *end == '\0' && number > 0 && number <= 1e9;
}

bool IsFlag(const std::string& value) { return Understands(ParameterType::kBool, value); }

bool IsPathList(const std::string& value) {
  size_t begin = 0;
  while (begin < value.size()) {
    const size_t end = std::min(value.find(':', begin), value.size());
    if (end > begin && value[begin] != '/') return false;
    begin = end + 1;
  }
  return true;
}

constexpr auto kParameters = std::to_array<IsolationParameter>({
    {"isolation", [](const std::string& value) { return value == "process" || value == "none"; },
     "'process' or 'none'"},
    {"isolation_timeout_secs", IsPositive, "a number above 0"},
    {"isolation_memory_mb", IsPositive, "a number above 0"},
    {"isolation_network", IsFlag, "true or false"},
    {"isolation_files", [](const std::string& value) { return value == "model" || value == "all"; },
     "'model' or 'all'"},
    {"isolation_read_paths", IsPathList, "absolute paths, separated by colons"},
    {"isolation_write_paths", IsPathList, "absolute paths, separated by colons"},
    {"isolation_strict", IsFlag, "true or false"},
});

}  // namespace

bool IsOfIsolation(std::string_view name) { return name.starts_with(kPrefix); }

void CheckIsolation(const ModelView& model, Findings& findings) {
  const auto& parameters = model.config->parameters;
  const auto isolation = parameters.find(std::string(kPrefix));
  const bool is_isolated = isolation != parameters.end() && isolation->second == "process";
  for (const auto& [name, value] : parameters) {
    if (!IsOfIsolation(name)) continue;
    const std::string field = fmt::format("parameters['{}']", name);
    const auto known = std::ranges::find(kParameters, name, &IsolationParameter::name);
    if (known == kParameters.end()) {
      std::vector<std::string_view> names;
      for (const IsolationParameter& parameter : kParameters) names.push_back(parameter.name);
      const std::string_view nearest = base::NearestName(name, names);
      findings.AtField(
          "parameter-unknown", field,
          {.text = fmt::format("the server does not read the parameter '{}'", name),
           .found = fmt::format("'{}'", name),
           .expected = base::QuotedList(names),
           .suggestion =
               nearest.empty() ? std::string() : fmt::format("Did you mean '{}'?", nearest)});
    } else if (!known->is_valid(value)) {
      findings.AtField(
          "parameter-value", field + ".string_value",
          {.text = fmt::format("failed to convert '{}' of the parameter '{}'", value, name),
           .found = fmt::format("'{}'", value),
           .expected = std::string(known->expected)});
    } else if (!is_isolated && name != kPrefix) {
      findings.AtField(
          "isolation-unused", field,
          {.text = fmt::format("the parameter '{}' has no effect unless 'isolation' is 'process'",
                               name),
           .found = fmt::format("'{}'", name),
           .expected = "isolation: process"});
    }
  }
}

}  // namespace nereid::check
