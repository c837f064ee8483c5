// SPDX-License-Identifier: Apache-2.0
// A batch as the server writes it, and what the server then reads of its end.
#include "isolation/hosted_batch.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <string>

#include "base/system_limits.h"
#include "base/thread.h"
#include "core/testing/fakes.h"
#include "isolation_backend/open_requests.h"
#include "python_backend/call_ring.h"
#include "python_backend/decode.h"

namespace nereid::isolation {
namespace {

using python::BlockHeader;
using python::Call;
using python::kBlockFree;
using python::kBlocksBegin;
using python::ResponseKind;

// A request that the server sends; its only input is INPUT0 with these numbers.
struct Sent {
  uint64_t number = 0;
  std::vector<float> data;
  std::string id;
  std::string parameters;
  std::string correlation_text;
  uint32_t flags = 0;
  bool is_padding = false;
  bool has_own_block = false;  // for the data
};

// How a request ended, and its response.
struct Ended {
  Ending ending;
  python::ModelResponse response;
};

class HostedBatchTest : public testing::Test {
 protected:
  HostedBatchTest() { context_.emplace(HostContext{*channel_, *model_, nullptr}); }

  // Writes a batch as the server does; `cut` bytes at its end are missing.
  Channel::Item Write(const std::vector<Sent>& sent, uint64_t cut = 0) {
    std::string meta;
    const auto add = [&meta](std::string_view bytes, uint32_t& at, uint32_t& size) {
      at = static_cast<uint32_t>(meta.size());
      size = static_cast<uint32_t>(bytes.size());
      meta += bytes;
      meta.resize(python::Padded(meta.size()));
    };
    std::vector<python::RequestRecord> records;
    for (const Sent& one : sent) {
      python::RequestRecord record{.handle = one.number, .timeout_us = 7, .flags = one.flags};
      record.data = PutData(one, record.block);
      add(Form(one), record.form, record.form_size);
      add(one.id, record.id, record.id_size);
      add(one.parameters, record.parameters, record.parameters_size);
      record.has_correlation_text = !one.correlation_text.empty();
      add(one.correlation_text, record.correlation_text, record.correlation_text_size);
      records.push_back(record);
    }
    const auto base =
        static_cast<uint32_t>(sizeof(python::BatchHeader) + records.size() * sizeof(records[0]));
    for (python::RequestRecord& record : records) {
      for (uint32_t* const at :
           {&record.form, &record.id, &record.parameters, &record.correlation_text}) {
        *at += base;
      }
    }
    Message message;
    message.Append(python::BatchHeader{.count = static_cast<uint32_t>(records.size())});
    for (const python::RequestRecord& record : records) message.Append(record);
    message.AppendText(meta);
    const uint64_t at = Put({message.records.data(), message.records.size()});
    return {python::Work::kExecute, 1, at, message.records.size() - cut};
  }
  bool IsLetGo(const Channel::Item& item) const { return StateAt(item.offset) == kBlockFree; }

