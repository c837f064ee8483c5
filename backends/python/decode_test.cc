// SPDX-License-Identifier: Apache-2.0
#include "python_backend/decode.h"

#include <gtest/gtest.h>

#include <random>

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
