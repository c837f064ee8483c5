// SPDX-License-Identifier: Apache-2.0
// RepositoryIndex, RepositoryModelLoad and RepositoryModelUnload. They wait for disks and models,
// so they may block.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "service/service.h"

namespace nereid::grpc {

// Each takes the bytes of a request and returns those of the reply. The files of a load request are
// moved, not copied.
base::Result<std::string> RepositoryIndex(service::Service& service, std::string_view bytes);
base::Result<std::string> RepositoryModelLoad(service::Service& service, std::string_view bytes);
base::Result<std::string> RepositoryModelUnload(service::Service& service, std::string_view bytes);

}  // namespace nereid::grpc
