// SPDX-License-Identifier: Apache-2.0
#include "python_backend/encode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <random>

#include "backend_kit/bytes.h"
#include "backend_kit/testing/fake_host.h"
#include "python_backend/decode.h"
#include "python_backend/testing/fake_worker.h"
#include "python_backend/testing/worker_reader.h"

namespace nereid::python {
namespace {

constexpr TRITONSERVER_DataType kDatatypes[] = {
    TRITONSERVER_TYPE_BOOL,   TRITONSERVER_TYPE_UINT8,  TRITONSERVER_TYPE_UINT16,
    TRITONSERVER_TYPE_UINT32, TRITONSERVER_TYPE_UINT64, TRITONSERVER_TYPE_INT8,
    TRITONSERVER_TYPE_INT16,  TRITONSERVER_TYPE_INT32,  TRITONSERVER_TYPE_INT64,
    TRITONSERVER_TYPE_FP16,   TRITONSERVER_TYPE_FP32,   TRITONSERVER_TYPE_FP64,
    TRITONSERVER_TYPE_BYTES,  TRITONSERVER_TYPE_BF16};

std::string Join(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
}

std::string Strings(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts) {
    std::string element(4 + text.size(), '\0');
    backend::StoreString(element.data(), text);
    bytes += element;
  }
  return bytes;
}

class EncodeTest : public testing::Test {
 protected:
  // Returns what the worker sees of these requests, whose handles are 100, 101 and so on.
  std::vector<SeenRequest> Encode(std::vector<TRITONBACKEND_Request>& requests) {
    std::vector<Numbered> numbered;
    for (size_t i = 0; i < requests.size(); ++i) numbered.push_back({&requests[i], 100 + i});
    auto made = encoder_.Encode(numbered, blocks_, inputs_);
    if (!made.ok()) {
      error_ = made.TakeError().message();
      return {};
    }
    encoded_ = std::move(made).value();
    return WorkerReader(worker_.region(), encoded_.block.payload_offset()).ReadBatch();
  }
  std::string ErrorOf(std::vector<TRITONBACKEND_Request> requests) {
    Encode(requests);
    return error_;
  }

