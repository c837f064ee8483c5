// SPDX-License-Identifier: Apache-2.0
// The unary calls of the model repository extension: the index, loading and unloading. They may
// wait for disks and models, so they run where the service says that they may block.
#pragma once

#include <string_view>

#include "grpc/call_context.h"

namespace nereid::grpc {

// Answers one request message: the bytes of the reply or an error. May block.
using RepositoryMethod = base::Result<std::string> (*)(service::Service& service,
                                                       std::string_view request);

// Null when `path` is no method of this kind. Immutable.
RepositoryMethod FindRepositoryMethod(std::string_view path);

// Pooled; confined to the events of its call. The work itself does not need it: the call may be
// over before.
class RepositoryCall final : public net::GrpcCallEvents {
 public:
  static net::GrpcCallEvents* Start(CallContext& context, net::GrpcCallRef call,
                                    RepositoryMethod method);

  void OnMessage(base::BufferRef buffer, std::string_view message) override;
  void OnHalfClose() override;
  void OnCancelled() override {}
  void OnDone() override;

  // For ObjectPool.
  void Recycle();

 private:
  CallContext* context_ = nullptr;
  net::GrpcCallRef call_;
  RepositoryMethod method_ = nullptr;
  base::BufferRef buffer_;
  std::string_view bytes_;
  bool has_message_ = false;
};

}  // namespace nereid::grpc
