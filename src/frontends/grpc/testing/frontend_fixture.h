// SPDX-License-Identifier: Apache-2.0
// A frontend on a port of its own in front of a fake service, for the tests of inference calls.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "common/reactor_rounds.h"
#include "grpc/frontend.h"
#include "grpc_service.pb.h"
#include "http2/testing/socket_client.h"
#include "net/reactor.h"
#include "service/testing/fake_service.h"

namespace nereid::grpc {

inline constexpr char kUnaryPath[] = "/inference.GRPCInferenceService/ModelInfer";
inline constexpr char kStreamPath[] = "/inference.GRPCInferenceService/ModelStreamInfer";

// Encodes a request to the model of the fake service.
inline std::string EncodeRequest(std::string_view data, const std::string& id = "") {
  inference::ModelInferRequest request;
  request.set_model_name("m");
  request.set_id(id);
  auto* const input = request.add_inputs();
  input->set_name("IN0");
  input->set_datatype("UINT8");
  input->add_shape(static_cast<int64_t>(data.size()));
  request.add_raw_input_contents(std::string(data));
  return request.SerializeAsString();
}

// Responds without outputs, which costs no memory.
inline void RespondBriefly(core::RequestPtr request) {
  core::ResponsePtr response = core::Response::Create(*request);
  core::Complete(std::move(request), std::move(response));
}

class FrontendTest : public testing::Test {
 protected:
  // REQUIRES: the frontend has not been started.
  void UseDecoupledModel() {
    service_ = std::make_unique<service::FakeService>(
        service::MakeModel({tensor::DataType::kUint8}, 0, /*is_decoupled=*/true));
  }
  void Start(FrontendOptions options = {}, uint32_t window = 1 << 30) {
    options.server.listener = {.address = "127.0.0.1"};
    auto frontend = Frontend::Start(options, {*service_, pool_, rounds_});
    ASSERT_TRUE(frontend.ok()) << frontend.status().message();
    frontend_ = std::move(*frontend);
    client_ = std::make_unique<http2::Client>(frontend_->port(), window);
  }
  // Sends a request as a call of its own, and waits for its end.
  http2::Reply Infer(std::string_view data = "x") {
    return client_->Finish(client_->Call(kUnaryPath, http2::Prefixed(EncodeRequest(data))));
  }
  // Keeps the memory of a request until LetGo, as a backend does that executes several together.
  void Keep(core::Request& request) {
    base::MutexLock lock(mutex_);
    kept_.emplace_back(request);
  }
  // Before the end of the frontend, which waits for all requests.
  void LetGo() {
    std::vector<core::RequestRef> kept;
    base::MutexLock lock(mutex_);
    kept.swap(kept_);
  }
  // Opens a stream that begins with a request.
  int32_t OpenStream(std::string_view data = "x", const http2::TestClient::Headers& metadata = {}) {
    return client_->Call(kStreamPath, http2::Prefixed(EncodeRequest(data)), metadata,
                         /*open=*/true);
  }
  // Waits for the message of that number on a stream.
  inference::ModelStreamInferResponse Response(int32_t stream, size_t number) {
    const auto has_come = [&] { return client_->reply(stream).messages().size() > number; };
    EXPECT_TRUE(client_->Until(has_come));
    inference::ModelStreamInferResponse response;
    if (has_come()) {
      EXPECT_TRUE(response.ParseFromString(client_->reply(stream).messages()[number]));
    }
    return response;
  }

  std::unique_ptr<service::FakeService> service_ =
      std::make_unique<service::FakeService>(service::MakeModel({tensor::DataType::kUint8}));
  net::ReactorPool pool_{1};
  const common::RoundExecutors rounds_{pool_};
  std::unique_ptr<Frontend> frontend_;
  std::unique_ptr<http2::Client> client_;

 private:
  base::Mutex mutex_;
  std::vector<core::RequestRef> kept_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::grpc
