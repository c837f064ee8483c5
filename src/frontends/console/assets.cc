// SPDX-License-Identifier: Apache-2.0
#include "console/assets.h"

#include <algorithm>

namespace nereid::console {

const Asset* FindAsset(std::span<const Asset> assets, std::string_view path) {
  const auto found = std::ranges::find(assets, path, &Asset::path);
  return found == assets.end() ? nullptr : &*found;
}

}  // namespace nereid::console
