// SPDX-License-Identifier: Apache-2.0
// Keeps OpenVINO's exceptions inside.
#pragma once

#include <exception>

#include "backend_kit/error.h"
#include "openvino_backend/program.h"

namespace nereid::openvino {

// Runs `body` and makes an Error of its exception.
template <typename Body>
auto Guarded(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& e) {
    return backend::Error::Internal(PlainText(e.what()));
  } catch (...) {
    return backend::Error::Internal("OpenVINO failed without a reason");
  }
}

}  // namespace nereid::openvino