  FakeWorker worker_;
  BlockPool blocks_{worker_.region(),
                    {.begin = kBlocksBegin, .end = worker_.region().inputs_begin()}};
  BlockPool inputs_{
      worker_.region(),
      {.begin = worker_.region().inputs_begin(), .end = worker_.region().worker_begin()}};
  BatchEncoder encoder_;
  BatchEncoder::Encoded encoded_;
  std::string error_;
};

// Makes an input of `count` random elements of any type, in one buffer or in several.
TRITONBACKEND_Input RandomInput(std::mt19937& random, TRITONSERVER_DataType datatype, int number) {
  TRITONBACKEND_Input input{
      .name = "INPUT_" + std::string(random() % 12, 'x') + std::to_string(number),
      .datatype = datatype,
      .shape = {},
      .buffers = {},
      .views = {}};
  uint64_t count = 1;
  for (uint32_t dims = random() % 4; dims > 0; --dims) {
    input.shape.push_back(static_cast<int64_t>(random() % 5));
    count *= static_cast<uint64_t>(input.shape.back());
  }
  std::string bytes;
  if (datatype == TRITONSERVER_TYPE_BYTES) {
    std::vector<std::string> texts;
    for (uint64_t i = 0; i < count; ++i)
      texts.emplace_back(random() % 9, 'a' + char(random() % 26));
    bytes = Strings(texts);
  } else {
    for (uint64_t i = 0; i < count * backend::ElementByteSize(datatype); ++i) {
      bytes += static_cast<char>(random());
    }
  }
  while (!bytes.empty()) {
    const size_t size = random() % 2 == 0 ? bytes.size() : 1 + random() % bytes.size();
    input.buffers.push_back(bytes.substr(0, size));
    bytes.erase(0, size);
  }
  return input;
}

TRITONBACKEND_Request RandomRequest(std::mt19937& random) {
  TRITONBACKEND_Request request;
  for (int i = static_cast<int>(random() % 5); i > 0; --i) {
    request.inputs.push_back(RandomInput(random, kDatatypes[random() % std::size(kDatatypes)], i));
  }
  for (uint32_t i = random() % 3; i > 0; --i) request.wanted.push_back("OUT" + std::to_string(i));
  request.id = std::string(random() % 10, 'i');
  request.correlation_id = random();
  if (random() % 3 == 0) request.correlation_text = "sequence";
  request.flags = random() % 4;
  request.timeout_us = random();
  return request;
}

void ExpectSame(const TRITONBACKEND_Request& given, const SeenRequest& seen) {
  EXPECT_EQ(seen.id, given.id);
  EXPECT_EQ(seen.record.flags, given.flags);
  EXPECT_EQ(seen.record.timeout_us, given.timeout_us);
  EXPECT_EQ(seen.correlation_text, given.correlation_text);
  EXPECT_EQ(seen.record.has_correlation_text != 0, !given.correlation_text.empty());
  if (given.correlation_text.empty()) {
    EXPECT_EQ(seen.record.correlation_id, given.correlation_id);
  }
  EXPECT_EQ(seen.outputs, given.wanted);
  ASSERT_EQ(seen.inputs.size(), given.inputs.size());
  for (size_t i = 0; i < seen.inputs.size(); ++i) {
    EXPECT_EQ(seen.inputs[i].name, given.inputs[i].name);
    EXPECT_EQ(seen.inputs[i].datatype, given.inputs[i].datatype);
    EXPECT_EQ(seen.inputs[i].shape, given.inputs[i].shape);
    EXPECT_EQ(seen.inputs[i].bytes, Join(given.inputs[i].buffers));
    EXPECT_EQ(seen.inputs[i].at % kAlignment, 0u);
  }
}

TEST_F(EncodeTest, AWorkerSeesWhatClientsSentWhateverItIs) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<TRITONBACKEND_Request> requests;
    for (uint32_t i = random() % 5; i > 0; --i) requests.push_back(RandomRequest(random));
    const std::vector<SeenRequest> seen = Encode(requests);
    ASSERT_EQ(seen.size(), requests.size()) << error_;
    for (size_t i = 0; i < seen.size(); ++i) {
      EXPECT_EQ(seen[i].record.handle, 100 + i);
      ExpectSame(requests[i], seen[i]);
    }
  }
}

// A model that returns its inputs: the client gets what it sent, for every type.
TEST_F(EncodeTest, TensorsOfEveryTypeComeBackAsTheyWent) {
  std::mt19937 random(12);
  for (const TRITONSERVER_DataType datatype : kDatatypes) {
    for (int round = 0; round < 20; ++round) {
      std::vector<TRITONBACKEND_Request> requests(1);
      requests[0].inputs.push_back(RandomInput(random, datatype, 1));
      const std::vector<SeenRequest> seen = Encode(requests);
      ASSERT_EQ(seen.size(), 1u) << error_;
      const SeenInput& input = seen[0].inputs[0];
      std::string bytes;
      AppendBytes(bytes, ResponseRecord{.kind = static_cast<uint32_t>(ResponseKind::kTensors),
                                        .release_flags = 1,
                                        .tensors = 1});
      AppendTensor(bytes, "OUT", input.datatype, input.shape, input.at, input.bytes.size());
      Reader reader({bytes.data(), bytes.size()});
      const auto response = ReadResponse(reader, worker_.region());
      ASSERT_TRUE(response.has_value());
      TRITONBACKEND_Response filled{.request = requests.data()};
      ASSERT_TRUE(FillResponse(&filled, *response, nullptr).ok());
      const TRITONBACKEND_Output& output = filled.outputs["OUT"];
      EXPECT_EQ(output.datatype, datatype);
      EXPECT_EQ(output.shape, requests[0].inputs[0].shape);
      EXPECT_EQ(output.bytes, Join(requests[0].inputs[0].buffers));
    }
  }
}

