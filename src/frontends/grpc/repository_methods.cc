// SPDX-License-Identifier: Apache-2.0
// Texts: server/src/grpc/grpc_server.cc of Triton.
#include "grpc/repository_methods.h"

#include <utility>

#include "grpc/call_context.h"
#include "grpc_service.pb.h"

namespace nereid::grpc {
namespace {

constexpr std::string_view kFilePrefix = "file:";

base::Status RefuseRepository(const std::string& name) {
  if (name.empty()) return base::OkStatus();
  return base::UnsupportedError("'repository_name' specification is not supported");
}

base::Status WrongType(const std::string& name, std::string_view expected) {
  return base::InvalidArgumentError("invalid value type for load parameter '" + name +
                                    "', expected " + std::string(expected) + ".");
}

template <typename Message>
bool Parse(std::string_view bytes, Message& message) {
  return bytes.size() <= INT32_MAX &&
         message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

base::Status Unparsable() { return base::InternalError(std::string(kUnparsableText)); }

base::Result<service::LoadOptions> ReadOptions(inference::RepositoryModelLoadRequest& request) {
  service::LoadOptions options;
  for (auto& [name, parameter] : *request.mutable_parameters()) {
    if (name == "config") {
      if (!parameter.has_string_param()) return WrongType(name, "string_param");
      options.config = std::move(*parameter.mutable_string_param());
    } else if (name.starts_with(kFilePrefix)) {
      if (!parameter.has_bytes_param()) return WrongType(name, "bytes_param");
      options.files.push_back(
          {name.substr(kFilePrefix.size()), std::move(*parameter.mutable_bytes_param())});
    } else {
      return base::InvalidArgumentError("unrecognized load parameter '" + name + "'.");
    }
  }
  return options;
}

}  // namespace

base::Result<std::string> RepositoryIndex(service::Service& service, std::string_view bytes) {
  inference::RepositoryIndexRequest request;
  if (!Parse(bytes, request)) return Unparsable();
  NEREID_RETURN_IF_ERROR(RefuseRepository(request.repository_name()));
  inference::RepositoryIndexResponse reply;
  for (service::IndexEntry& entry : service.RepositoryIndex(request.ready())) {
    inference::RepositoryIndexResponse::ModelIndex& model = *reply.add_models();
    model.set_name(std::move(entry.name));
    model.set_version(std::move(entry.version));
    model.set_state(std::move(entry.state));
    model.set_reason(std::move(entry.reason));
  }
  return reply.SerializeAsString();
}

base::Result<std::string> RepositoryModelLoad(service::Service& service, std::string_view bytes) {
  inference::RepositoryModelLoadRequest request;
  if (!Parse(bytes, request)) return Unparsable();
  NEREID_RETURN_IF_ERROR(RefuseRepository(request.repository_name()));
  NEREID_ASSIGN_OR_RETURN(const service::LoadOptions options, ReadOptions(request));
  NEREID_RETURN_IF_ERROR(service.LoadModel(request.model_name(), options));
  return inference::RepositoryModelLoadResponse().SerializeAsString();
}

base::Result<std::string> RepositoryModelUnload(service::Service& service, std::string_view bytes) {
  inference::RepositoryModelUnloadRequest request;
  if (!Parse(bytes, request)) return Unparsable();
  NEREID_RETURN_IF_ERROR(RefuseRepository(request.repository_name()));
  bool unload_dependents = false;
  const auto parameter = request.parameters().find("unload_dependents");
  if (parameter != request.parameters().end()) {
    if (!parameter->second.has_bool_param()) {
      return base::InvalidArgumentError(
          "invalid value type for 'unload_dependents' parameter, expected bool_param.");
    }
    unload_dependents = parameter->second.bool_param();
  }
  NEREID_RETURN_IF_ERROR(service.UnloadModel(request.model_name(), unload_dependents));
  return inference::RepositoryModelUnloadResponse().SerializeAsString();
}

}  // namespace nereid::grpc
