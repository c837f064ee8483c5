// SPDX-License-Identifier: Apache-2.0
#include "cli/model_metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/json.h"

namespace nereid::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

base::Result<ModelMetadata> Read(std::string_view json) {
  rapidjson::Document document;
  EXPECT_TRUE(ParseJson(json, document)) << json;
  return ReadModelMetadata(document);
}

TEST(ModelMetadata, IsWhatTheServerSays) {
  const auto model = Read(R"({"name":"m","versions":["1","3"],"platform":"onnxruntime_onnx",
      "inputs":[{"name":"x","datatype":"FP32","shape":[-1,784]}],
      "outputs":[{"name":"y","datatype":"BYTES","shape":[]},{"name":"z","datatype":"BOOL"}]})");
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->name, "m");
  EXPECT_EQ(model->platform, "onnxruntime_onnx");
  EXPECT_THAT(model->versions, ElementsAre("1", "3"));
  ASSERT_THAT(model->inputs, SizeIs(1));
  EXPECT_EQ(model->inputs[0].datatype, "FP32");
  EXPECT_EQ(ShapeText(model->inputs[0].shape), "[-1, 784]");
  ASSERT_THAT(model->outputs, SizeIs(2));
  EXPECT_EQ(ShapeText(model->outputs[0].shape), "[]");
}

TEST(ModelMetadata, OtherRepliesAreNoModel) {
  for (const char* json : {"{}", "[]", "null", "1", R"({"name":""})", R"({"name":7})",
                           R"({"error":"unknown model"})"}) {
    EXPECT_EQ(Read(json).status().message(), "the reply is not that of an inference server")
        << json;
  }
}

TEST(ModelMetadata, MembersOfWrongTypesAreLeftOut) {
  const auto model = Read(R"({"name":"m","versions":[1,null,"2"],"platform":{},
      "inputs":{"name":"x"},"outputs":[1,[],{"name":1,"shape":["2",2.5,1e30,7]}]})");
  ASSERT_TRUE(model.ok());
  EXPECT_THAT(model->versions, ElementsAre("2"));
  EXPECT_EQ(model->platform, "");
  EXPECT_THAT(model->inputs, IsEmpty());
  ASSERT_THAT(model->outputs, SizeIs(3));
  EXPECT_THAT(model->outputs[2].shape, ElementsAre(kAnySize, kAnySize, kAnySize, 7));
}

}  // namespace
}  // namespace nereid::cli
