// SPDX-License-Identifier: Apache-2.0
#include "common/request_regions.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model.h"
#include "core/response.h"

namespace nereid::common {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::unique_ptr<core::Model> MakeModel() {
  core::ModelOptions options;
  options.name = "m";
  options.version = 1;
  options.config = std::make_shared<config::ModelConfig>();
  core::ModelTensor output;
  output.name = "OUT";
  output.type = tensor::DataType::kInt8;
  output.dims = output.model_dims = tensor::Shape({-1});
  options.outputs.push_back(output);
  return std::make_unique<core::Model>(std::move(options));
}

// Records the responses, and the state of the region table when they arrived.
class Sink final : public core::ResponseSink {
 public:
  explicit Sink(memory::RegionTable& table) : table_(table) {}

  void Send(core::ResponsePtr response, bool /*is_final*/) override {
    responses.push_back(response == nullptr ? "none" : std::string(response->error().message()));
    regions_left = table_.ReadStatus(memory::RegionKind::kSystem, "").value().size();
  }
  void OnRequestReleased(core::Request&) override { is_released = true; }
  void OnRequestGone() override { is_gone = true; }

  std::vector<std::string> responses;
  size_t regions_left = 99;
  bool is_released = false;
  bool is_gone = false;

 private:
  memory::RegionTable& table_;
};

class RequestRegionsTest : public testing::Test {
 protected:
  static constexpr size_t kSize = 4096;

