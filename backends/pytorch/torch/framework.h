// SPDX-License-Identifier: Apache-2.0
// Which PyTorch was opened with the plug-in.
#pragma once

#include "backend_kit/framework.h"

namespace nereid::pytorch {

backend::Result<backend::Framework> FindFramework();

}  // namespace nereid::pytorch
