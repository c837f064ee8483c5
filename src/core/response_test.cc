// SPDX-License-Identifier: Apache-2.0
#include "core/response.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

#include "core/model.h"
#include "core/testing/fakes.h"

namespace nereid::core {
namespace {

using memory::MemoryType;
using memory::Placement;

// Places outputs where the test says.
class PlacingSink final : public ResponseSink {
 public:
  base::Result<std::optional<OutputPlacement>> PlaceOutput(const Request&, const ResponseOutput&,
                                                           size_t byte_size,
                                                           Placement wanted) override {
    asked.push_back(byte_size);
    preferred = wanted;
    if (!refusal.ok()) return refusal;
    return placement;
  }
  void ReleasePlacement(const OutputPlacement& given_back, size_t byte_size) override {
    released.emplace_back(given_back.owner, byte_size);
  }
  void Send(ResponsePtr, bool) override {}

  std::optional<OutputPlacement> placement;
  base::Status refusal;
  std::vector<size_t> asked;
  Placement preferred;
  std::vector<std::pair<void*, size_t>> released;
};

class ResponseTest : public testing::Test {
 protected:
  ResponseTest() {
    EXPECT_TRUE(model_->TryPin());
    request_->model = ModelHandle(*model_);
  }
  ResponseOutput& Add(Response& response, std::string_view name = "OUTPUT0") {
    return *response.AddOutput(name, tensor::DataType::kInt8, std::array<int64_t, 1>{4});
  }
  static std::string_view Bytes(const ResponseOutput& output) {
    return {reinterpret_cast<const char*>(output.data), output.byte_size};
  }
  static const std::byte* ToBytes(const char* text) {
    return reinterpret_cast<const std::byte*>(text);
  }
  // Counts how often lent memory was released.
  static void CountRelease(void* count) { ++*static_cast<int*>(count); }

  PlacingSink sink_;
  const std::unique_ptr<Model> model_ = MakeFakeModel(0, {4});
  RequestPtr request_ = Request::Create(sink_);
  ResponsePtr response_ = Response::Create(*request_);
  std::array<std::byte, 1024> elsewhere_ = {};
};

TEST_F(ResponseTest, KnowsTheOutputsOfItsModel) {
  std::string name = "OUTPUT0";
  EXPECT_EQ(Add(*response_, name).model_index, 0u);
  std::string other = "mine";
  const ResponseOutput& unknown = Add(*response_, other);
  EXPECT_EQ(unknown.model_index, UINT32_MAX);
  name.assign(7, 'x');
  other.assign(4, 'x');
  EXPECT_EQ(response_->output(0).name, "OUTPUT0");
  EXPECT_EQ(unknown.name, "mine");
  EXPECT_EQ(unknown.name.data()[4], '\0');
}

TEST_F(ResponseTest, KeepsTheAddressOfEveryOutput) {
  std::vector<const ResponseOutput*> outputs;
  for (size_t i = 0; i < Response::kMaxOutputs; ++i) outputs.push_back(&Add(*response_));
  EXPECT_EQ(response_->AddOutput("one more", tensor::DataType::kInt8, {}), nullptr);
  for (size_t i = 0; i < outputs.size(); ++i) ASSERT_EQ(&response_->output(i), outputs[i]);
}

TEST_F(ResponseTest, GivesOutputsAlignedMemoryOfAnySize) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{512}, size_t{513}, size_t{1} << 20}) {
    ResponseOutput& output = Add(*response_);
    ASSERT_TRUE(response_->AllocateBuffer(output, size, {}, /*zero=*/true).ok());
    EXPECT_EQ(output.byte_size, size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(output.data) % base::kBufferAlignment, 0u);
    EXPECT_TRUE(std::ranges::all_of(Bytes(output), [](char c) { return c == 0; }));
    if (size > 0) std::memset(output.data, 0xff, size);  // for the next user of the memory
  }
}

TEST_F(ResponseTest, GivesAnOutputMemoryOnce) {
  ResponseOutput& output = Add(*response_);
  ASSERT_TRUE(response_->AllocateBuffer(output, 4, {}, false).ok());
  const base::Status again = response_->AllocateBuffer(output, 4, {}, false);
  EXPECT_EQ(again.code(), base::StatusCode::kAlreadyExists);
  EXPECT_EQ(again.message(), "output 'OUTPUT0' already has a buffer");
  int releases = 0;
  EXPECT_EQ(response_->LendBuffer(output, ToBytes("abcd"), 4, CountRelease, &releases).message(),
            "output 'OUTPUT0' already has a buffer");
  EXPECT_EQ(releases, 1);
}

