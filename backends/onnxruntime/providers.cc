// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/providers.h"

#include <algorithm>

namespace nereid::onnxruntime {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kCuda = "CUDAExecutionProvider";

constexpr Provider kProviders[] = {
    {"openvino", "OpenVINOExecutionProvider", "OpenVINO"},
    {"tensorrt", "TensorrtExecutionProvider", nullptr},
    {"cuda", kCuda, nullptr},
    {"xnnpack", "XnnpackExecutionProvider", "XNNPACK"},
    {"qnn", "QNNExecutionProvider", "QNN"},
    {"migraphx", "MIGraphXExecutionProvider", "MIGraphX"},
    {"vitisai", "VitisAIExecutionProvider", "VitisAI"},
};

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += text.empty() ? "" : ", ";
    text += name;
  }
  return text;
}

Result<std::vector<std::string>> AvailableProviders() {
  char** names = nullptr;
  int count = 0;
  NEREID_ORT_TRY(Api().GetAvailableProviders(&names, &count));
  std::vector<std::string> available(names, names + count);
  NEREID_ORT_TRY(Api().ReleaseAvailableProviders(names, count));
  return available;
}

bool Has(const std::vector<std::string>& available, std::string_view provider) {
  return std::find(available.begin(), available.end(), provider) != available.end();
}

// Options in the form of parallel arrays of C strings for ONNX Runtime; views into `options`.
struct KeyValues {
  explicit KeyValues(const Options& options) {
    for (const auto& [key, value] : options) {
      keys.push_back(key.c_str());
      values.push_back(value.c_str());
    }
  }
  std::vector<const char*> keys;
  std::vector<const char*> values;
};

// How to reach the same without the provider; empty if there is no way.
std::string_view AdviceFor(std::string_view accelerator) {
  if (accelerator == "openvino") {
    return ". OpenVINO's backend would run the model, but it is not installed: "
           "tools/setup --with openvino";
  }
  return accelerator == "tensorrt"
             ? ". To run the model with TensorRT without it, make a plan of the ONNX file "
               "(trtexec --onnx=model.onnx --saveEngine=model.plan) and set platform: "
               "\"tensorrt_plan\""
             : "";
}

// A later entry replaces an earlier one of the same key.
void Set(Options* options, const std::string& key, const std::string& value) {
  for (auto& [existing, old] : *options) {
    if (existing == key) {
      old = value;
      return;
    }
  }
  options->emplace_back(key, value);
}

Error AddCuda(OrtSessionOptions* session_options, const Options& options) {
  OrtCUDAProviderOptionsV2* raw = nullptr;
  NEREID_ORT_TRY(Api().CreateCUDAProviderOptions(&raw));
  const std::unique_ptr<OrtCUDAProviderOptionsV2, void (*)(OrtCUDAProviderOptionsV2*)> cuda(
      raw, [](OrtCUDAProviderOptionsV2* p) { Api().ReleaseCUDAProviderOptions(p); });
  const KeyValues pairs(options);
  NEREID_ORT_TRY(Api().UpdateCUDAProviderOptions(raw, pairs.keys.data(), pairs.values.data(),
                                                 pairs.keys.size()));
  return FromOrt(Api().SessionOptionsAppendExecutionProvider_CUDA_V2(session_options, raw));
}

Error AddTensorRt(OrtSessionOptions* session_options, const Options& options) {
  OrtTensorRTProviderOptionsV2* raw = nullptr;
  NEREID_ORT_TRY(Api().CreateTensorRTProviderOptions(&raw));
  const std::unique_ptr<OrtTensorRTProviderOptionsV2, void (*)(OrtTensorRTProviderOptionsV2*)>
      tensorrt(raw,
               [](OrtTensorRTProviderOptionsV2* p) { Api().ReleaseTensorRTProviderOptions(p); });
  const KeyValues pairs(options);
  NEREID_ORT_TRY(Api().UpdateTensorRTProviderOptions(raw, pairs.keys.data(), pairs.values.data(),
                                                     pairs.keys.size()));
  return FromOrt(Api().SessionOptionsAppendExecutionProvider_TensorRT_V2(session_options, raw));
}

Error AddGeneric(OrtSessionOptions* session_options, const Provider& provider,
                 const backend::Accelerator& accelerator) {
  Options options = accelerator.parameters;
  if (accelerator.name == "openvino" && options.empty()) {
    options.emplace_back("device_type", "CPU");
  }
  const KeyValues pairs(options);
  return FromOrt(Api().SessionOptionsAppendExecutionProvider(session_options, provider.generic_name,
                                                             pairs.keys.data(), pairs.values.data(),
                                                             pairs.keys.size()));
}

