// SPDX-License-Identifier: Apache-2.0
// An entry point over a real socket, with a service of one model "m" that echoes, for the tests of
// this module.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "http/api_handler.h"
#include "http/testing/client.h"
#include "http/testing/fake_service.h"
#include "http1/http_server.h"

namespace nereid::cloud {

class EntryPointTest : public testing::Test {
 protected:
  explicit EntryPointTest(common::Restrictions restrictions = {})
      : api_({.restrictions = std::move(restrictions)}, pool_, service_, rounds_) {}

  void Serve(std::unique_ptr<http1::HttpHandler> handler) {
    handler_ = std::move(handler);
    server_ = std::move(
        *http1::HttpServer::Start({.listener = {.address = "127.0.0.1"}}, pool_, *handler_));
    client_ = std::make_unique<http::Client>(server_->port());
  }
  http::Reply Ask(std::string_view method, std::string_view path, std::string_view body = "",
                  std::string_view headers = "") {
    return client_->Ask(method, path, body, headers);
  }
  int StatusOf(std::string_view method, std::string_view path, std::string_view body = "",
               std::string_view headers = "") {
    return Ask(method, path, body, headers).status;
  }

  http::FakeService service_{http::MakeModel({tensor::DataType::kFp32})};
  net::ReactorPool pool_{1};
  common::RoundExecutors rounds_{pool_};
  http::ApiHandler api_;

 private:
  std::unique_ptr<http1::HttpHandler> handler_;  // outlives the server
  std::unique_ptr<http1::HttpServer> server_;
  std::unique_ptr<http::Client> client_;
};

inline constexpr std::string_view kJsonInputs =
    R"({"inputs":[{"name":"IN0","shape":[1],"datatype":"FP32","data":[0.5]}]})";
inline constexpr std::string_view kJsonOutputs =
    R"({"model_name":"m","model_version":"3","outputs":[{"name":"OUT0","datatype":"FP32",)"
    R"("shape":[1],"data":[0.5]}]})";
// The head of a request with one tensor of four bytes after it, which requests binary output.
inline constexpr std::string_view kBinaryInputs =
    R"({"parameters":{"binary_data_output":true},"inputs":[{"name":"IN0","shape":[1],)"
    R"("datatype":"FP32","parameters":{"binary_data_size":4}}]})";
inline constexpr std::string_view kBinaryOutputs =
    R"({"model_name":"m","model_version":"3","outputs":[{"name":"OUT0","datatype":"FP32",)"
    R"("shape":[1],"parameters":{"binary_data_size":4}}]})";

// Content types with a wrong length of the JSON in front of binary tensors, and the resulting
// errors.
inline constexpr std::pair<std::string_view, std::string_view> kMalformedLengths[] = {
    {"abc", "Unable to parse inference header size, got: abc"},
    {"-5", "inference header size should be in range (0, 6), got: -5"},
    {"7", "inference header size should be in range (0, 6), got: 7"},
    {"99999999999",
     "Unable to parse inference header size, value is out of range, got: 99999999999"},
};

}  // namespace nereid::cloud
