// SPDX-License-Identifier: Apache-2.0
#include "cache_host/packed_response.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "core/testing/fakes.h"

namespace nereid::cache_host {
namespace {

class PackedResponseTest : public testing::Test {
 protected:
  PackedResponseTest() {
    key_.text.fill('k');
    key_.text.back() = '\0';
    core::ResponsePtr response = core::Response::Create(*request_);
    Add(*response, "OUTPUT0", tensor::DataType::kFp32, {3}, 12);
    response->AddParameter({"text", std::string_view("value")});
    packed_ = Pack(*response);
  }

  static void Add(core::Response& response, std::string_view name, tensor::DataType type,
                  std::initializer_list<int64_t> dims, size_t byte_size) {
    core::ResponseOutput& output =
        *response.AddOutput(name, type, std::span(dims.begin(), dims.size()));
    EXPECT_TRUE(response.AllocateBuffer(output, byte_size, {}, true).ok());
  }
  std::vector<std::byte> Pack(const core::Response& response) {
    std::vector<std::byte> bytes(PackedSize(key_, response).value());
    PackResponse(key_, response, bytes);
    return bytes;
  }
  // The bytes are copied to an allocation of exactly their size, so that a sanitizer detects reads
  // beyond it.
  base::Status Check(const std::vector<std::byte>& bytes) {
    const std::unique_ptr<std::byte[]> block(new std::byte[bytes.size()]);
    std::copy(bytes.begin(), bytes.end(), block.get());
    return CheckPackedResponse(key_, {block.get(), bytes.size()}, *model_);
  }
  base::Status CheckOutput(std::string_view name, tensor::DataType type,
                           std::initializer_list<int64_t> dims, size_t byte_size) {
    core::ResponsePtr response = core::Response::Create(*request_);
    Add(*response, name, type, dims, byte_size);
    return Check(Pack(*response));
  }

  const std::unique_ptr<core::Model> model_ = core::MakeFakeModel(0, {-1});
  core::FakeSink sink_;
  const core::RequestPtr request_ = core::MakeFakeRequest(*model_, sink_, {2});
  core::CacheKey key_;
  std::vector<std::byte> packed_;
};

TEST_F(PackedResponseTest, IsAcceptedWhole) { EXPECT_TRUE(Check(packed_).ok()); }

TEST_F(PackedResponseTest, IsRefusedAtEveryOtherLength) {
  for (size_t size = 0; size < packed_.size(); ++size) {
    EXPECT_FALSE(Check({packed_.begin(), packed_.begin() + static_cast<long>(size)}).ok()) << size;
  }
  std::vector<std::byte> longer = packed_;
  longer.push_back({});
  EXPECT_FALSE(Check(longer).ok());
}

TEST_F(PackedResponseTest, EveryChangedByteIsNoticed) {
  for (size_t i = 0; i < packed_.size(); ++i) {
    std::vector<std::byte> changed = packed_;
    changed[i] ^= std::byte{0x40};
    EXPECT_FALSE(Check(changed).ok()) << i;
  }
}

TEST_F(PackedResponseTest, MustFitTheModel) {
  using enum tensor::DataType;
  EXPECT_TRUE(CheckOutput("OUTPUT0", kFp32, {2, 2}, 16).ok());
  EXPECT_FALSE(CheckOutput("OUTPUT1", kFp32, {2, 2}, 16).ok());
  EXPECT_FALSE(CheckOutput("OUTPUT0", kInt32, {2, 2}, 16).ok());
  EXPECT_FALSE(CheckOutput("OUTPUT0", kFp32, {2, 2}, 15).ok());
  EXPECT_FALSE(CheckOutput("OUTPUT0", kFp32, {-1}, 16).ok());
  EXPECT_FALSE(CheckOutput("OUTPUT0", kFp32, {INT64_MAX, INT64_MAX}, 16).ok());
}

TEST_F(PackedResponseTest, AFailedResponseIsNotKept) {
  core::ResponsePtr response = core::Response::Create(*request_);
  response->SetError(base::InternalError("no"));
  EXPECT_FALSE(PackedSize(key_, *response).ok());
}

TEST_F(PackedResponseTest, AnOutputWithoutItsBufferIsNotKept) {
  core::ResponsePtr response = core::Response::Create(*request_);
  const int64_t dims[] = {1};
  response->AddOutput("OUTPUT0", tensor::DataType::kFp32, dims);
  EXPECT_FALSE(PackedSize(key_, *response).ok());
}

}  // namespace
}  // namespace nereid::cache_host
