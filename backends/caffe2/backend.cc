// SPDX-License-Identifier: Apache-2.0
#include "caffe2_backend/backend.h"

#include "caffe2_backend/kernels.h"

namespace nereid::caffe2 {

backend::Result<std::unique_ptr<Backend>> Backend::Create(TRITONBACKEND_Backend* handle) {
  std::unique_ptr<Backend> made(new Backend());
  NEREID_KIT_ASSIGN(made->environment_, onnxruntime::Environment::Create(handle));
  NEREID_KIT_ASSIGN(made->domain_, MakeDomain());
  return made;
}

}  // namespace nereid::caffe2
