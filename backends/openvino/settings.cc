// SPDX-License-Identifier: Apache-2.0
#include "openvino_backend/settings.h"

#include <algorithm>
#include <utility>

#include "backend_kit/accelerators.h"

namespace nereid::openvino {

using backend::Error;
using backend::ModelConfig;
using backend::Result;
using backend::StrCat;

namespace {

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

std::string Upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return text;
}

bool IsNumber(const std::string& text) {
  return !text.empty() && text.size() <= 9 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Error Refused(const char* key, const char* expected, const std::string& value) {
  return Error::InvalidArgument(
      StrCat("expected the parameter '", key, "' to be ", expected, ", got ", value));
}

// Reads parameters of one model into its settings.
class Reader {
 public:
  Reader(const ModelConfig& config, Settings* settings) : config_(config), settings_(settings) {}

  Error ReadNumber(const char* key, const char* property) {
    const auto value = Value(key);
    if (value && !IsNumber(*value)) {
      return Refused(key, "a non-negative number", *value);
    }
    return Set(property, value);
  }

  Error ReadStreams(const char* key) {
    const auto value = Value(key);
    if (value && *value != "auto" && *value != "numa" && !IsNumber(*value)) {
      return Refused(key, "either AUTO/NUMA/<int_value>", *value);
    }
    return Set("NUM_STREAMS", value);
  }

  Error ReadHint() {
    const auto value = Value("PERFORMANCE_HINT");
    if (value && *value != "latency" && *value != "throughput" &&
        *value != "cumulative_throughput") {
      return Refused("PERFORMANCE_HINT", "LATENCY/THROUGHPUT/CUMULATIVE_THROUGHPUT", *value);
    }
    return Set("PERFORMANCE_HINT", value);
  }

  // Names of OpenVINO before its version 2.
  Error ReadOldNames() {
    NEREID_KIT_TRY(ReadNumber("CPU_THREADS_NUM", "INFERENCE_NUM_THREADS"));
    NEREID_KIT_TRY(ReadStreams("CPU_THROUGHPUT_STREAMS"));
    if (const auto value = Value("ENFORCE_BF16")) {
      if (*value != "yes" && *value != "no") {
        return Refused("ENFORCE_BF16", "either YES or NO", *value);
      }
      settings_->properties["INFERENCE_PRECISION_HINT"] = *value == "yes" ? "bf16" : "f32";
    }
    if (const auto value = Value("CPU_BIND_THREAD")) {
      if (*value != "yes" && *value != "no" && *value != "numa") {
        return Refused("CPU_BIND_THREAD", "either YES/NUMA/NO", *value);
      }
      settings_->properties["ENABLE_CPU_PINNING"] = *value == "no" ? "NO" : "YES";
    }
    return {};
  }

  Error ReadPrecision() {
    const auto value = Value("INFERENCE_PRECISION_HINT");
    if (const auto hint = Value("HINT_BF16")) {
      if (*hint != "yes") {
        return Refused("HINT_BF16", "YES", *hint);
      }
      settings_->properties["INFERENCE_PRECISION_HINT"] = "bf16";
    }
    if (!value) {
      return {};
    }
    if (*value != "f32" && *value != "f16" && *value != "bf16") {
      return Refused("INFERENCE_PRECISION_HINT", "f32, f16 or bf16", *value);
    }
    settings_->properties["INFERENCE_PRECISION_HINT"] = *value;
    return {};
  }

  // Parameters of ONNX Runtime's provider, in a model that is handed over for its accelerator.
  Error ReadAccelerator() {
    for (const auto& accelerator : backend::Accelerators(config_, "cpu_execution_accelerator")) {
      if (accelerator.name != "openvino") {
        continue;
      }
      for (const auto& [key, value] : accelerator.parameters) {
        NEREID_KIT_TRY(ReadAcceleratorParameter(key, value));
      }
    }
    return {};
  }

  Error ReadSwitch(const char* key, bool* value) {
    const auto text = Value(key);
    if (text && *text != "yes" && *text != "no") {
      return Refused(key, "either YES or NO", *text);
    }
    *value = text == "yes";
    return {};
  }

 private:
  Error ReadAcceleratorParameter(const std::string& key, const std::string& given) {
    const std::string value = Lower(given);
    auto& properties = settings_->properties;
    if (key == "device_type") {
      const size_t underscore = given.find('_');  // CPU_FP32
      settings_->device = given.substr(0, underscore);
      if (underscore != std::string::npos) {
        properties["INFERENCE_PRECISION_HINT"] = value.ends_with("_fp16") ? "f16" : "f32";
      }
    } else if (key == "precision") {
      if (value != "fp32" && value != "fp16" && value != "accuracy") {
        return Refused("precision", "FP32, FP16 or ACCURACY", given);
      }
      properties["INFERENCE_PRECISION_HINT"] = value == "fp16" ? "f16" : "f32";
    } else if (key == "num_of_threads" || key == "num_streams") {
      if (!IsNumber(given)) {
        return Refused(key.c_str(), "a non-negative number", given);
      }
      properties[key == "num_streams" ? "NUM_STREAMS" : "INFERENCE_NUM_THREADS"] = given;
    } else if (key == "cache_dir") {
      properties["CACHE_DIR"] = given;
    } else {
      backend::LogWarning(
          StrCat("parameter '", key, "' of execution accelerator 'openvino' has no effect"));
    }
    return {};
  }

  // The parameter in lower case; nothing if it is absent or empty.
  std::optional<std::string> Value(const char* key) const {
    auto text = config_.Parameter(key);
    return text && !text->empty() ? std::optional(Lower(*std::move(text))) : std::nullopt;
  }

  Error Set(const char* property, const std::optional<std::string>& value) {
    if (value) {
      settings_->properties[property] = Upper(*value);
    }
    return {};
  }

  const ModelConfig& config_;
  Settings* const settings_;
};

// How many instances the configuration asks for.
int64_t Instances(const ModelConfig& config) {
  int64_t count = 0;
  for (const rapidjson::Value& group : backend::ArrayOf(config.json(), "instance_group")) {
    count += backend::IntMember(group, "count", 1);
  }
  return count;
}

// What the user left open. Scores are those of the model's own precision, where OpenVINO would
// compute in bfloat16 on some processors. Threads of several models are not bound to the same
// cores. Each instance has a stream, without which instances of one model would wait for each
// other.
void AddDefaults(const ModelConfig& config, const std::string& cache_dir, Settings* settings) {
  auto& properties = settings->properties;
  properties.emplace("INFERENCE_PRECISION_HINT", "f32");
  const bool is_cpu = settings->device.empty() || settings->device == "CPU";
  if (is_cpu) {
    properties.emplace("ENABLE_CPU_PINNING", "NO");
  }
  if (!properties.contains("PERFORMANCE_HINT")) {
    properties["PERFORMANCE_HINT"] = "LATENCY";
    if (const int64_t instances = Instances(config); is_cpu && instances > 1) {
      properties.emplace("NUM_STREAMS", std::to_string(instances));
    }
  }
  const auto folder = config.Parameter("CACHE_DIR");
  if (const std::string& cache = folder ? *folder : cache_dir; !cache.empty()) {
    properties.emplace("CACHE_DIR", cache);
  }
}

}  // namespace

Result<Settings> Settings::FromConfig(const ModelConfig& config, const std::string& cache_dir) {
  Settings settings;
  settings.model_filename = backend::StringMember(config.json(), "default_model_filename");
  if (settings.model_filename.empty()) {
    settings.model_filename = "model.xml";
  }
  settings.device = config.Parameter("TARGET_DEVICE").value_or("");
  settings.extension_path = config.Parameter("CPU_EXTENSION_PATH").value_or("");
  Reader reader(config, &settings);
  NEREID_KIT_TRY(reader.ReadAccelerator());
  NEREID_KIT_TRY(reader.ReadOldNames());
  NEREID_KIT_TRY(reader.ReadNumber("INFERENCE_NUM_THREADS", "INFERENCE_NUM_THREADS"));
  NEREID_KIT_TRY(reader.ReadNumber("COMPILATION_NUM_THREADS", "COMPILATION_NUM_THREADS"));
  NEREID_KIT_TRY(reader.ReadStreams("NUM_STREAMS"));
  NEREID_KIT_TRY(reader.ReadHint());
  NEREID_KIT_TRY(reader.ReadPrecision());
  NEREID_KIT_TRY(reader.ReadSwitch("SKIP_OV_DYNAMIC_BATCHSIZE", &settings.fixed_batch));
  NEREID_KIT_TRY(reader.ReadSwitch("RESHAPE_IO_LAYERS", &settings.reshape_inputs));
  bool ignored = false;  // batches of any size are served anyway
  NEREID_KIT_TRY(reader.ReadSwitch("ENABLE_BATCH_PADDING", &ignored));
  AddDefaults(config, cache_dir, &settings);
  return settings;
}

}  // namespace nereid::openvino
