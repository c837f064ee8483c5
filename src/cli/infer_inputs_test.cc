// SPDX-License-Identifier: Apache-2.0
#include "cli/infer_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/bench_request.h"
#include "cli/npy.h"
#include "cli/testing/file_test.h"

namespace nereid::cli {
namespace {

using tensor::DataType;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class InferInputsTest : public FileTest {
 protected:
  // The inputs as they are read; the test fails if there is an error.
  std::vector<InferInput> Read() {
    auto inputs = ReadInferInputs(arguments_, model_);
    EXPECT_TRUE(inputs.ok()) << inputs.status().message();
    return inputs.ok() ? *std::move(inputs) : std::vector<InferInput>();
  }
  std::string WhyNot(std::string input, std::vector<std::string> shapes = {}) {
    arguments_.inputs = {std::move(input)};
    arguments_.shapes = std::move(shapes);
    return std::string(ReadInferInputs(arguments_, model_).status().message());
  }
  // Tensors for requests of the bench; the error if there is one.
  base::Result<BenchTensors> Bench(int64_t batch_size, int64_t max_batch_size = 0) {
    return MakeBenchTensors(
        {.arguments = arguments_, .batch_size = batch_size, .distinct = distinct_}, model_,
        max_batch_size);
  }

  InferArguments arguments_;
  int distinct_ = 1;
  ModelMetadata model_{.name = "m",
                       .platform = "",
                       .versions = {},
                       .inputs = {{.name = "image", .datatype = "FP32", .shape = {-1, 2}},
                                  {.name = "words", .datatype = "BYTES", .shape = {-1, 1}}},
                       .outputs = {}};
};

TEST_F(InferInputsTest, FilesOfNumpyBringTheirShape) {
  Write("a.npy", *WriteNpy(DataType::kFp32, {3, 2}, std::string(24, 'x')));
  arguments_.inputs = {"image=@" + Path("a.npy")};
  const auto inputs = Read();
  ASSERT_THAT(inputs, SizeIs(1));
  EXPECT_THAT(inputs[0].shape, ElementsAre(3, 2));
  EXPECT_EQ(inputs[0].bytes, std::string(24, 'x'));
  EXPECT_FALSE(inputs[0].json.has_value());
}

TEST_F(InferInputsTest, RawFilesTakeTheShapeOfTheModelOrTheOneThatIsGiven) {
  Write("a.raw", std::string(48, 'x'));
  arguments_.inputs = {"image=@" + Path("a.raw")};
  EXPECT_THAT(Read().at(0).shape, ElementsAre(6, 2));
  arguments_.shapes = {"image:3,2,2"};
  EXPECT_THAT(Read().at(0).shape, ElementsAre(3, 2, 2));
  Write("a.raw", std::string(12, 'x'));
  EXPECT_THAT(WhyNot("image=@" + Path("a.raw")),
              HasSubstr("12 bytes do not make a tensor FP32 [-1, 2]"));
  Write("a.raw", std::string(9, 'x'));
  EXPECT_THAT(WhyNot("image=@" + Path("a.raw")), HasSubstr("9 bytes do not make a tensor"));
  EXPECT_THAT(WhyNot("words=@" + Path("a.raw")), HasSubstr("it needs --shape"));
}

TEST_F(InferInputsTest, FilesOfJsonAreReadAsIfTheyStoodInTheArgument) {
  Write("a.json", "[[1,2],[3,4]]\n");
  arguments_.inputs = {"image=@" + Path("a.json")};
  EXPECT_THAT(Read().at(0).shape, ElementsAre(2, 2));
  EXPECT_TRUE(Read().at(0).json.has_value());
}

TEST_F(InferInputsTest, AnErrorInALongFileIsShort) {
  Write("a.json", "[" + std::string(100'000, '1'));
  const std::string error = WhyNot("image=@" + Path("a.json"));
  EXPECT_THAT(error, HasSubstr("a.json: it is not JSON"));
  EXPECT_LT(error.size(), 300U);
}

TEST_F(InferInputsTest, ErrorsNameTheArgumentAndWhatWouldBeRight) {
  Write("a.npy", *WriteNpy(DataType::kInt32, {1, 2}, "12345678"));
  Write("a.txt", "1");
  struct Case {
    std::string input;
    const char* why;
  };
  for (const Case& c : {
           Case{"imgae=1",
                "there is no input 'imgae'; the model has 'image' and 'words'; did you "
                "mean 'image'?"},
           Case{"[1]", "expected NAME=..."},
           Case{"image", "expected NAME=..."},
           Case{"image=one", "'one' is not JSON (a text needs quotes) and not @FILE"},
           Case{"image=", "is not JSON"},
           Case{"image=@" + Path("a.npy"), "it holds INT32, and the model takes FP32"},
           Case{"image=@" + Path("a.txt"), "expected a file .npy, .json or .raw"},
           Case{"image=@" + Path("none.npy"), "No such file"},
           Case{"image=@" + Path("."), "Is a directory"},
           Case{"image=@", "cannot read ''"},
       }) {
    EXPECT_THAT(WhyNot(c.input), HasSubstr(c.why)) << c.input;
  }
  for (const char* shape : {"image=1,x", "image=-1", "image=1,,2", "image=1x2", "image= 1",
                            "image=99999999999999999999", "other=1", "image"}) {
    EXPECT_NE(WhyNot("image=1", {shape}), "") << shape;
  }
}

TEST_F(InferInputsTest, InputsThatAreNotGivenAreGenerated) {
  arguments_.filling = Filling::kRandom;
  arguments_.inputs = {"words=\"x\""};
  arguments_.shapes = {"image=4,2"};
  const auto inputs = Read();
  ASSERT_THAT(inputs, SizeIs(2));
  EXPECT_EQ(inputs[0].metadata->name, "words");
  EXPECT_EQ(inputs[1].metadata->name, "image");
  EXPECT_EQ(inputs[1].bytes.size(), 4 * 2 * sizeof(float));
  arguments_.filling.reset();
  EXPECT_THAT(Read(), SizeIs(1));
}

TEST_F(InferInputsTest, SizesThatNobodyCouldSendAreNotGenerated) {
  arguments_.filling = Filling::kZeros;
  for (const char* sizes : {"image=4294967296,4294967296,4294967296", "image=1000000000,2"}) {
    arguments_.shapes = {sizes};
    EXPECT_THAT(std::string(ReadInferInputs(arguments_, model_).status().message()),
                HasSubstr("input image: more than 1 GiB"));
  }
}

TEST_F(InferInputsTest, ABatchOfTheBenchRepeatsARow) {
  arguments_.inputs = {"image=[[1,2]]", R"(words=[["a"]])"};
  const auto tensors = Bench(3);
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  EXPECT_EQ(tensors->description, "image FP32 [3, 2], words BYTES [3, 1]");
  const auto& inputs = tensors->requests.at(0);
  const std::string& image = inputs.at(0).bytes;
  EXPECT_EQ(image.size(), 24U);
  EXPECT_EQ(image, image.substr(0, 8) + image.substr(0, 8) + image.substr(0, 8));
  EXPECT_EQ(*ElementsText(DataType::kBytes, inputs.at(1).bytes, 9), R"(["a", "a", "a"])");
}

TEST_F(InferInputsTest, ABatchThatCannotBeMadeIsRefused) {
  const auto why_not = [&](int64_t size, int64_t max) {
    return std::string(Bench(size, max).status().message());
  };
  arguments_.inputs = {"image=[[1,2],[3,4]]"};
  EXPECT_EQ(why_not(2, 2), "");
  EXPECT_EQ(why_not(3, 0), "--batch-size 3: input image has 2 rows, expected 1 or 3");
  EXPECT_EQ(why_not(9, 8), "--batch-size 9: the model takes batches of up to 8");
  arguments_.inputs = {"image=[[1,2]]"};
  EXPECT_THAT(why_not(int64_t{1} << 40, 0), HasSubstr("too large"));
  model_.inputs[0].shape = {1, 2};
  EXPECT_THAT(why_not(2, 0), HasSubstr("has no dimension for a batch; its shape is [1, 2]"));
}

TEST_F(InferInputsTest, ValuesOfTheSameInputAreSentInTurn) {
  arguments_.inputs = {"image=[1,2]", "image=[3,4]", "image=[5,6]", R"(words="a")", R"(words="b")"};
  const auto tensors = Bench(1);
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  ASSERT_THAT(tensors->requests, SizeIs(3));
  std::vector<std::string> texts;
  for (const auto& request : tensors->requests) {
    texts.push_back(*ElementsText(DataType::kFp32, request.at(0).bytes, 9) +
                    *ElementsText(DataType::kBytes, request.at(1).bytes, 9));
  }
  EXPECT_THAT(texts, ElementsAre("[1.0, 2.0][\"a\"]", "[3.0, 4.0][\"b\"]", "[5.0, 6.0][\"a\"]"));
  EXPECT_THAT(tensors->description, HasSubstr("; 3 different requests"));
}

TEST_F(InferInputsTest, DistinctRequestsHaveDifferentRandomInputs) {
  arguments_.filling = Filling::kRandom;
  distinct_ = 4;
  const auto tensors = Bench(1);
  ASSERT_TRUE(tensors.ok());
  std::vector<std::string> images;
  for (const auto& request : tensors->requests) images.push_back(request.at(0).bytes);
  ASSERT_THAT(images, SizeIs(4));
  std::ranges::sort(images);
  EXPECT_EQ(std::ranges::adjacent_find(images), images.end());
}

TEST_F(InferInputsTest, DataThatMakesNoTensorIsRefusedBeforeAServerIsAsked) {
  const auto why_not = [&](std::string input, std::vector<std::string> shapes) {
    arguments_.inputs = {std::move(input)};
    arguments_.shapes = std::move(shapes);
    return std::string(Bench(1).status().message());
  };
  EXPECT_EQ(why_not("image=[[1,2],[3]]", {}),
            "input image: 12 bytes do not make a tensor FP32 [2, 2]");
  EXPECT_THAT(why_not("image=[1,2]", {"image=1,3"}), HasSubstr("do not make a tensor"));
  EXPECT_THAT(why_not("image=[1,\"2\"]", {}), HasSubstr("input image: \"2\" is no FP32"));
  EXPECT_THAT(why_not(R"(words=["a","b"])", {"words=3,1"}), HasSubstr("do not make a tensor"));
  EXPECT_EQ(why_not(R"(words=["a","b"])", {}), "");
}

TEST_F(InferInputsTest, RequestsOverHttpAreWhole) {
  arguments_.inputs = {"image=[[1,2]]"};
  auto tensors = Bench(1);
  ASSERT_TRUE(tensors.ok());
  const BenchAddress address{.server = {.url = "http://[::1]:8000/base/", .headers = {"X-Key: k"}},
                             .grpc_url = "",
                             .model = "a b/c",
                             .version = "2"};
  const auto requests = MakeBenchRequests(address, arguments_, model_, *std::move(tensors));
  ASSERT_TRUE(requests.ok()) << requests.status().message();
  const std::string& request = requests->at(0);
  EXPECT_THAT(request,
              testing::StartsWith("POST /base/v2/models/a%20b%2Fc/versions/2/infer HTTP/1.1\r\n"
                                  "host: [::1]:8000\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nX-Key: k\r\n"));
  const size_t body = request.find("\r\n\r\n") + 4;
  EXPECT_THAT(request, HasSubstr("content-length: " + std::to_string(request.size() - body)));
  EXPECT_THAT(request.substr(body), HasSubstr("\"binary_data_size\":8"));
}

}  // namespace
}  // namespace nereid::cli
