// SPDX-License-Identifier: Apache-2.0
#include "isolation_backend/backend.h"

#include "backend_kit/config.h"
#include "backend_kit/handles.h"
#include "isolation_profile/confinement_text.h"
#include "isolation_profile/program.h"
#include "python_backend/deaths.h"

namespace nereid::isolation {

using backend::Result;

Result<std::unique_ptr<Backend>> Backend::Create(TRITONBACKEND_Backend* handle) {
  auto backend = std::make_unique<Backend>();
  TRITONSERVER_Message* message = nullptr;  // owned by the server
  NEREID_KIT_TRY(TRITONBACKEND_BackendConfig(handle, &message));
  NEREID_KIT_ASSIGN(const std::string_view json, backend::MessageText(message));
  NEREID_KIT_ASSIGN(const rapidjson::Document document,
                    backend::ParseJson(json, "backend configuration"));
  if (const rapidjson::Value* const given = backend::Find(document, "cmdline"); given != nullptr) {
    for (const auto& [key, value] : given->GetObject()) {
      backend->settings.emplace(key.GetString(), value.GetString());
    }
    backend->backends = backend::StringMember(*given, "backend-directory");
  }
  NEREID_KIT_ASSIGN(backend->program, FindProgram());
  backend->supervisor = std::make_unique<python::Supervisor>();
  backend->watch = std::make_unique<python::Watch>();
  backend->deaths = python::NewDeathFamily();
  return backend;
}

// The server names a setting of one backend "backend,key". Those of all backends, and what the
// server tells every backend, have no comma.
std::string Backend::SettingsOf(std::string_view name) const {
  std::map<std::string, std::string> all;
  for (const auto& [key, value] : settings) {
    if (key.find(',') == std::string::npos) all[key] = value;
  }
  const std::string prefix = std::string(name) + ",";
  for (const auto& [key, value] : settings) {
    if (key.starts_with(prefix)) all[key.substr(prefix.size())] = value;
  }
  TextList list(kSeparator);
  for (const auto& [key, value] : all) list.Add(key, value);
  return list.text();
}

}  // namespace nereid::isolation
