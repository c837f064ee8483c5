// SPDX-License-Identifier: Apache-2.0
// The default folders of plug-ins.
#pragma once

#include <string>

namespace nereid::engine {

// Returns the folder of backends in the installation or build that this library belongs to, or else
// Triton's, /opt/tritonserver/backends.
std::string DefaultBackendDirectory();

// Returns the folder `name` ("caches", "repoagents") beside the backends, as in Triton's
// installation, or else Triton's default.
std::string DefaultDirectoryBeside(const std::string& backend_directory, const std::string& name);

}  // namespace nereid::engine
