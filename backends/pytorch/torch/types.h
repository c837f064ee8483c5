// SPDX-License-Identifier: Apache-2.0
// Types of PyTorch and of the server.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

#include <optional>
#include <string>

#include "pytorch_backend/program.h"

namespace nereid::pytorch {

// Nothing for BYTES.
std::optional<at::ScalarType> ToScalarType(TRITONSERVER_DataType datatype);
// TRITONSERVER_TYPE_INVALID for types that requests do not have.
TRITONSERVER_DataType ToServerType(at::ScalarType type);

ValueType ToValueType(const c10::Type& type);

// The message of an exception without the addresses of C++ functions that PyTorch adds.
std::string MessageOf(const std::exception& error);

// A tensor that uses the memory of `input`, which is on `gpu` if it is on a GPU. REQUIRES: not
// BYTES.
at::Tensor ViewOf(const CallInput& input, const std::optional<c10::Device>& gpu);

// Fills the properties of `tensor`, which must be dense and contiguous.
void Describe(const at::Tensor& tensor, ResultTensor* result);

// Makes a tensor dense and contiguous, on `gpu` if it is there already and otherwise in host
// memory; undefined if that cannot be.
at::Tensor Plain(const at::Tensor& tensor, const std::optional<c10::Device>& gpu);

}  // namespace nereid::pytorch