// A worker then need not parse the description of the tensors again.
TEST_F(EncodeTest, RequestsOfTheSameFormHaveTheSameBytesForIt) {
  std::vector<TRITONBACKEND_Request> requests(3);
  for (TRITONBACKEND_Request& request : requests) {
    request.inputs = {{"A", TRITONSERVER_TYPE_INT8, {3}, {"abc"}, {}},
                      {"B", TRITONSERVER_TYPE_INT8, {100}, {std::string(100, 'b')}, {}}};
    request.wanted = {"OUT"};
  }
  requests[2].inputs[0] = {"A", TRITONSERVER_TYPE_INT8, {4}, {"abcd"}, {}};
  const std::vector<SeenRequest> seen = Encode(requests);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].form, seen[1].form);
  EXPECT_NE(seen[0].form, seen[2].form);
  EXPECT_EQ(seen[2].inputs[0].bytes, "abcd");
}

TEST_F(EncodeTest, TextsWhoseLengthsAreWrongAreRefused) {
  const auto refused = [this](std::string bytes, int64_t count) {
    TRITONBACKEND_Request request;
    request.inputs = {{"IN", TRITONSERVER_TYPE_BYTES, {count}, {std::move(bytes)}, {}}};
    return ErrorOf({request});
  };
  EXPECT_EQ(refused(Strings({"a", "b"}), 1),
            "unexpected number of string elements 2 for inference input 'IN', expecting 1");
  EXPECT_EQ(refused(Strings({"a", "b"}), 3), "expected 3 strings for inference input 'IN', got 2");
  EXPECT_EQ(refused(Strings({"abcdef"}).substr(0, 7), 1),
            "incomplete string data for inference input 'IN', expecting string of length 6 but "
            "only 3 bytes available");
}

TEST_F(EncodeTest, ARefusedBatchLeavesNothingBehindForTheNextOne) {
  EXPECT_NE(
      ErrorOf({TRITONBACKEND_Request{.inputs = {{"IN", TRITONSERVER_TYPE_BYTES, {1}, {"x"}, {}}}}}),
      "");
  std::mt19937 random(13);
  std::vector<TRITONBACKEND_Request> requests = {RandomRequest(random), RandomRequest(random)};
  const std::vector<SeenRequest> seen = Encode(requests);
  ASSERT_EQ(seen.size(), 2u);
  ExpectSame(requests[0], seen[0]);
  ExpectSame(requests[1], seen[1]);
}

TEST_F(EncodeTest, ABatchThatIsLargerThanTheMemoryIsRefused) {
  BlockPool small(worker_.region(), {.begin = kBlocksBegin, .end = kBlocksBegin + 8192});
  TRITONBACKEND_Request request;
  request.inputs = {{"IN", TRITONSERVER_TYPE_INT8, {9000}, {std::string(9000, 'x')}, {}}};
  auto made = encoder_.Encode({{&request, 1}}, small, inputs_);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.TakeError().code(), TRITONSERVER_ERROR_UNAVAILABLE);
}

// --- Requests that were received into the shared memory ---

class ReceivedTest : public EncodeTest {
 protected:
  // Makes a block with these bytes, as if an HTTP body had been received there.
  std::string_view Receive(const std::string& bytes) {
    received_.push_back(std::move(inputs_.Allocate(bytes.size())).value());
    std::memcpy(received_.back().payload(), bytes.data(), bytes.size());
    return {received_.back().payload(), bytes.size()};
  }
  std::vector<BlockPool::Block> received_;
};

TEST_F(ReceivedTest, StayWhereTheyAre) {
  const std::string_view body = Receive("abcdefgh");
  std::vector<TRITONBACKEND_Request> requests(1);
  requests[0].inputs = {{"A", TRITONSERVER_TYPE_INT8, {3}, {}, {body.substr(0, 3)}},
                        {"B", TRITONSERVER_TYPE_INT32, {1}, {}, {body.substr(4)}}};
  const std::vector<SeenRequest> seen = Encode(requests);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].record.block, received_[0].payload_offset());
  EXPECT_EQ(encoded_.received.size(), 1u);
  EXPECT_EQ(seen[0].inputs[0].bytes, "abc");
  EXPECT_EQ(seen[0].inputs[1].bytes, "efgh");
  EXPECT_EQ(worker_.region().At(seen[0].inputs[1].at), body.data() + 4);
}

