// SPDX-License-Identifier: Apache-2.0
// Which Python runs models that bring no environment of their own.
#pragma once

#include "backend_kit/framework.h"

namespace nereid::python {

// Runs the interpreter once. The version also names packages that models often use. Fails if there
// is no interpreter, or if it has no numpy.
backend::Result<backend::Framework> FindFramework();

}  // namespace nereid::python
