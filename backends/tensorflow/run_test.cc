// SPDX-License-Identifier: Apache-2.0
// Tests runs with functions in the place of TensorFlow's.
#include "tensorflow_backend/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "backend_kit/scatter.h"
#include "tensorflow_backend/library_fixture.h"
#include "tensorflow_backend/types.h"

namespace nereid::tensorflow {

namespace {

using testing::ElementsAre;

c::Tensor* Echo(c::Tensor* input) {
  return NewTensor(0, input->dims.data(), static_cast<int>(input->dims.size()), input->data,
                   input->size, nullptr, nullptr);
}

class TensorFlowRun : public testing::Test {
 protected:
  TensorFlowRun() {
    calls = &calls_;
    calls_.make_output = Echo;
  }
  ~TensorFlowRun() override {
    request_.reset();
    EXPECT_EQ(calls_.open_tensors, 0);
    EXPECT_EQ(calls_.open_texts, 0);
  }

  void Make(const TensorInfo& info, size_t outputs = 1, bool changes_state = false) {
    RunPlan plan{.library = &kFakes,
                 .inputs = {info},
                 .outputs = std::vector<TensorInfo>(outputs, info),
                 .feeds = {{}},
                 .fetches = {},
                 .changes_state = changes_state};
    for (size_t o = 0; o < outputs; ++o) {
      plan.fetches.push_back({.operation = nullptr, .index = static_cast<int>(o)});
    }
    request_ = MakeRequest(std::move(plan));
  }

  backend::Error Run(std::span<const int64_t> shape, std::span<const char> data,
                     std::vector<char> wanted = {1}) {
    const CallInput input{.is_present = true, .shape = shape, .data = data};
    return request_->Run({&input, 1}, wanted);
  }

  const TensorInfo fp32_{.place = "x", .type = 1, .has_rank = true, .dims = {-1}};
  const std::vector<int64_t> large_shape_{64 << 10};
  alignas(64) std::array<char, 256 << 10> large_{};
  Calls calls_;
  std::unique_ptr<Request> request_;
};

TEST_F(TensorFlowRun, GivesAlignedMemoryAsItIs) {
  Make(fp32_);
  ASSERT_TRUE(Run(large_shape_, large_).ok());
  EXPECT_THAT(calls_.input_data, ElementsAre(large_.data()));
}

TEST_F(TensorFlowRun, CopiesMemoryThatIsNotAligned) {
  Make(fp32_);
  const std::vector<int64_t> shape{2};
  ASSERT_TRUE(Run(shape, std::span<const char>(large_).subspan(4, 8)).ok());
  EXPECT_NE(calls_.input_data[0], large_.data() + 4);
  EXPECT_EQ(request_->Output(0).shape[0], 2);
}

TEST_F(TensorFlowRun, CopiesInputsThatTheGraphMayKeep) {
  Make(fp32_, 1, true);
  ASSERT_TRUE(Run(large_shape_, large_).ok());
  EXPECT_NE(calls_.input_data[0], large_.data());
}

TEST_F(TensorFlowRun, LendsLargeOutputsBeyondTheRun) {
  Make(fp32_);
  calls_.make_output = [](c::Tensor* input) {
    c::Tensor* const made = AllocateTensor(1, input->dims.data(), 1, input->size);
    made->own[5] = 'x';
    return made;
  };
  ASSERT_TRUE(Run(large_shape_, large_).ok());
  const CallOutput output = request_->Output(0);
  ASSERT_NE(output.keeper, nullptr);
  request_->Clear();
  EXPECT_EQ(output.data[5], 'x');
}

TEST_F(TensorFlowRun, DoesNotLendTheMemoryOfARequest) {
  Make(fp32_);
  ASSERT_TRUE(Run(large_shape_, large_).ok());
  EXPECT_EQ(request_->Output(0).data, large_.data());
  EXPECT_EQ(request_->Output(0).keeper, nullptr);
}

TEST_F(TensorFlowRun, GivesAScalarNoDimensions) {
  Make({.place = "x", .type = 1, .has_rank = true, .dims = {}});
  const std::vector<int64_t> shape{1, 1};
  ASSERT_TRUE(Run(shape, std::span<const char>(large_).first(4)).ok());
  EXPECT_THAT(calls_.input_shapes, ElementsAre(std::vector<int64_t>{}));
}

TEST_F(TensorFlowRun, GivesAndTakesTexts) {
  Make({.place = "x", .type = kString, .has_rank = true, .dims = {-1}});
  calls_.make_output = [](c::Tensor* input) {
    c::Tensor* const made = AllocateTensor(kString, input->dims.data(), 1, input->size);
    for (size_t i = 0; i < input->size / sizeof(c::Text); ++i) {
      auto* const to = reinterpret_cast<c::Text*>(made->data) + i;
      const std::string& from = *At(reinterpret_cast<c::Text*>(input->data) + i).text;
      kFakes.StringInit(to);
      kFakes.StringCopy(to, from.data(), from.size());
    }
    made->deallocator = [](void* data, size_t size, void*) {
      for (size_t i = 0; i < size / sizeof(c::Text); ++i) {
        kFakes.StringDealloc(static_cast<c::Text*>(data) + i);
      }
    };
    return made;
  };
  const std::vector<int64_t> shape{2};
  const std::vector<std::string_view> texts{"some", std::string_view("\0text", 5)};
  const CallInput input{.is_present = true, .shape = shape, .strings = texts};
  ASSERT_TRUE(request_->Run({&input, 1}, std::vector<char>{1}).ok());
  EXPECT_THAT(request_->Output(0).strings, ElementsAre(texts[0], texts[1]));
}

TEST_F(TensorFlowRun, FetchesWhatIsWanted) {
  Make(fp32_, 3);
  ASSERT_TRUE(Run(large_shape_, large_, {0, 1, 0}).ok());
  ASSERT_TRUE(Run(large_shape_, large_, {1, 0, 1}).ok());
  ASSERT_TRUE(Run(large_shape_, large_, {0, 0, 0}).ok());
  EXPECT_THAT(calls_.fetched, ElementsAre(ElementsAre(1), ElementsAre(0, 2), ElementsAre(0, 1, 2)));
}

TEST_F(TensorFlowRun, FetchesAllAfterManyDifferentSets) {
  Make(fp32_, 5);
  for (unsigned set = 1; set < 32; ++set) {
    std::vector<char> wanted;
    for (unsigned o = 0; o < 5; ++o) wanted.push_back(static_cast<char>(set >> o & 1U));
    ASSERT_TRUE(Run(large_shape_, large_, wanted).ok());
  }
  std::set<std::vector<int>> different(calls_.fetched.begin(), calls_.fetched.end());
  EXPECT_LE(different.size(), 9U);
  ASSERT_TRUE(Run(large_shape_, large_, {1, 0, 0, 0, 0}).ok());
  EXPECT_THAT(calls_.fetched.back(), ElementsAre(0)) << "a set that was seen before";
}

TEST_F(TensorFlowRun, SaysInOneLineWhatFailed) {
  Make(fp32_);
  calls_.failure = "the shapes\n\t [[{{node x}}]]";
  backend::Error error = Run(large_shape_, large_);
  EXPECT_STREQ(error.message(), "INVALID_ARGUMENT: the shapes [[{{node x}}]]");
}

}  // namespace
}  // namespace nereid::tensorflow