Error AddGpu(OrtSessionOptions* session_options, const Settings& settings, int device,
             const std::string& model_name) {
  Options cuda = settings.cuda_options;
  for (const backend::Accelerator& accelerator : settings.gpu_accelerators) {
    if (accelerator.name == "tensorrt") {
      NEREID_KIT_ASSIGN(Options options, TensorRtOptions(accelerator));
      Set(&options, "device_id", std::to_string(device));
      NEREID_KIT_TRY(AddTensorRt(session_options, options));
    } else if (accelerator.name == "cuda") {
      for (const auto& [key, value] : accelerator.parameters) {
        Set(&cuda, key, value);
      }
    } else {
      NEREID_KIT_TRY(AddGeneric(session_options, *FindProvider(accelerator.name), accelerator));
    }
  }
  NEREID_KIT_TRY(CheckCudaOptions(model_name, cuda));
  Set(&cuda, "device_id", std::to_string(device));
  // Fails where the provider's library, or one of CUDA's that it needs, cannot be opened.
  if (const Error error = AddCuda(session_options, cuda); !error.ok()) {
    return Error(error.code(),
                 StrCat("unable to load model '", model_name,
                        "', the CUDA execution provider does not start: ", error.message()));
  }
  return {};
}

}  // namespace

bool HasCuda() {
  auto available = AvailableProviders();
  if (!available.ok()) {
    available.TakeError().Ignore();
    return false;
  }
  return Has(available.value(), kCuda);
}

Error CheckCudaOptions(const std::string& model_name, const Options& options) {
  for (const auto& [key, value] : options) {
    const bool is_address = key == "user_compute_stream" || key == "has_user_compute_stream" ||
                            key == "gpu_external_alloc" || key == "gpu_external_free" ||
                            key == "gpu_external_empty_cache";
    if (is_address) {
      return Error::InvalidArgument(
          StrCat("unable to load model '", model_name, "', the parameter '", key,
                 "' of the CUDA execution provider is an address in the process that sets it, "
                 "which a configuration cannot know"));
    }
  }
  return {};
}

const Provider* FindProvider(std::string_view accelerator) {
  for (const Provider& provider : kProviders) {
    if (provider.accelerator == accelerator) {
      return &provider;
    }
  }
  return nullptr;
}

Error CheckAccelerator(const std::string& model_name, const std::string& accelerator,
                       const std::vector<std::string>& available) {
  const Provider* provider = FindProvider(accelerator);
  if (provider == nullptr) {
    return Error::InvalidArgument(
        StrCat("unable to load model '", model_name, "', unknown Execution Accelerator '",
               accelerator, "' is requested; execution providers available: ", Joined(available)));
  }
  if (!Has(available, provider->provider)) {
    return Error::InvalidArgument(
        StrCat("unable to load model '", model_name, "', Execution Accelerator '", accelerator,
               "' is requested but this ONNX Runtime library has no ", provider->provider,
               "; execution providers available: ", Joined(available), AdviceFor(accelerator)));
  }
  return {};
}

Result<Options> TensorRtOptions(const backend::Accelerator& accelerator) {
  Options options;
  for (const auto& [key, value] : accelerator.parameters) {
    if (key == "precision_mode") {
      if (value == "FP16" || value == "BF16" || value == "INT8") {
        const char* option = value == "FP16"   ? "trt_fp16_enable"
                             : value == "BF16" ? "trt_bf16_enable"
                                               : "trt_int8_enable";
        Set(&options, option, "1");
      } else if (value != "FP32") {
        return Error::InvalidArgument(
            StrCat("unsupported precision mode '", value, "' is requested"));
      }
    } else if (key == "max_workspace_size_bytes") {
      Set(&options, "trt_max_workspace_size", value);
    } else if (key == "int8_calibration_table_name" || key == "int8_use_native_calibration_table") {
      Set(&options, "trt_" + key, value);
    } else if (key.rfind("trt_", 0) == 0) {
      Set(&options, key, value);
    } else {
      return Error::InvalidArgument(
          StrCat("unknown parameter '", key, "' is provided for TensorRT Execution Accelerator"));
    }
  }
  return options;
}

Error AddProviders(OrtSessionOptions* options, const Settings& settings, const Placement& placement,
                   const std::string& model_name) {
  NEREID_KIT_ASSIGN(const std::vector<std::string> available, AvailableProviders());
  for (const auto* list : {&settings.gpu_accelerators, &settings.cpu_accelerators}) {
    for (const backend::Accelerator& accelerator : *list) {
      NEREID_KIT_TRY(CheckAccelerator(model_name, accelerator.name, available));
    }
  }
  if (placement.gpu) {
    if (!Has(available, kCuda)) {
      return Error::Unsupported(
          StrCat("unable to load model '", model_name,
                 "', GPU instances not supported: this ONNX Runtime library has no "
                 "CUDAExecutionProvider; execution providers available: ",
                 Joined(available)));
    }
    NEREID_KIT_TRY(AddGpu(options, settings, placement.device, model_name));
  }
  for (const backend::Accelerator& accelerator : settings.cpu_accelerators) {
    const Provider& provider = *FindProvider(accelerator.name);
    if (provider.generic_name == nullptr) {
      return Error::InvalidArgument(StrCat("unable to load model '", model_name,
                                           "', Execution Accelerator '", accelerator.name,
                                           "' is requested for the CPU"));
    }
    NEREID_KIT_TRY(AddGeneric(options, provider, accelerator));
  }
  return {};
}

}  // namespace nereid::onnxruntime
