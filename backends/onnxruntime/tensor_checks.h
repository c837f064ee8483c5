// SPDX-License-Identifier: Apache-2.0
// Checks of single tensors of a configuration against the model, for validate.h.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "backend_kit/config.h"
#include "onnxruntime_backend/session.h"

namespace nereid::onnxruntime {

// The arguments of all checks of one model.
struct CheckContext {
  const std::string& model;
  const backend::ModelConfig& config;
  const Signature& signature;
  bool batching;

  template <typename... Parts>
  backend::Error Unable(const Parts&... parts) const {
    return backend::Error::InvalidArgument(
        backend::StrCat("unable to load model '", model, "', ", parts...));
  }
};

// Returns the names of the tensors, sorted, for error texts.
std::string NamesOf(std::initializer_list<const std::vector<TensorInfo>*> lists);

// Checks the dimensions that the configuration gives to a tensor. With `exact` false, as for
// inputs, they may be more specific than the model's.
backend::Error CheckShape(const CheckContext& context, const TensorInfo& tensor,
                          const std::vector<int64_t>& dims, bool exact);

// Checks the data type of `io`, an entry of the configuration; `what` is "input" or "output".
backend::Error CheckType(const CheckContext& context, const rapidjson::Value& io,
                         const TensorInfo& tensor, const char* what);

}  // namespace nereid::onnxruntime
