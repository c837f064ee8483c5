// SPDX-License-Identifier: Apache-2.0
// TRITONSERVER_Server*: listing, loading and unloading models. Texts: core/src/tritonserver.cc and
// model_repository_manager.cc of Triton.
#include <map>
#include <span>
#include <string>

#include "abi_objects/error.h"
#include "abi_objects/message.h"
#include "abi_objects/parameter.h"
#include "capi/server.h"
#include "service/model_json.h"

using nereid::abi_objects::RunApiCall;
using nereid::base::InvalidArgumentError;
using nereid::base::Status;

namespace {

using LoadOptions = nereid::service::LoadOptions;

constexpr std::string_view kFilePrefix = "file:";

nereid::base::Result<LoadOptions> ToLoadOptions(
    std::span<const TRITONSERVER_Parameter* const> parameters) {
  LoadOptions options;
  for (const TRITONSERVER_Parameter* const parameter : parameters) {
    const auto* const text = std::get_if<std::string>(&parameter->value);
    if (parameter->name == "config" && text != nullptr) {
      options.config = *text;
      continue;
    }
    if (!parameter->name.starts_with(kFilePrefix)) {
      // The variant's alternatives have the order of the enumeration.
      const auto type = static_cast<TRITONSERVER_ParameterType>(parameter->value.index());
      return InvalidArgumentError("Unrecognized load parameter '" + parameter->name +
                                  "' with type '" + TRITONSERVER_ParameterTypeString(type) + "'");
    }
    const auto* const bytes = std::get_if<TRITONSERVER_Parameter::Bytes>(&parameter->value);
    if (bytes == nullptr) {
      return InvalidArgumentError("File override parameter '" + parameter->name +
                                  "' must be of type bytes");
    }
    options.files.push_back({parameter->name.substr(kFilePrefix.size()),
                             std::string(static_cast<const char*>(bytes->data), bytes->size)});
  }
  return options;
}

// Parameters are named after folders; their values are the names of the models in them.
nereid::base::Result<nereid::repository::NameMapping> ToNameMapping(
    std::span<const TRITONSERVER_Parameter* const> parameters, const std::string& repository) {
  nereid::repository::NameMapping names;
  for (const TRITONSERVER_Parameter* const parameter : parameters) {
    const auto* const name = std::get_if<std::string>(&parameter->value);
    if (name == nullptr) {
      return InvalidArgumentError("Mapped model name must be a string, found another type for " +
                                  parameter->name);
    }
    if (!names.try_emplace(*name, parameter->name).second) {
      return InvalidArgumentError("failed to register '" + repository +
                                  "', there is a conflicting mapping for '" + *name + "'");
    }
  }
  return names;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONSERVER_ServerRegisterModelRepository(
    TRITONSERVER_Server* server, const char* repository_path,
    const TRITONSERVER_Parameter** name_mapping, const uint32_t mapping_count) {
  return RunApiCall([&]() -> Status {
    if (name_mapping == nullptr && mapping_count != 0) {
      return InvalidArgumentError(
          "model mappings are not provided while mapping count is non-zero");
    }
    NEREID_ASSIGN_OR_RETURN(const auto names,
                            ToNameMapping({name_mapping, mapping_count}, repository_path));
    return server->engine.RegisterRepository(repository_path, names);
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerUnregisterModelRepository(TRITONSERVER_Server* server,
                                                                 const char* repository_path) {
  return RunApiCall([&] { return server->engine.UnregisterRepository(repository_path); });
}

TRITONSERVER_Error* TRITONSERVER_ServerPollModelRepository(TRITONSERVER_Server* server) {
  return RunApiCall([&] { return server->engine.PollNow(); });
}

TRITONSERVER_Error* TRITONSERVER_ServerLoadModel(TRITONSERVER_Server* server,
                                                 const char* model_name) {
  return RunApiCall([&] { return server->engine.LoadTrusted(model_name, {}); });
}

TRITONSERVER_Error* TRITONSERVER_ServerLoadModelWithParameters(
    TRITONSERVER_Server* server, const char* model_name, const TRITONSERVER_Parameter** parameters,
    const uint64_t parameter_count) {
  return RunApiCall([&]() -> Status {
    if (parameters == nullptr && parameter_count != 0) {
      return InvalidArgumentError(
          "load parameters are not provided while parameter count is non-zero");
    }
    NEREID_ASSIGN_OR_RETURN(const LoadOptions options,
                            ToLoadOptions({parameters, parameter_count}));
    return server->engine.LoadTrusted(model_name, options);
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerUnloadModel(TRITONSERVER_Server* server,
                                                   const char* model_name) {
  return RunApiCall([&] { return server->engine.UnloadModel(model_name, false); });
}

TRITONSERVER_Error* TRITONSERVER_ServerUnloadModelAndDependents(TRITONSERVER_Server* server,
                                                                const char* model_name) {
  return RunApiCall([&] { return server->engine.UnloadModel(model_name, true); });
}

TRITONSERVER_Error* TRITONSERVER_ServerModelIndex(TRITONSERVER_Server* server, uint32_t flags,
                                                  TRITONSERVER_Message** model_index) {
  return RunApiCall([&]() -> Status {
    *model_index = nullptr;
    const bool only_ready = (flags & TRITONSERVER_INDEX_FLAG_READY) != 0;
    *model_index = new TRITONSERVER_Message{
        nereid::service::ToJson(server->engine.RepositoryIndex(only_ready))};
    return {};
  });
}

}  // extern "C"
#pragma GCC visibility pop
