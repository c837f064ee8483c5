// SPDX-License-Identifier: Apache-2.0
#include "python_backend/decode.h"

#include <gtest/gtest.h>

#include <random>

#include "backend_kit/testing/fake_host.h"
#include "python_backend/testing/worker_reader.h"

namespace nereid::python {
namespace {

template <typename Value>
void Append(std::string& to, const Value& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::optional<ModelResponse> Read(const std::string& bytes, const Region& region) {
  Reader reader({bytes.data(), bytes.size()});
  return ReadResponse(reader, region);
}

class WorkersBytes : public testing::Test {
 protected:
  std::unique_ptr<Region> region_ = std::move(Region::Create()).value();
};

TEST_F(WorkersBytes, MayBeAnythingAtAll) {
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    Append(bytes, ResponseRecord{.kind = static_cast<uint32_t>(random() % 4),
                                 .release_flags = 1,
                                 .tensors = static_cast<uint32_t>(random() % 3),
                                 .text_size = static_cast<uint32_t>(random() % 32)});
    Append(bytes, TensorRecord{.datatype = static_cast<uint32_t>(random() % 16),
                               .dims = static_cast<uint32_t>(random() % 70),
                               .name_size = static_cast<uint32_t>(random() % 16),
                               .data = random() % 2 == 0 ? random() : kBlocksBegin,
                               .byte_size = random() % 64});
    for (uint32_t left = random() % 64; left > 0; --left) bytes += static_cast<char>(random());
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    const auto response = Read(bytes, *region_);
    if (!response) continue;
    for (const Tensor& tensor : response->tensors) {
      if (tensor.data.empty()) continue;
      EXPECT_GE(tensor.data.data(), region_->base() + kBlocksBegin);
      EXPECT_LE(tensor.data.data() + tensor.data.size(), region_->base() + region_->size());
    }
  }
}

TEST_F(WorkersBytes, MakeNoNameLongerThanNamesAre) {
  std::string bytes;
  Append(bytes, ResponseRecord{.kind = 1, .release_flags = 1, .tensors = 1, .text_size = 0});
  Append(bytes, TensorRecord{.datatype = 11, .dims = 0, .name_size = 5000});
  bytes.resize(bytes.size() + 5000);
  EXPECT_FALSE(Read(bytes, *region_).has_value());
}

TEST_F(WorkersBytes, MakeParametersThatAreTooLongAnError) {
  std::string bytes;
  const auto size = static_cast<uint32_t>(kMaxText + 8);
  Append(bytes, ResponseRecord{.kind = 1, .release_flags = 1, .tensors = 0, .text_size = size});
  bytes.resize(bytes.size() + size, ' ');
  const auto response = Read(bytes, *region_);
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->kind, ResponseKind::kError);
  EXPECT_EQ(response->text, "the parameters of a response are longer than 16777216 bytes");
}

TEST_F(WorkersBytes, MakeMessagesThatAreTooLongShorter) {
  std::string bytes;
  const auto size = static_cast<uint32_t>(kMaxMessage * 3);
  Append(bytes, ResponseRecord{.kind = 2, .release_flags = 1, .tensors = 1, .text_size = size});
  bytes.resize(bytes.size() + size, 'x');
  const auto response = Read(bytes, *region_);
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->text, std::string(kMaxMessage, 'x'));
}

