// SPDX-License-Identifier: Apache-2.0
// The functions that the server calls in the OpenVINO backend.
#include <openvino/core/version.hpp>

#include "backend_kit/entry_points.h"
#include "backend_kit/framework.h"
#include "openvino_backend/instance.h"

namespace nereid::openvino {

using backend::Result;

// Here rather than with the model, because the module is also linked where OpenVINO is not.
Result<std::unique_ptr<Backend>> Backend::Create(TRITONBACKEND_Backend* handle) {
  TRITONSERVER_Message* message = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_BackendConfig(handle, &message));  // owned by the server
  NEREID_KIT_ASSIGN(const std::string_view json, backend::MessageText(message));
  std::unique_ptr<Backend> made(new Backend());
  if (!json.empty()) {
    NEREID_KIT_ASSIGN(const rapidjson::Document config,
                      backend::ParseJson(json, "backend configuration"));
    if (const rapidjson::Value* flags = backend::Find(config, "cmdline")) {
      if (backend::Find(*flags, "default-max-batch-size") != nullptr) {
        NEREID_KIT_ASSIGN(made->default_max_batch_size_,
                          backend::ParseInt(std::string(
                              backend::StringMember(*flags, "default-max-batch-size"))));
      }
      made->cache_dir_ = backend::StringMember(*flags, "cache-dir");
    }
  }
  NEREID_KIT_ASSIGN(made->runtime_, MakeRuntime());
  return made;
}

namespace {

// The library came with the plug-in.
Result<backend::Framework> FindFramework() {
  return backend::Framework{
      ov::get_openvino_version().buildNumber,
      backend::LibraryOf(reinterpret_cast<const void*>(&ov::get_openvino_version))};
}

}  // namespace
}  // namespace nereid::openvino

NEREID_KIT_ENTRY_POINTS(nereid::openvino::Backend, nereid::openvino::Model,
                        nereid::openvino::Instance,
                        NEREIDBACKEND_TRAIT_ANY_THREAD | NEREIDBACKEND_TRAIT_WRITES_OUTPUTS)

NEREID_KIT_FRAMEWORK("OpenVINO", nereid::openvino::FindFramework)