  RequestRegionsTest()
      : key_("/nereid_request_regions_" + std::to_string(::getpid())),
        fd_(::shm_open(key_.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600)) {
    EXPECT_EQ(::ftruncate(fd_, kSize), 0);
    EXPECT_TRUE(table_.RegisterSystem({.name = "r", .key = key_, .byte_size = kSize}).ok());
    object_ =
        static_cast<char*>(::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
    EXPECT_TRUE(model_->TryPin());
    request_ = core::Request::Create(sink_);
    request_->model = core::ModelHandle(*model_);
  }
  ~RequestRegionsTest() override {
    request_.reset();
    ::munmap(object_, kSize);
    ::close(fd_);
    ::shm_unlink(key_.c_str());
  }

  core::RequestInput& AddInput(tensor::DataType type, size_t size) {
    core::RequestInput& input = request_->AddInput("IN", type);
    EXPECT_TRUE(
        regions_.AddInput(*request_, input, {.region = "r", .offset = 0, .byte_size = size}).ok());
    return input;
  }
  // Makes a response whose output "OUT" has `text`.
  core::ResponsePtr MakeResponse(std::string_view text) {
    core::ResponsePtr response = core::Response::Create(*request_);
    const int64_t count = static_cast<int64_t>(text.size());
    core::ResponseOutput* const output =
        response->AddOutput("OUT", tensor::DataType::kInt8, {&count, 1});
    status_ = response->AllocateBuffer(*output, text.size(), {}, false);
    if (status_.ok()) std::memcpy(output->data, text.data(), text.size());
    return response;
  }
  void Send(core::ResponsePtr response, bool is_final) {
    request_->sink().Send(std::move(response), is_final);
  }
  bool IsRegistered() {
    return !table_.ReadStatus(memory::RegionKind::kSystem, "").value().empty();
  }

  memory::RegionTable table_{true};
  Sink sink_{table_};
  const std::unique_ptr<core::Model> model_ = MakeModel();
  RequestRegions regions_{&table_};
  core::RequestPtr request_;
  base::Status status_;
  const std::string key_;
  const int fd_;
  char* object_ = nullptr;
};

TEST_F(RequestRegionsTest, ForAModelThatStandsChangesInputsAreViewsAndOutputsAreWrittenInPlace) {
  model_->SetStandsChanges();
  const core::RequestInput& input = AddInput(tensor::DataType::kInt8, 16);
  std::strcpy(object_, "seen");
  EXPECT_EQ(std::memcmp(input.first.data, "seen", 4), 0);
  EXPECT_TRUE(input.first.may_change);
  ASSERT_TRUE(regions_.AddOutput("OUT", {.region = "r", .offset = 100, .byte_size = 8}).ok());
  regions_.Attach(*request_);
  EXPECT_TRUE(regions_.empty());
  core::ResponsePtr response = MakeResponse("written");
  EXPECT_STREQ(object_ + 100, "written");
  core::Complete(std::move(request_), std::move(response));
  EXPECT_THAT(sink_.responses, ElementsAre(""));
  EXPECT_TRUE(sink_.is_gone);
}

TEST_F(RequestRegionsTest, AModelThatDoesNotStandChangesGetsCopies) {
  std::strcpy(object_, "asked");
  const core::RequestInput& input = AddInput(tensor::DataType::kInt8, 16);
  std::strcpy(object_, "later");
  EXPECT_EQ(std::memcmp(input.first.data, "asked", 5), 0);
  EXPECT_FALSE(input.first.may_change);
  ASSERT_TRUE(regions_.AddOutput("OUT", {.region = "r", .offset = 100, .byte_size = 8}).ok());
  regions_.Attach(*request_);
  core::ResponsePtr response = MakeResponse("written");
  EXPECT_STREQ(object_ + 100, "");
  core::Complete(std::move(request_), std::move(response));
  EXPECT_STREQ(object_ + 100, "written");
  EXPECT_THAT(sink_.responses, ElementsAre(""));
}

TEST_F(RequestRegionsTest, AnyModelUsesTheRegionsOfTrustedClientsInPlaceButForStrings) {
  memory::RegionTable trusting(true, true);
  ASSERT_TRUE(trusting.RegisterSystem({.name = "r", .key = key_, .byte_size = kSize}).ok());
  RequestRegions regions(&trusting);
  core::RequestInput& input = request_->AddInput("IN", tensor::DataType::kInt64);
  ASSERT_TRUE(
      regions.AddInput(*request_, input, {.region = "r", .offset = 0, .byte_size = 16}).ok());
  EXPECT_TRUE(input.first.may_change);
  core::RequestInput& text = request_->AddInput("TEXT", tensor::DataType::kBytes);
  ASSERT_TRUE(
      regions.AddInput(*request_, text, {.region = "r", .offset = 0, .byte_size = 16}).ok());
  EXPECT_FALSE(text.first.may_change);
  regions.Clear();
}

// S07: the model reads what was checked, whatever the client writes meanwhile.
TEST_F(RequestRegionsTest, S07StringsAreCopied) {
  std::memcpy(object_, "\1\0\0\0x", 5);
  const core::RequestInput& input = AddInput(tensor::DataType::kBytes, 5);
  object_[0] = 100;
  EXPECT_EQ(std::memcmp(input.first.data, "\1\0\0\0x", 5), 0);
  EXPECT_FALSE(input.first.may_change);
}

TEST_F(RequestRegionsTest, AnOutputThatDoesNotFitIsRefused) {
  ASSERT_TRUE(regions_.AddOutput("OUT", {.region = "r", .offset = 0, .byte_size = 6}).ok());
  regions_.Attach(*request_);
  core::ResponsePtr response = MakeResponse("written");
  EXPECT_EQ(status_.message(),
            "shared memory size specified with the request for output 'OUT' (6 bytes) should be at "
            "least 7 bytes to hold the results");
  EXPECT_EQ(status_.code(), base::StatusCode::kInternal);
  EXPECT_STREQ(object_, "");
}

// S08: a client that has its response finds the region gone, even if the model responds before it
// releases the request.
TEST_F(RequestRegionsTest, S08TheLastResponseWaitsUntilTheRequestIsReleased) {
  AddInput(tensor::DataType::kInt8, 16);
  regions_.Attach(*request_);
  ASSERT_TRUE(table_.Unregister(memory::RegionKind::kSystem, "r").ok());
  Send(MakeResponse("first"), false);
  EXPECT_THAT(sink_.responses, ElementsAre(""));
  EXPECT_EQ(sink_.regions_left, 1u);
  Send(MakeResponse("last"), true);
  EXPECT_THAT(sink_.responses, ElementsAre(""));
  request_.reset();
  EXPECT_THAT(sink_.responses, ElementsAre("", ""));
  EXPECT_EQ(sink_.regions_left, 0u);
  EXPECT_TRUE(sink_.is_gone);
}

TEST_F(RequestRegionsTest, ARequestThatIsDroppedGivesItsRegionsBack) {
  AddInput(tensor::DataType::kInt8, 16);
  regions_.Attach(*request_);
  ASSERT_TRUE(table_.Unregister(memory::RegionKind::kSystem, "r").ok());
  EXPECT_TRUE(IsRegistered());
  request_.reset();
  EXPECT_FALSE(IsRegistered());
  EXPECT_THAT(sink_.responses, IsEmpty());
  EXPECT_TRUE(sink_.is_released);
  EXPECT_TRUE(sink_.is_gone);
}

TEST_F(RequestRegionsTest, WhatWasCollectedForNothingIsGivenBack) {
  AddInput(tensor::DataType::kInt8, 16);
  ASSERT_TRUE(table_.Unregister(memory::RegionKind::kSystem, "r").ok());
  EXPECT_TRUE(IsRegistered());
  regions_.Clear();
  EXPECT_FALSE(IsRegistered());
}

// S07: memory that was lost turns the response into an error.
TEST_F(RequestRegionsTest, S07AResponseFromMemoryThatWasTruncatedIsAnError) {
  model_->SetStandsChanges();
  const core::RequestInput& input = AddInput(tensor::DataType::kInt8, 16);
  regions_.Attach(*request_);
  ASSERT_EQ(::ftruncate(fd_, 0), 0);
  EXPECT_EQ(input.first.data[3], std::byte{0});
  core::Complete(std::move(request_), MakeResponse("nonsense"));
  ASSERT_EQ(sink_.responses.size(), 1u);
  EXPECT_THAT(sink_.responses[0], HasSubstr("shared memory region 'r' has lost its memory"));
  ASSERT_EQ(::ftruncate(fd_, kSize), 0);
}

TEST(RequestRegions, KnowNoRegionWithoutATable) {
  RequestRegions regions;
  EXPECT_EQ(regions.AddOutput("OUT", {.region = "r"}).message(),
            "Unable to find shared memory region: 'r'");
  EXPECT_TRUE(regions.empty());
}

}  // namespace
}  // namespace nereid::common
