// SPDX-License-Identifier: Apache-2.0
#include "backend_host/framework.h"

#include "abi_objects/error.h"
#include "base/shared_library.h"
#include "nereid/backend_framework.h"

namespace nereid::backend_host {

base::Result<std::optional<FrameworkFacts>> AskAboutFramework(const std::string& path) {
  NEREID_ASSIGN_OR_RETURN(const auto library, base::SharedLibrary::Open(path));
  constexpr const char* kRequired = "TRITONBACKEND_ModelInstanceExecute";
  if (library->FindSymbol(kRequired) == nullptr) {
    return base::NotFoundError(std::string("it is no backend: it has no function ") + kRequired);
  }
  const auto tell = library->Find<decltype(NEREIDBACKEND_Framework)>("NEREIDBACKEND_Framework");
  if (tell == nullptr) return std::optional<FrameworkFacts>();
  const char* name = "";
  const char* version = "";
  const char* place = "";
  const base::Status status = abi_objects::CallPlugin(tell, &name, &version, &place);
  FrameworkFacts facts{.name = name, .error = std::string(status.message())};
  if (status.ok()) {
    facts.version = version;
    facts.path = place;
  }
  return std::optional(std::move(facts));
}

}  // namespace nereid::backend_host
