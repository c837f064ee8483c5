// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/settings.h"

#include <algorithm>
#include <set>

#include "backend_kit/handles.h"

namespace nereid::tensorrt {

using backend::Error;
using backend::ModelConfig;
using backend::Result;
using backend::StrCat;

namespace {

Stream::Priority ReadPriority(std::string_view text) {
  if (text == "PRIORITY_MAX") {
    return Stream::Priority::kMax;
  }
  if (text == "PRIORITY_MIN") {
    return Stream::Priority::kMin;
  }
  if (!text.empty() && text != "PRIORITY_DEFAULT") {
    backend::LogWarning(StrCat("TRT backend does not support the provided stream priority '", text,
                               "', using 'PRIORITY_DEFAULT'."));
  }
  return Stream::Priority::kDefault;
}

bool PinsMemory(const rapidjson::Value& optimization, std::string_view key) {
  const rapidjson::Value* const pinned = backend::Find(optimization, key);
  return pinned == nullptr || backend::Find(*pinned, "enable") == nullptr ||
         backend::BoolMember(*pinned, "enable");
}

GraphSpec::Shapes ReadShapes(const rapidjson::Value& spec) {
  GraphSpec::Shapes shapes;
  const rapidjson::Value* const inputs = backend::Find(spec, "input");
  if (inputs != nullptr && inputs->IsObject()) {
    for (const auto& input : inputs->GetObject()) {
      shapes[input.name.GetString()] = backend::DimsMember(input.value, "dim");
    }
  }
  return shapes;
}

GraphSpec ReadSpec(const rapidjson::Value& json) {
  GraphSpec spec{.batch_size = backend::IntMember(json, "batch_size", 0),
                 .shapes = ReadShapes(json)};
  spec.lower_batch_size = spec.batch_size;
  spec.lower_shapes = spec.shapes;
  if (const rapidjson::Value* lower = backend::Find(json, "graph_lower_bound")) {
    spec.has_lower_bound = true;
    spec.lower_batch_size = backend::IntMember(*lower, "batch_size", 0);
    spec.lower_shapes = ReadShapes(*lower);
  }
  return spec;
}

// Graphs help most with small batches; these are Triton's sizes.
std::vector<GraphSpec> DefaultSpecs(const ModelConfig& config) {
  const int64_t max_batch_size = config.max_batch_size();
  std::set<int64_t> sizes = {max_batch_size == 0 ? 0 : 1};
  const rapidjson::Value* const dynamic = backend::Find(config.json(), "dynamic_batching");
  const rapidjson::Value* const sequences = backend::Find(config.json(), "sequence_batching");
  const rapidjson::Value* const oldest =
      sequences != nullptr ? backend::Find(*sequences, "oldest") : nullptr;
  if (const rapidjson::Value* scheduler = dynamic != nullptr ? dynamic : oldest) {
    for (const int64_t size : backend::DimsMember(*scheduler, "preferred_batch_size")) {
      sizes.insert(size);
    }
  } else {
    sizes.insert({1, 2, 3, 4, 6, 8, 12, 16});
  }
  sizes.insert(max_batch_size);
  std::vector<GraphSpec> specs;
  for (const int64_t size : sizes) {
    if (size <= max_batch_size) {
      specs.push_back({.batch_size = size, .lower_batch_size = size});
    }
  }
  return specs;
}

Error CheckLowerShapes(const GraphSpec& spec) {
  for (const auto& [name, shape] : spec.shapes) {
    const auto found = spec.lower_shapes.find(name);
    if (found == spec.lower_shapes.end()) {
      return Error::InvalidArgument(
          StrCat("graph lower bound spec expects shape for input '", name, "'"));
    }
    const std::vector<int64_t>& lower = found->second;
    if (lower.size() != shape.size()) {
      return Error::InvalidArgument(StrCat("graph lower bound spec expects to have '", shape.size(),
                                           " dimensions, got ", lower.size()));
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      if (lower[d] < 0 || shape[d] < 0) {
        return Error::InvalidArgument(
            StrCat("graph spec expects input '", name, "' to have dimension >= 0"));
      }
      if (lower[d] > shape[d]) {
        return Error::InvalidArgument(StrCat("graph lower bound spec expects input '", name,
                                             "' to have dimension <= ", shape[d]));
      }
    }
  }
  return {};
}

Error CheckSpec(const GraphSpec& spec, int64_t max_batch_size) {
  if (max_batch_size == 0) {
    if (spec.batch_size != 0 || spec.lower_batch_size != 0) {
      return Error::InvalidArgument(
          "graph spec expects 'batch_size' to be 0 if 'max_batch_size' is 0");
    }
  } else {
    const auto fits = [&](int64_t size) { return size >= 1 && size <= max_batch_size; };
    if (!fits(spec.batch_size) || !fits(spec.lower_batch_size)) {
      return Error::InvalidArgument(
          StrCat("graph spec expects 'batch_size' to be >= 1 and <= ", max_batch_size));
    }
  }
  if (spec.lower_batch_size > spec.batch_size) {
    return Error::InvalidArgument(
        "graph lower bound spec expects 'batch_size' to be <= graph spec 'batch_size'");
  }
  return CheckLowerShapes(spec);
}

Error ReadCuda(const ModelConfig& config, const rapidjson::Value& cuda, Settings* settings) {
  settings->uses_graphs = backend::BoolMember(cuda, "graphs");
  settings->is_busy_waiting = backend::BoolMember(cuda, "busy_wait_events");
  settings->has_output_stream = backend::BoolMember(cuda, "output_copy_stream");
  if (!settings->uses_graphs) {
    return {};
  }
  for (const rapidjson::Value& spec : backend::ArrayOf(cuda, "graph_spec")) {
    settings->graphs.push_back(ReadSpec(spec));
  }
  if (settings->graphs.empty()) {
    settings->graphs = DefaultSpecs(config);
  }
  for (const GraphSpec& spec : settings->graphs) {
    NEREID_KIT_TRY(CheckSpec(spec, config.max_batch_size()));
  }
  return {};
}

std::vector<std::string> SplitAtSemicolons(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = text.find(';');
    if (end != 0) {
      parts.emplace_back(text.substr(0, end));
    }
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return parts;
}

}  // namespace

Result<Settings> Settings::FromConfig(const ModelConfig& config) {
  Settings settings;
  settings.model_filename = backend::StringMember(config.json(), "default_model_filename");
  if (settings.model_filename.empty()) {
    settings.model_filename = "model.plan";
  }
  if (const rapidjson::Value* names = backend::Find(config.json(), "cc_model_filenames");
      names != nullptr && names->IsObject()) {
    for (const auto& entry : names->GetObject()) {
      settings.filenames_by_capability[entry.name.GetString()] = entry.value.GetString();
    }
  }
  if (const rapidjson::Value* optimization = backend::Find(config.json(), "optimization")) {
    settings.priority = ReadPriority(backend::StringMember(*optimization, "priority"));
    settings.pins_inputs = PinsMemory(*optimization, "input_pinned_memory");
    settings.pins_outputs = PinsMemory(*optimization, "output_pinned_memory");
    if (const rapidjson::Value* cuda = backend::Find(*optimization, "cuda")) {
      NEREID_KIT_TRY(ReadCuda(config, *cuda, &settings));
    }
  }
  return settings;
}

const std::string& Settings::FilenameFor(const Capability& capability) const {
  const auto found = filenames_by_capability.find(capability.text());
  return found != filenames_by_capability.end() ? found->second : model_filename;
}

Result<BackendSettings> BackendSettings::FromJson(std::string_view json) {
  BackendSettings settings;
  if (json.empty()) {
    return settings;
  }
  NEREID_KIT_ASSIGN(const rapidjson::Document config,
                    backend::ParseJson(json, "backend configuration"));
  const rapidjson::Value* const flags = backend::Find(config, "cmdline");
  if (flags == nullptr) {
    return settings;
  }
  settings.library = backend::StringMember(*flags, "library");
  settings.plugins = SplitAtSemicolons(backend::StringMember(*flags, "plugins"));
  const auto read_flag = [&](const char* key) -> Result<bool> {
    return backend::Find(*flags, key) != nullptr
               ? backend::ParseBool(std::string(backend::StringMember(*flags, key)))
               : Result<bool>(false);
  };
  NEREID_KIT_ASSIGN(settings.is_version_compatible, read_flag("version-compatible"));
  // Inputs always go to the device in one piece, so this has no effect; but what Triton refuses is
  // refused.
  NEREID_KIT_ASSIGN([[maybe_unused]] const bool coalesces, read_flag("coalesce-request-input"));
  return settings;
}

}  // namespace nereid::tensorrt
