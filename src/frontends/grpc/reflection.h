// SPDX-License-Identifier: Apache-2.0
// Server reflection (grpc.reflection.v1 and v1alpha, which differ in name only): tells tools like
// grpcurl which services there are and what their messages look like.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http2/grpc_server.h"

namespace nereid::grpc {

bool IsReflectionPath(std::string_view path);

// Returns the reply to one ServerReflectionRequest; nothing if the bytes are not one.
std::optional<std::string> Reflect(std::string_view request);

// Pooled; confined to the events of its call.
class ReflectionCall final : public http2::GrpcCallEvents {
 public:
  static http2::GrpcCallEvents* Start(http2::GrpcCallRef call);

  void OnMessage(base::BufferRef buffer, std::string_view message) override;
  void OnHalfClose() override;
  void OnCancelled() override {}
  void OnDone() override;

  // For ObjectPool.
  void Recycle() { call_.Reset(); }

 private:
  http2::GrpcCallRef call_;
};

}  // namespace nereid::grpc