TEST_F(ResponseTest, SaysHowMuchMemoryThereWasNot) {
  ResponseOutput& output = Add(*response_);
  const size_t too_much = SIZE_MAX / 2 + 1;
  const base::Status status = response_->AllocateBuffer(output, too_much, {}, false);
  EXPECT_EQ(status.code(), base::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            "unable to allocate " + std::to_string(too_much) + " bytes for output 'OUTPUT0'");
}

TEST_F(ResponseTest, PutsOutputsWhereTheSinkWantsThem) {
  int owner = 0;
  sink_.placement = {
      .data = elsewhere_.data(), .where = {MemoryType::kCpuPinned, 1}, .owner = &owner};
  elsewhere_.fill(std::byte{1});
  ResponseOutput& output = Add(*response_);
  const Placement wanted{MemoryType::kGpu, 2};
  ASSERT_TRUE(response_->AllocateBuffer(output, 4, wanted, /*zero=*/true).ok());
  EXPECT_EQ(sink_.asked, (std::vector<size_t>{4}));
  EXPECT_EQ(sink_.preferred, wanted);
  EXPECT_EQ(output.data, elsewhere_.data());
  EXPECT_EQ(output.where, (Placement{MemoryType::kCpuPinned, 1}));
  EXPECT_EQ(Bytes(output), std::string_view("\0\0\0\0", 4));
  EXPECT_TRUE(sink_.released.empty());
  response_.reset();
  EXPECT_EQ(sink_.released, (std::vector<std::pair<void*, size_t>>{{&owner, 4}}));
}

TEST_F(ResponseTest, NeedsNoPlaceForAnOutputWithoutBytes) {
  sink_.placement = OutputPlacement{};
  ResponseOutput& output = Add(*response_);
  ASSERT_TRUE(response_->AllocateBuffer(output, 0, {}, true).ok());
  EXPECT_EQ(output.byte_size, 0u);
  ResponseOutput& lent = Add(*response_);
  int releases = 0;
  ASSERT_TRUE(response_->LendBuffer(lent, nullptr, 0, CountRelease, &releases).ok());
  EXPECT_EQ(lent.byte_size, 0u);
  EXPECT_EQ(releases, 1);
}

TEST_F(ResponseTest, PassesOnWhyTheSinkHasNoPlace) {
  sink_.refusal = base::InvalidArgumentError("region is too small");
  ResponseOutput& output = Add(*response_);
  int releases = 0;
  EXPECT_EQ(response_->AllocateBuffer(output, 4, {}, false).message(), "region is too small");
  EXPECT_EQ(response_->LendBuffer(output, ToBytes("abcd"), 4, CountRelease, &releases).message(),
            "region is too small");
  EXPECT_EQ(releases, 1);
}

TEST_F(ResponseTest, SendsLentMemoryWithoutACopyAndGivesItBackAtItsEnd) {
  const char lent[] = "abcd";
  int releases = 0;
  ResponseOutput& output = Add(*response_);
  ASSERT_TRUE(response_->LendBuffer(output, ToBytes(lent), 4, CountRelease, &releases).ok());
  EXPECT_EQ(Bytes(output).data(), lent);
  EXPECT_EQ(releases, 0);
  response_.reset();
  EXPECT_EQ(releases, 1);
  // The memory of the response is reused; the lent memory is not released again.
  response_ = Response::Create(*request_);
  Add(*response_);
  response_.reset();
  EXPECT_EQ(releases, 1);
}

TEST_F(ResponseTest, CopiesLentMemoryToWhereTheSinkWantsIt) {
  sink_.placement = {.data = elsewhere_.data(), .where = {}};
  int releases = 0;
  ResponseOutput& output = Add(*response_);
  ASSERT_TRUE(response_->LendBuffer(output, ToBytes("abcd"), 4, CountRelease, &releases).ok());
  EXPECT_EQ(releases, 1);
  EXPECT_EQ(output.data, elsewhere_.data());
  EXPECT_EQ(Bytes(output), "abcd");
}

