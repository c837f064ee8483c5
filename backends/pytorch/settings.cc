// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/settings.h"

namespace nereid::pytorch {

using backend::Error;
using backend::ModelConfig;
using backend::Result;
using backend::StrCat;

namespace {

Error Named(const char* key, const Error& error) {
  return Error(error.code(), StrCat(error.message(), " for parameter '", key, "'"));
}

Error ReadBool(const ModelConfig& config, const char* key, std::optional<bool>* value) {
  const std::optional<std::string> text = config.Parameter(key);
  if (!text) {
    return {};
  }
  auto parsed = backend::ParseBool(*text);
  if (!parsed.ok()) {
    return Named(key, parsed.TakeError());
  }
  *value = parsed.value();
  return {};
}

Error ReadThreads(const ModelConfig& config, const char* key, int* value) {
  auto parsed = config.IntParameter(key, 0);
  if (!parsed.ok()) {
    return Named(key, parsed.TakeError());
  }
  *value = parsed.value();
  return {};
}

}  // namespace

Result<Settings> Settings::FromConfig(const ModelConfig& config) {
  Settings settings;
  settings.is_compiled = backend::StringMember(config.json(), "platform") == "torch_aoti";
  settings.model_filename = backend::StringMember(config.json(), "default_model_filename");
  std::optional<bool> not_optimized;
  std::optional<bool> inference_mode;
  std::optional<bool> no_cudnn;
  std::optional<bool> cache_cleaning;
  NEREID_KIT_TRY(ReadBool(config, "DISABLE_OPTIMIZED_EXECUTION", &not_optimized));
  NEREID_KIT_TRY(ReadBool(config, "INFERENCE_MODE", &inference_mode));
  NEREID_KIT_TRY(ReadBool(config, "DISABLE_CUDNN", &no_cudnn));
  NEREID_KIT_TRY(ReadBool(config, "ENABLE_CACHE_CLEANING", &cache_cleaning));
  NEREID_KIT_TRY(ReadBool(config, "ENABLE_WEIGHT_SHARING", &settings.weight_sharing));
  // The first name is the one of older documents.
  NEREID_KIT_TRY(ReadBool(config, "ENABLE_TORCH_FUSER", &settings.tensor_fuser));
  NEREID_KIT_TRY(ReadBool(config, "ENABLE_TENSOR_FUSER", &settings.tensor_fuser));
  NEREID_KIT_TRY(ReadBool(config, "ENABLE_JIT_PROFILING", &settings.jit_profiling));
  NEREID_KIT_TRY(ReadBool(config, "ENABLE_JIT_EXECUTOR", &settings.jit_executor));
  NEREID_KIT_TRY(ReadThreads(config, "INTRA_OP_THREAD_COUNT", &settings.intra_op_threads));
  NEREID_KIT_TRY(ReadThreads(config, "INTER_OP_THREAD_COUNT", &settings.inter_op_threads));
  settings.optimized_execution = !not_optimized.value_or(false);
  settings.inference_mode = inference_mode.value_or(true);
  settings.cudnn = !no_cudnn.value_or(false);
  settings.cache_cleaning = cache_cleaning.value_or(false);
  return settings;
}

}  // namespace nereid::pytorch
