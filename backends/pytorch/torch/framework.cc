// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/torch/framework.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <torch/version.h>

namespace nereid::pytorch {

// The version is that of the headers: the plug-in opens with no other, because PyTorch's C++
// interface changes with each.
backend::Result<backend::Framework> FindFramework() {
  return backend::Framework{
      TORCH_VERSION, backend::LibraryOf(reinterpret_cast<const void*>(&at::detail::getCUDAHooks))};
}

}  // namespace nereid::pytorch