class SharedOutputTest : public ResponseTest {
 protected:
  // Makes an output of another response.
  ResponseOutput& MakeSource(size_t size) {
    ResponseOutput& source = Add(*other_);
    EXPECT_TRUE(other_->AllocateBuffer(source, size, {}, false).ok());
    std::memset(source.data, 'x', size);
    return source;
  }

  FakeSink other_sink_;
  RequestPtr other_request_ = Request::Create(other_sink_);
  ResponsePtr other_ = Response::Create(*other_request_);
};

TEST_F(SharedOutputTest, OutlivesTheResponseThatItCameFrom) {
  ResponseOutput& large = Add(*response_);
  const std::byte* const data = MakeSource(2000).data;
  ASSERT_TRUE(response_->ShareBuffer(large, other_->output(0)).ok());
  EXPECT_EQ(large.data, data);
  // Small outputs are in the memory of their response.
  ResponseOutput& small = Add(*response_);
  ASSERT_TRUE(response_->ShareBuffer(small, MakeSource(4)).ok());
  other_.reset();
  other_request_.reset();
  EXPECT_EQ(Bytes(large), std::string(2000, 'x'));
  EXPECT_EQ(Bytes(small), "xxxx");
}

TEST_F(SharedOutputTest, IsCopiedToWhereTheSinkWantsIt) {
  sink_.placement = {.data = elsewhere_.data(), .where = {}};
  for (const size_t size : {size_t{4}, size_t{1000}}) {
    ResponseOutput& output = Add(*response_);
    ASSERT_TRUE(response_->ShareBuffer(output, MakeSource(size)).ok());
    EXPECT_EQ(output.data, elsewhere_.data());
    EXPECT_EQ(Bytes(output), std::string(size, 'x'));
    elsewhere_.fill({});
  }
}

// The allocator of an embedder may choose GPU memory on any machine.
TEST_F(SharedOutputTest, IsNotCopiedToTheMemoryOfAGpu) {
  sink_.placement = {.data = nullptr, .where = {MemoryType::kGpu, 0}};
  sink_.placement->data = elsewhere_.data();
  for (const size_t size : {size_t{4}, size_t{1000}}) {
    ResponseOutput& output = Add(*response_);
    const base::Status status = response_->ShareBuffer(output, MakeSource(size));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), base::StatusCode::kUnsupported);
    EXPECT_EQ(status.message(), "output 'OUTPUT0' is in GPU memory");
  }
  int releases = 0;
  EXPECT_EQ(
      response_->LendBuffer(Add(*response_), ToBytes("abcd"), 4, CountRelease, &releases).message(),
      "output 'OUTPUT0' is in GPU memory");
  EXPECT_EQ(releases, 1);
  EXPECT_TRUE(std::ranges::all_of(elsewhere_, [](std::byte b) { return b == std::byte{0}; }));
}

TEST_F(ResponseTest, CopiesItsParameters) {
  std::string name = "tokens", text = "ten";
  response_->AddParameter({.name = name, .value = std::string_view(text)});
  response_->AddParameter({.name = name, .value = int64_t{10}});
  name.assign(6, 'x');
  text.assign(3, 'x');
  ASSERT_EQ(response_->parameters().size(), 2u);
  const Parameter& first = response_->parameters()[0];
  EXPECT_EQ(first.name, "tokens");
  EXPECT_EQ(std::get<std::string_view>(first.value), "ten");
  EXPECT_EQ(std::get<std::string_view>(first.value).data()[3], '\0');
  EXPECT_EQ(std::get<int64_t>(response_->parameters()[1].value), 10);
}

TEST_F(ResponseTest, BeginsWithNothingOfAnEarlierOne) {
  Add(*response_);
  response_->AddParameter({.name = "p", .value = true});
  response_->SetError(base::InternalError("broken"));
  response_.reset();
  response_ = Response::Create(*request_);
  EXPECT_EQ(response_->output_count(), 0u);
  EXPECT_TRUE(response_->parameters().empty());
  EXPECT_TRUE(response_->error().ok());
  EXPECT_FALSE(Add(*response_).has_buffer);
}

}  // namespace
}  // namespace nereid::core