TEST_F(ReceivedTest, AreCopiedWhereTheyAreTextsOrNotAligned) {
  const std::string text = Strings({"abc"});
  const std::string_view body = Receive(text + "123456789");
  std::vector<TRITONBACKEND_Request> requests(2);
  requests[0].inputs = {{"A", TRITONSERVER_TYPE_BYTES, {1}, {}, {body.substr(0, text.size())}}};
  requests[1].inputs = {{"A", TRITONSERVER_TYPE_INT32, {2}, {}, {body.substr(text.size(), 8)}}};
  ASSERT_NE(text.size() % 4, 0u);
  const std::vector<SeenRequest> seen = Encode(requests);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].record.block, 0u);
  EXPECT_EQ(seen[1].record.block, 0u);
  EXPECT_EQ(seen[0].inputs[0].bytes, text);
  EXPECT_EQ(seen[1].inputs[0].bytes, "12345678");
  EXPECT_TRUE(encoded_.received.empty());
}

TEST_F(ReceivedTest, AreCopiedTheSecondTime) {
  const std::string_view body = Receive("abcd");
  std::vector<TRITONBACKEND_Request> requests(2);
  for (TRITONBACKEND_Request& request : requests) {
    request.inputs = {{"A", TRITONSERVER_TYPE_INT8, {4}, {}, {body}}};
  }
  const std::vector<SeenRequest> seen = Encode(requests);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_NE(seen[0].record.block, 0u);
  EXPECT_EQ(seen[1].record.block, 0u);
  EXPECT_EQ(seen[1].inputs[0].bytes, "abcd");
}

TEST_F(ReceivedTest, MayLieBesideOthersThatAreCopied) {
  const std::string_view body = Receive("abcd");
  std::vector<TRITONBACKEND_Request> requests(3);
  requests[0].inputs = {{"A", TRITONSERVER_TYPE_INT8, {2}, {"xy"}, {}}};
  requests[1].inputs = {{"A", TRITONSERVER_TYPE_INT8, {4}, {}, {body}}};
  requests[2].inputs = {{"A", TRITONSERVER_TYPE_INT8, {3}, {"z", "zz"}, {}}};
  const std::vector<SeenRequest> seen = Encode(requests);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].inputs[0].bytes, "xy");
  EXPECT_EQ(seen[1].inputs[0].bytes, "abcd");
  EXPECT_EQ(seen[2].inputs[0].bytes, "zzz");
}

// --- Parameters ---

TEST(ParametersJson, HasTheValuesOfAllTypes) {
  TRITONBACKEND_Request request;
  request.parameters = {
      {.name = "text", .type = TRITONSERVER_PARAMETER_STRING, .text = "a \"b\""},
      {.name = "number", .type = TRITONSERVER_PARAMETER_INT, .number = -9007199254740993},
      {.name = "truth", .type = TRITONSERVER_PARAMETER_BOOL, .truth = true},
      {.name = "real", .type = TRITONSERVER_PARAMETER_DOUBLE, .real = 0.5}};
  auto json = ParametersJson(&request);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json.value(),
            R"({"text":"a \"b\"","number":-9007199254740993,"truth":true,"real":0.5})");
}

TEST(ParametersJson, IsWhatPythonReadsForDoublesThatJsonLacks) {
  TRITONBACKEND_Request request;
  const double infinite = std::numeric_limits<double>::infinity();
  request.parameters = {{.name = "a", .type = TRITONSERVER_PARAMETER_DOUBLE, .real = std::nan("")},
                        {.name = "b", .type = TRITONSERVER_PARAMETER_DOUBLE, .real = infinite},
                        {.name = "c", .type = TRITONSERVER_PARAMETER_DOUBLE, .real = -infinite}};
  auto json = ParametersJson(&request);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json.value(), R"({"a":NaN,"b":Infinity,"c":-Infinity})");
}

TEST(ParametersJson, IsEmptyWithoutParametersAndAnErrorForBytes) {
  TRITONBACKEND_Request request;
  EXPECT_EQ(ParametersJson(&request).value(), "");
  request.parameters = {{.name = "file", .type = TRITONSERVER_PARAMETER_BYTES, .text = "x"}};
  auto json = ParametersJson(&request);
  ASSERT_FALSE(json.ok());
  EXPECT_STREQ(json.TakeError().message(), "Unsupported parameter type for parameter 'file'.");
}

}  // namespace
}  // namespace nereid::python
