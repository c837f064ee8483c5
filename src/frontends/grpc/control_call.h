// SPDX-License-Identifier: Apache-2.0
// The unary calls that carry no tensors: health, metadata, configuration, model control. Generated
// protobuf code reads and writes their messages.
#pragma once

#include <string>
#include <string_view>

#include "access/grant.h"
#include "common/restrictions.h"
#include "grpc/call_context.h"

namespace nereid::grpc {

// Processes one request message: returns the bytes of the reply or an error.
using ControlMethod = base::Result<std::string> (*)(service::Service& service,
                                                    std::string_view request);

// Whether a method must run on a thread that may block; kAsReadiness: if Service::ReadinessMayBlock
// says so. kUntilLoaded: it waits, on no thread, until a model on demand is loaded.
enum class MayBlock { kNo, kAsReadiness, kUntilLoaded, kYes };

// The field of a request that names a model. A method whose requests name none has kNone.
enum class ModelField : uint32_t { kNone = 0, kFirst = 1, kSecond = 2 };

// A method, its category for --grpc-restricted-protocol, and what its sender needs where senders
// are asked who they are; every method has all of them.
struct ControlRoute {
  constexpr ControlRoute(std::string_view path, common::Category category, access::Scope scope,
                         ModelField model_field, ControlMethod method,
                         MayBlock may_block = MayBlock::kNo)
      : path(path),
        category(category),
        scope(scope),
        model_field(model_field),
        method(method),
        may_block(may_block) {}

  std::string_view path;
  common::Category category;
  access::Scope scope;
  ModelField model_field;
  ControlMethod method;
  MayBlock may_block;
};

// Returns null if `path` is no method of this kind. The routes are immutable.
const ControlRoute* FindControlRoute(std::string_view path);

// Returns the model that a request names; empty if it names none, or is malformed.
std::string_view NamedModel(ModelField field, std::string_view request);

// Pooled; confined to the events of its call. A method that may block does not use it, because the
// call may end before.
class ControlCall final : public http2::GrpcCallEvents {
 public:
  static http2::GrpcCallEvents* Start(CallContext& context, http2::GrpcCallRef call,
                                      const ControlRoute& route, access::GrantRef grant);

  void OnMessage(base::BufferRef buffer, std::string_view message) override;
  bool IsHeavy(std::string_view /*message*/) const override { return true; }
  void OnHalfClose() override;
  void OnCancelled() override {}
  void OnDone() override;

  // For ObjectPool.
  void Recycle();

 private:
  // Whether the sender may use the model that the request names; finishes the call if not.
  bool MayUseModel();
  // Responds when the model that the request names is loaded on demand; returns false if it is
  // loaded already, or is no such model.
  bool AwaitModel();
  // Whether this request, which names no model, changes something for all models.
  bool ChangesAllModels() const;
  // Whether this request gets a line in the log.
  bool IsAudited() const;

  CallContext* context_ = nullptr;
  http2::GrpcCallRef call_;
  access::GrantRef grant_;  // null if senders are not asked
  const ControlRoute* route_ = nullptr;
  base::BufferRef buffer_;
  std::string_view bytes_;
  bool has_message_ = false;
};

}  // namespace nereid::grpc
