// SPDX-License-Identifier: Apache-2.0
#include "isolation/response_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "core/testing/fakes.h"

namespace nereid::isolation {
namespace {

using core::Parameter;

// A request that is there to take parameters.
class ParametersTest : public testing::Test {
 protected:
  ~ParametersTest() override {
    request_.reset();
    EXPECT_TRUE(sink_.WaitForGone(1));
  }
  // Sends parameters to the other side and back.
  const std::vector<Parameter>& Pass(const std::vector<Parameter>& parameters) {
    request_->parameters.clear();
    const base::Status read = ReadParameters(ParametersText(parameters), *request_);
    EXPECT_TRUE(read.ok()) << read.message();
    return request_->parameters;
  }

  core::FakeSink sink_;
  core::RequestPtr request_ = core::Request::Create(sink_);
};

TEST_F(ParametersTest, ArriveAsTheyWereOfWhateverTypeAndInOrder) {
  using namespace std::string_view_literals;
  const std::vector<Parameter> sent = {{"b", "text"sv},
                                       {"a", std::numeric_limits<int64_t>::min()},
                                       {"largest", std::numeric_limits<int64_t>::max()},
                                       {"yes", true},
                                       {"no", false},
                                       {"whole", 3.0},
                                       {"negative zero", -0.0},
                                       {"", ""sv},
                                       {"quotes \" and \\", "{\"a\":[1,\n2]}\t\x01"sv},
                                       {"zero\0byte"sv, "\0\0x"sv},
                                       {"schön", "\xf0\x9f\x98\x80"sv}};
  const std::vector<Parameter>& received = Pass(sent);
  ASSERT_EQ(received.size(), sent.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(received[i].name, sent[i].name);
    EXPECT_EQ(received[i].value, sent[i].value) << sent[i].name;
  }
  EXPECT_TRUE(std::signbit(std::get<double>(received[6].value)));
}

TEST_F(ParametersTest, LoseNoBitOfADouble) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto number = std::bit_cast<double>(random());
    if (!std::isfinite(number)) continue;
    const auto& received = Pass({{"d", number}});
    ASSERT_EQ(received.size(), 1U);
    ASSERT_EQ(std::get<double>(received[0].value), number);
  }
}

TEST_F(ParametersTest, MayBeNoNumbersOrInfinite) {
  const double infinite = std::numeric_limits<double>::infinity();
  const auto& received =
      Pass({{"nan", std::nan("")}, {"more", infinite}, {"less", -infinite}, {"last", true}});
  ASSERT_EQ(received.size(), 4U);
  EXPECT_TRUE(std::isnan(std::get<double>(received[0].value)));
  EXPECT_EQ(std::get<double>(received[1].value), infinite);
  EXPECT_EQ(std::get<double>(received[2].value), -infinite);
  EXPECT_TRUE(std::get<bool>(received[3].value));
}

TEST_F(ParametersTest, OutliveTheTextThatTheyWereReadFrom) {
  {
    std::string text = R"({"name":"a value that is longer than any small string"})";
    ASSERT_TRUE(ReadParameters(text, *request_).ok());
    text.assign(text.size(), 'x');
  }
  EXPECT_EQ(request_->parameters[0].name, "name");
  EXPECT_EQ(std::get<std::string_view>(request_->parameters[0].value),
            "a value that is longer than any small string");
}

TEST_F(ParametersTest, AreRefusedUnlessTheyAreAnObject) {
  const std::string deep(1'000'000, '[');
  for (const std::string_view text :
       {"", "null", "[]", "7", "\"a\"", "{", "{\"a\":}", "{\"a\" 1}", "{} {}", deep.c_str()}) {
    EXPECT_EQ(ReadParameters(text, *request_).message(),
              "the parameters of the request are not a JSON object")
        << text.substr(0, 20);
    EXPECT_TRUE(request_->parameters.empty());
  }
}

TEST(ParametersText, OfNoneIsEmpty) { EXPECT_EQ(ParametersText({}), ""); }

}  // namespace
}  // namespace nereid::isolation
