// SPDX-License-Identifier: Apache-2.0
// Tells what a model's file is before OpenVINO reads it. OpenVINO would try its readers in turn,
// some of which write to the standard error stream, and its own errors do not say what the user
// should do.
#pragma once

#include <string>

#include "backend_kit/error.h"

namespace nereid::openvino {

// The formats that this backend reads.
enum class ModelFormat { kIr, kOnnx, kTensorFlow, kTensorFlowLite, kPaddle };

// OpenVINO's name of the part of it that reads the format, such as "onnx".
const char* FrontEndOf(ModelFormat format);

// Returns the format of the file, or folder of a SavedModel, at `path`. Fails, with what it is and
// what to do, if it is none or is cut off.
backend::Result<ModelFormat> CheckModelFile(const std::string& path);

}  // namespace nereid::openvino
