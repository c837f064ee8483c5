// SPDX-License-Identifier: Apache-2.0
// The kinds of stores for model repositories besides local folders. A module of its own because
// both images need it: the program, and the library for programs that embed the server.
#pragma once

#include <vector>

#include "repository/routed_store.h"

namespace nereid::stores {

std::vector<repository::StoreKind> AllStores();

}  // namespace nereid::stores
