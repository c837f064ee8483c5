// SPDX-License-Identifier: Apache-2.0
#include "common/header_forwarding.h"

#include <gtest/gtest.h>

#include "core/response_sink.h"

namespace nereid::common {
namespace {

class NoSink final : public core::ResponseSink {
 public:
  void Send(core::ResponsePtr, bool) override {}
  void OnRequestGone() override {}
};

class HeaderForwarding : public testing::Test {
 protected:
  std::unique_ptr<HeaderForwarder> Make(std::string_view pattern) {
    auto forwarder = HeaderForwarder::Create(pattern);
    EXPECT_TRUE(forwarder.ok());
    return std::move(forwarder).value();
  }
  NoSink sink_;
  core::RequestPtr request_ = core::Request::Create(sink_);
};

TEST_F(HeaderForwarding, KeepsACopyOfWhatMatchesAnywhereInTheName) {
  const auto forwarder = Make("my|one$");
  std::string name = "x-MY-header";
  std::string value = "value";
  ASSERT_TRUE(forwarder->Offer(name, value, *request_).ok());
  ASSERT_TRUE(forwarder->Offer("one-two", "value", *request_).ok());
  name.assign(name.size(), '?');
  value.assign(value.size(), '?');
  ASSERT_EQ(request_->parameters.size(), 1u);
  EXPECT_EQ(request_->parameters[0].name, "x-MY-header");
  EXPECT_EQ(std::get<std::string_view>(request_->parameters[0].value), "value");
}

TEST_F(HeaderForwarding, RefusesReservedNamesThatMatch) {
  const auto forwarder = Make(".*");
  for (const std::string_view name :
       {"sequence_id", "sequence_start", "sequence_end", "priority", "timeout", "headers",
        "binary_data_output", "triton_", "triton_x"}) {
    EXPECT_EQ(
        forwarder->Offer(name, "1", *request_).message(),
        "Header '" + std::string(name) + "' is reserved for Triton usage and cannot be forwarded.");
    EXPECT_TRUE(Make("^my")->Offer(name, "1", *request_).ok());
  }
  EXPECT_TRUE(request_->parameters.empty());
}

TEST(HeaderForwarder, ReportsWhatIsWrongWithAPattern) {
  EXPECT_NE(HeaderForwarder::Create("(").status().message().find("missing )"), std::string::npos);
  EXPECT_FALSE(HeaderForwarder::Create("(?=x)").ok());  // look-ahead is not linear
}

}  // namespace
}  // namespace nereid::common