  // Returns the next call of the batch's requests, if there is one, and releases it.
  std::optional<std::pair<Call, std::string>> TakeCall() {
    auto taken = ring_.Take();
    EXPECT_TRUE(taken.ok());
    if (!taken.value()) return std::nullopt;
    const std::span<const char> payload = taken.value()->payload;
    std::pair<Call, std::string> call(taken.value()->kind, {payload.begin(), payload.end()});
    python::Release(taken.value()->header);
    return call;
  }
  // Reads the result of an execution as the server does.
  std::vector<Ended> ReadResult(const Message& message, size_t requests) {
    python::Reader reader({message.records.data(), message.records.size()});
    std::vector<Ended> result;
    for (size_t i = 0; i < requests; ++i) {
      const auto ending = ReadEnding(reader, *region_);
      auto response = ReadResponse(reader, *region_);
      EXPECT_TRUE(ending.has_value() && response.has_value()) << i;
      if (!ending || !response) return result;
      result.push_back({ending->kind, *std::move(response)});
    }
    EXPECT_EQ(reader.Read<char>(), 0);
    EXPECT_FALSE(reader.ok()) << "more than the server expects";
    return result;
  }
  // Responds to a request with one output of these numbers.
  static core::ResponsePtr Respond(core::Request& request, const std::vector<float>& values) {
    core::ResponsePtr response = core::Response::Create(request);
    const int64_t shape[] = {1, static_cast<int64_t>(values.size())};
    core::ResponseOutput* const output =
        response->AddOutput("OUTPUT0", tensor::DataType::kFp32, shape);
    const size_t size = values.size() * sizeof(float);
    EXPECT_TRUE(response->AllocateBuffer(*output, size, {}, false).ok());
    if (size > 0) std::memcpy(output->data, values.data(), size);
    return response;
  }
  static std::vector<float> Floats(std::span<const char> bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  std::unique_ptr<python::Region> region_ = std::move(python::Region::Create()).value();
  python::BlockPool blocks_{*region_, {.begin = kBlocksBegin, .end = region_->inputs_begin()}};
  python::CallRing ring_{*region_};
  std::unique_ptr<Channel> channel_ = *Channel::Open(fcntl(region_->fd(), F_DUPFD_CLOEXEC, 0));
  std::unique_ptr<core::Model> model_ = core::MakeFakeModel(8, {-1});
  std::optional<HostContext> context_;
  std::vector<core::RequestPtr> requests_;
  std::vector<uint64_t> own_blocks_;  // payloads of those that only one request is in

 private:
  uint64_t Put(std::string_view bytes) {
    auto block = blocks_.Allocate(bytes.size());
    EXPECT_TRUE(block.ok());
    std::ranges::copy(bytes, block.value().payload());
    block.value().Share();
    return block.value().payload_offset();
  }
  uint64_t PutData(const Sent& one, uint64_t& own_block) {
    const auto* const bytes = reinterpret_cast<const char*>(one.data.data());
    const uint64_t at = Put({bytes, one.data.size() * sizeof(float)});
    if (one.has_own_block) own_blocks_.push_back(own_block = at);
    return at;
  }
  static std::string Form(const Sent& one) {
    Message form;
    form.Append(python::FormHeader{.inputs = 1, .outputs = one.is_padding ? 0u : 1u});
    form.Append(python::TensorRecord{.datatype = static_cast<uint32_t>(tensor::DataType::kFp32),
                                     .dims = 2,
                                     .name_size = 6,
                                     .data = 0,
                                     .byte_size = one.data.size() * sizeof(float)});
    const int64_t shape[] = {1, static_cast<int64_t>(one.data.size())};
    form.Append(shape);
    form.AppendText("INPUT0");
    if (!one.is_padding) form.AppendSized("OUTPUT0");
    return {form.records.begin(), form.records.end()};
  }

 protected:
  uint32_t StateAt(uint64_t payload) const {
    return reinterpret_cast<BlockHeader*>(region_->At(payload - sizeof(BlockHeader)))->state.load();
  }
};

TEST_F(HostedBatchTest, ShowsTheBackendWhatTheClientSent) {
  const auto item = Write({{.number = 5,
                            .data = {1, 2, 3},
                            .id = "first",
                            .parameters = R"({"a":7,"b":"text"})",
                            .flags = core::kSequenceStart},
                           {.number = 6, .data = {}, .correlation_text = "sequence"},
                           {.number = 7, .data = {4}, .is_padding = true}});
  ASSERT_TRUE(HostedBatch::Read(*context_, item, requests_).ok());
  ASSERT_EQ(requests_.size(), 3U);
  const core::Request& first = *requests_[0];
  EXPECT_EQ(first.id, "first");
  EXPECT_EQ(first.flags, core::kSequenceStart);
  EXPECT_EQ(first.timeout_us, 7U);
  EXPECT_EQ(first.batch_size, 1U);
  ASSERT_EQ(first.parameters.size(), 2U);
  EXPECT_EQ(std::get<int64_t>(first.parameters[0].value), 7);
  ASSERT_EQ(first.inputs.size(), 1U);
  EXPECT_EQ(first.inputs[0].name, "INPUT0");
  const core::DataChunk& chunk = first.inputs[0].chunk(0);
  EXPECT_EQ(Floats({reinterpret_cast<const char*>(chunk.data), chunk.size}),
            (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(requests_[1]->inputs[0].byte_size, 0U);
  EXPECT_EQ(std::get<std::string_view>(requests_[1]->correlation_id), "sequence");
  EXPECT_FALSE(first.is_padding);
  EXPECT_TRUE(requests_[2]->is_padding);
  requests_.clear();
}

TEST_F(HostedBatchTest, TellsTheServerOfEachRequestWhatBecameOfIt) {
  const auto item = Write({{.number = 1, .data = {1}},
                           {.number = 2, .data = {2}},
                           {.number = 3, .data = {3}},
                           {.number = 4, .data = {4}}});
  auto batch = HostedBatch::Read(*context_, item, requests_);
  ASSERT_TRUE(batch.ok());
  auto send = [&](size_t i, core::ResponsePtr response) {
    requests_[i]->sink().Send(std::move(response), /*is_final=*/true);
    requests_[i].reset();
  };
  send(0, Respond(*requests_[0], {10, 11}));
  send(1, Respond(*requests_[1], {}));
  core::ResponsePtr error = core::Response::Create(*requests_[2]);
  error->SetError(base::InvalidArgumentError("three is too many"));
  send(2, std::move(error));
  const std::vector<Ended> result = ReadResult((*batch)->Close(), 4);
  ASSERT_EQ(result.size(), 4U);
  EXPECT_EQ(result[0].ending, Ending::kReleased);
  ASSERT_EQ(result[0].response.tensors.size(), 1U);
  EXPECT_EQ(result[0].response.tensors[0].name, "OUTPUT0");
  EXPECT_EQ(result[0].response.tensors[0].shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(Floats(result[0].response.tensors[0].data), (std::vector<float>{10, 11}));
  EXPECT_TRUE(result[1].response.tensors[0].data.empty());
  EXPECT_EQ(result[2].response.kind, ResponseKind::kError);
  EXPECT_EQ(result[2].response.text, "three is too many");
  EXPECT_EQ(result[2].response.code, TRITONSERVER_ERROR_INVALID_ARG);
  EXPECT_EQ(result[3].ending, Ending::kHeld);
  EXPECT_EQ(result[3].response.kind, ResponseKind::kNone);
  EXPECT_FALSE(TakeCall().has_value());
  EXPECT_FALSE(IsLetGo(item)) << "the backend may still read the last request";
  requests_.clear();
  EXPECT_TRUE(IsLetGo(item));
}

TEST_F(HostedBatchTest, TellsTheServerLaterOfWhatTheBackendKept) {
  const auto item = Write({{.number = 41, .data = {1}}});
  auto batch = HostedBatch::Read(*context_, item, requests_);
  ASSERT_TRUE(batch.ok());
  ReadResult((*batch)->Close(), 1);
  core::ResponsePtr response = Respond(*requests_[0], {5});
  requests_[0]->sink().Send(std::move(response), /*is_final=*/true);
  const auto sent = TakeCall();
  ASSERT_TRUE(sent.has_value());
  EXPECT_EQ(sent->first, Call::kSend);
  python::Reader reader({sent->second.data(), sent->second.size()});
  const auto record = reader.Read<python::SendRecord>();
  EXPECT_EQ(record.handle, 41U);
  EXPECT_TRUE(record.is_final);
  const auto received = ReadResponse(reader, *region_);
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(Floats(received->tensors[0].data), std::vector<float>{5});
  EXPECT_FALSE((*batch)->is_gone());
  requests_.clear();
  const auto released = TakeCall();
  ASSERT_TRUE(released.has_value());
  EXPECT_EQ(released->first, Call::kRelease);
  python::Reader rest({released->second.data(), released->second.size()});
  EXPECT_EQ(rest.Read<uint64_t>(), 41U);
  const auto ending = ReadEnding(rest, *region_);
  ASSERT_TRUE(ending.has_value());
  EXPECT_EQ(ending->kind, Ending::kReleased);
  EXPECT_TRUE((*batch)->is_gone());
  EXPECT_TRUE(IsLetGo(item));
}

TEST_F(HostedBatchTest, CancelsOnlyTheRequestOfThatNumber) {
  const auto item = Write({{.number = 1, .data = {1}}, {.number = 2, .data = {2}}});
  auto batch = HostedBatch::Read(*context_, item, requests_);
  ASSERT_TRUE(batch.ok());
  EXPECT_FALSE((*batch)->Cancel(3));
  EXPECT_TRUE((*batch)->Cancel(2));
  EXPECT_FALSE(requests_[0]->is_cancelled());
  EXPECT_TRUE(requests_[1]->is_cancelled());
  requests_.clear();
  (*batch)->Cancel(2);  // too late, and without effect
  EXPECT_TRUE((*batch)->is_gone());
}

TEST_F(HostedBatchTest, DoesNotCancelARequestThatUsesTheSameMemoryNext) {
  if (base::AvailableCpus() < 2) GTEST_SKIP() << "the threads would take turns";
  for (int round = 0; round < 400; ++round) {
    const auto item = Write({{.number = 1, .data = {1}}});
    auto batch = HostedBatch::Read(*context_, item, requests_);
    ASSERT_TRUE(batch.ok());
    // To wake up takes longer than the moment to be met.
    std::atomic<int> arrived = 0;
    const auto meet = [&arrived] {
      ++arrived;
      while (arrived < 2) base::Pause();
    };
    base::Thread server("server", [&] {
      meet();
      for (int i = 0; i < round % 100; ++i) base::Pause();
      (*batch)->Cancel(1);
    });
    meet();
    requests_.clear();
    server.Join();
    core::FakeSink sink;
    ASSERT_FALSE(core::Request::Create(sink)->is_cancelled()) << round;
    ASSERT_TRUE((*batch)->is_gone());
  }
}

TEST_F(HostedBatchTest, ThatCannotBeReadLeavesNoRequestAndNoMemoryInUse) {
  const auto item = Write({{.number = 1, .data = {1}, .has_own_block = true},
                           {.number = 2, .data = {2}},
                           {.number = 3, .data = {3}, .parameters = "{\"a\":"},
                           {.number = 4, .data = {4}, .has_own_block = true}});
  const auto batch = HostedBatch::Read(*context_, item, requests_);
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.status().message(), "the parameters of the request are not a JSON object");
  EXPECT_TRUE(requests_.empty());
  EXPECT_TRUE(IsLetGo(item));
  ASSERT_EQ(own_blocks_.size(), 2U);
  for (const uint64_t block : own_blocks_) EXPECT_EQ(StateAt(block), kBlockFree);
  // The model goes on.
  ASSERT_TRUE(HostedBatch::Read(*context_, Write({{.number = 5, .data = {5}}}), requests_).ok());
  EXPECT_EQ(requests_.size(), 1U);
  requests_.clear();
}

TEST_F(HostedBatchTest, ThatWasCutShortIsAnError) {
  const std::vector<Sent> sent = {{.number = 1, .data = {1}}};
  const uint64_t size = Write(sent).size;
  for (const uint64_t left : {uint64_t{0}, uint64_t{4}, uint64_t{8}, uint64_t{95}}) {
    const auto item = Write(sent, size - left);
    const auto batch = HostedBatch::Read(*context_, item, requests_);
    ASSERT_FALSE(batch.ok()) << left;
    EXPECT_EQ(batch.status().message(), "the batch was cut short");
    EXPECT_TRUE(requests_.empty());
    EXPECT_TRUE(IsLetGo(item));
  }
}

}  // namespace
}  // namespace nereid::isolation