// Every prefix of a response is refused, and nothing beyond its end is read.
TEST_F(WorkersBytes, AreRefusedWhereverTheyAreCutOff) {
  std::string bytes;
  Append(bytes, ResponseRecord{.kind = 1, .release_flags = 1, .tensors = 2, .text_size = 16});
  for (const char* const name : {"FIRST", "SECOND"}) {
    AppendTensor(bytes, name, TRITONSERVER_TYPE_INT8, {2, 3}, kBlocksBegin, 6);
  }
  AppendPadded(bytes, R"({"speed": 12345})");
  ASSERT_TRUE(Read(bytes, *region_).has_value());
  for (size_t size = 0; size < bytes.size(); ++size) {
    // A buffer of exactly this size, so that a sanitizer finds reads beyond it.
    const std::vector<char> exact(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    Reader reader({exact.data(), exact.size()});
    EXPECT_FALSE(ReadResponse(reader, *region_).has_value()) << size;
  }
}

TEST_F(WorkersBytes, AreRefusedWhereATensorIsNotInTheRegion) {
  const uint64_t end = region_->size();
  const std::pair<uint64_t, uint64_t> places[] = {
      {0, 1},          {kBlocksBegin - 1, 1}, {end, 1}, {end - 4, 5}, {kBlocksBegin, UINT64_MAX},
      {UINT64_MAX, 1}, {UINT64_MAX - 4, 8}};
  for (const auto& [at, size] : places) {
    std::string bytes;
    AppendTensor(bytes, "OUT", TRITONSERVER_TYPE_INT8, {1}, at, size);
    Reader reader({bytes.data(), bytes.size()});
    EXPECT_FALSE(ReadTensor(reader, *region_).has_value()) << at;
  }
  // A tensor of no bytes has no place.
  std::string bytes;
  AppendTensor(bytes, "OUT", TRITONSERVER_TYPE_INT8, {0}, UINT64_MAX, 0);
  Reader reader({bytes.data(), bytes.size()});
  EXPECT_TRUE(ReadTensor(reader, *region_).has_value());
}

TEST_F(WorkersBytes, AreRefusedWhereATensorHasATypeOrDimensionsThatThereAreNot) {
  const auto reads = [this](const TensorRecord& record) {
    std::string bytes;
    Append(bytes, record);
    bytes.resize(bytes.size() + 1024);
    Reader reader({bytes.data(), bytes.size()});
    return ReadTensor(reader, *region_).has_value();
  };
  EXPECT_TRUE(reads({.datatype = TRITONSERVER_TYPE_BF16, .dims = kMaxDims}));
  EXPECT_FALSE(reads({.datatype = TRITONSERVER_TYPE_BF16 + 1}));
  EXPECT_FALSE(reads({.datatype = UINT32_MAX}));
  EXPECT_FALSE(reads({.datatype = 1, .dims = kMaxDims + 1}));
  EXPECT_FALSE(reads({.datatype = 1, .dims = UINT32_MAX}));
}

// --- Filling a response of the server ---

class FillTest : public testing::Test {
 protected:
  static ModelResponse Response(std::vector<int64_t> shape, std::string_view bytes,
                                TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INT16) {
    return {.kind = ResponseKind::kTensors,
            .tensors = {{.name = "OUT",
                         .datatype = datatype,
                         .shape = std::move(shape),
                         .data = {bytes.data(), bytes.size()}}}};
  }
  std::string Fill(const ModelResponse& response) {
    return FillResponse(&filled_, response, nullptr).message();
  }
  TRITONBACKEND_Response filled_;
};

TEST_F(FillTest, CopiesTensorsAndParameters) {
  ModelResponse response = Response({2}, "abcd");
  response.text = R"({"speed": 7, "loud": false, "language": "eo"})";
  EXPECT_EQ(Fill(response), "");
  EXPECT_EQ(filled_.outputs["OUT"].bytes, "abcd");
  EXPECT_EQ(filled_.parameters, (std::map<std::string, std::string>{
                                    {"speed", "7"}, {"loud", "false"}, {"language", "eo"}}));
}

TEST_F(FillTest, RefusesBytesThatAreNotWhatTheShapeSays) {
  EXPECT_EQ(Fill(Response({2}, "abc")), "output 'OUT' has 3 bytes, which its shape does not");
  EXPECT_EQ(Fill(Response({}, "")), "output 'OUT' has 0 bytes, which its shape does not");
  EXPECT_NE(Fill(Response({-1}, "ab")), "");
  EXPECT_NE(Fill(Response({INT64_MAX}, "ab")), "");
  EXPECT_NE(Fill(Response({INT64_MAX, INT64_MAX}, "ab")), "");
  EXPECT_TRUE(filled_.outputs.empty());
  // The shape does not say how many bytes texts have.
  EXPECT_EQ(Fill(Response({1}, "12345678", TRITONSERVER_TYPE_BYTES)), "");
}

TEST_F(FillTest, RefusesParametersThatAreNone) {
  ModelResponse response = Response({1}, "ab");
  response.text = R"({"speed": [7]})";
  EXPECT_NE(Fill(response), "");
  response.text = "speed";
  EXPECT_EQ(Fill(response), "the parameters of a response are not a JSON object");
}

TEST(Reader, GivesTextsWithTheirPadding) {
  std::string bytes;
  AppendSized(bytes, "one");
  AppendSized(bytes, "");
  AppendSized(bytes, "eighteen");
  Append(bytes, uint32_t{7});
  Reader reader({bytes.data(), bytes.size()});
  EXPECT_EQ(reader.SizedText(), "one");
  EXPECT_EQ(reader.SizedText(), "");
  EXPECT_EQ(reader.SizedText(), "eighteen");
  EXPECT_EQ(reader.Read<uint32_t>(), 7u);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.Read<uint32_t>(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.Text(0), "");
  EXPECT_FALSE(reader.ok());
}

TEST(Reader, GivesNoTextLongerThanTextsAreButBytesOfAnyNumber) {
  std::string bytes;
  Append(bytes, uint64_t{kMaxText + 8});
  bytes.resize(bytes.size() + kMaxText + 8);
  Reader text({bytes.data(), bytes.size()});
  EXPECT_EQ(text.SizedText().size(), 0u);
  EXPECT_FALSE(text.ok());
  Reader any({bytes.data(), bytes.size()});
  EXPECT_EQ(any.SizedBytes().size(), kMaxText + 8);
  EXPECT_TRUE(any.ok());
}

}  // namespace
}  // namespace nereid::python
