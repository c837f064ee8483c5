// SPDX-License-Identifier: Apache-2.0
#include "check/explain.h"

#include <algorithm>
#include <map>

#include "config/print.h"

namespace nereid::check {
namespace {

// A value in a printed configuration.
struct Leaf {
  int line = 0;
  int column = 0;
  std::string value;
};
using Leaves = std::map<std::string, Leaf>;

// Whether `path` names a map's entry by its position, which also has a name by its key.
bool IsUnnamedEntry(const config::TextPlaces& places, std::string_view path) {
  for (size_t end = path.find(']'); end != std::string_view::npos; end = path.find(']', end + 1)) {
    const std::string_view entry = path.substr(0, end + 1);
    if (!entry.ends_with("']") && places.Has(std::string(entry) + ".key")) return true;
  }
  return false;
}

// Returns the values of a configuration's text by their paths.
Leaves LeavesOf(const config::TextPlaces& places) {
  Leaves leaves;
  const auto& all = places.all();
  for (auto it = all.begin(); it != all.end(); ++it) {
    // A field with members or elements is followed by those, apart from fields whose names only
    // begin alike.
    const auto begins = [&](char next) {
      const auto after = all.lower_bound(it->first + next);
      return after != all.end() && after->first.starts_with(it->first + next);
    };
    if (begins('.') || begins('[') || IsUnnamedEntry(places, it->first)) continue;
    const config::TextPlace& place = it->second;
    leaves[it->first] = {place.line, place.column, place.is_scalar ? place.value : "{ }"};
  }
  return leaves;
}

Leaves LeavesOf(const config::ModelConfig& config) {
  return LeavesOf(config::TextPlaces::Read(config::ToText(config)));
}

bool Has(const Leaves& leaves, const std::string& field, const std::string& value) {
  const auto found = leaves.find(field);
  return found != leaves.end() && found->second.value == value;
}

}  // namespace

std::string_view SourceName(Source source) {
  switch (source) {
    case Source::kFile:
      return "config.pbtxt";
    case Source::kFileNames:
      return "names of the model's folder and files";
    case Source::kDefault:
      return "default of the server";
    case Source::kModelFile:
      return "model file, read by the backend";
    case Source::kInstances:
      return "default of the server and the backend for instances";
  }
  return "";
}

std::vector<ExplainedValue> ExplainConfig(const ModelView& model,
                                          const config::ModelConfig& effective) {
  const Leaves written = LeavesOf(model.written.value_or(config::ModelConfig()));
  const Leaves named = LeavesOf(model.completed.value_or(config::ModelConfig()));
  const Leaves normal = LeavesOf(model.config.value_or(config::ModelConfig()));
  const Leaves all = LeavesOf(effective);
  // In the order of the text that the effective configuration would be.
  std::map<std::pair<int, int>, std::vector<ExplainedValue>> by_place;
  for (const auto& [field, leaf] : all) {
    ExplainedValue value{.field = field, .value = leaf.value};
    const auto in_file = written.find(field);
    if (in_file != written.end()) {
      const config::TextPlace* const place = model.places.Find(field, leaf.value);
      value.line = place == nullptr ? 0 : place->line;
    }
    if (Has(written, field, leaf.value)) {
      value.source = Source::kFile;
    } else if (Has(named, field, leaf.value)) {
      value.source = Source::kFileNames;
    } else if (Has(normal, field, leaf.value)) {
      value.source = Source::kDefault;
    } else {
      value.source = field.starts_with("instance_group") ? Source::kInstances : Source::kModelFile;
    }
    if (in_file != written.end() && in_file->second.value != leaf.value) {
      value.written = in_file->second.value;
    }
    by_place[{leaf.line, leaf.column}].push_back(std::move(value));
  }
  std::vector<ExplainedValue> values;
  for (auto& [place, group] : by_place) std::ranges::move(group, std::back_inserter(values));
  return values;
}

}  // namespace nereid::check
