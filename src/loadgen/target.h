// SPDX-License-Identifier: Apache-2.0
// The server that a load goes to.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "base/status.h"
#include "loadgen/grpc_connection.h"
#include "loadgen/stream.h"

namespace nereid::loadgen {

enum class Protocol { kHttp, kGrpc };

// Immutable while a load runs.
struct Target {
  Protocol protocol = Protocol::kHttp;
  Address address;
  std::shared_ptr<const TlsSettings> tls;  // null: none
  GrpcHead grpc;                           // only for gRPC
};

// Returns a protobuf message behind the length that gRPC sends with it.
std::string GrpcFrame(std::string_view message);

}  // namespace nereid::loadgen
