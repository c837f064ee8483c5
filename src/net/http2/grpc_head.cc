// SPDX-License-Identifier: Apache-2.0
#include "http2/grpc_head.h"

namespace nereid::http2 {

GrpcHead::Span GrpcHead::Keep(std::string_view text) {
  const Span span{static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(text.size())};
  text_.append(text);
  return span;
}

std::string_view GrpcHead::Find(std::string_view name) const {
  for (const Field& field : fields_) {
    if (View(field.name) == name) return View(field.value);
  }
  return {};
}

}  // namespace nereid::http2
