// SPDX-License-Identifier: Apache-2.0
// Where plug-ins are looked for when nobody says so.
#pragma once

#include <string>

namespace nereid::engine {

// The folder of backends of the installation or the build that this library belongs to if there is
// one, else Triton's, /opt/tritonserver/backends.
std::string DefaultBackendDirectory();

// The folder `name` ("caches", "repoagents") beside the backends, where Triton's installation has
// it; if there is none, Triton's default.
std::string DefaultDirectoryBeside(const std::string& backend_directory, const std::string& name);

}  // namespace nereid::engine
