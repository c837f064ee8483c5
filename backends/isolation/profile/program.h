// SPDX-License-Identifier: Apache-2.0
// The program `nereid`, which confines processes before they run models.
#pragma once

#include <string>

#include "backend_kit/error.h"

namespace nereid::isolation {

// The first argument that makes the program do so. The model's name and the text of
// confinement_text.h follow, and, if it is to become another program, that program with its
// arguments.
inline constexpr const char* kProgramMode = "isolated-model";

// Returns the path of the program. That is this process's own unless the server is embedded in
// another one; then it lies where the package has put it, seen from the server's library.
backend::Result<std::string> FindProgram();

}  // namespace nereid::isolation
