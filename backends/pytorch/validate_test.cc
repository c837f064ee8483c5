// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pytorch_backend/instance_fixture.h"

namespace nereid::pytorch {
namespace {

using ::testing::HasSubstr;
using Kind = ValueType::Kind;

TEST(CheckPorts, RefusesStringsWithMoreThanOneDimension) {
  const backend::Ports ports{
      .inputs = {{.name = "x", .datatype = TRITONSERVER_TYPE_BYTES, .dims = {-1}}}};
  EXPECT_TRUE(CheckPorts(ports, false, "m").ok());
  EXPECT_THAT(CheckPorts(ports, true, "m").message(),
              HasSubstr("only supports 1 dimensional List of String as input for 'x'"));
}

TEST(CheckInputsListed, WritesAConfigurationToBeginWith) {
  Signature signature{.arguments = {{"x", {.kind = Kind::kTensor, .text = "Tensor"}},
                                    {"names", {.kind = Kind::kStrings, .text = "List[str]"}}},
                      .result = {.kind = Kind::kTensor, .text = "Tensor"}};
  EXPECT_THAT(CheckInputsListed({}, FakeProgram(signature, Echo), "m").message(),
              HasSubstr("configuration expects 0 inputs, model provides 2: TorchScript files have "
                        "no types and shapes, so config.pbtxt has to say them: "
                        "forward(x: Tensor, names: List[str]) -> Tensor is input [ { name: \"x\" "
                        "data_type: TYPE_... dims: [ ... ] }, { name: \"names\" data_type: "
                        "TYPE_STRING dims: [ -1 ] } ]; outputs may be left out"));
}

TEST(CheckKinds, RefusesNumbersForAListOfStrings) {
  const backend::Ports ports{.inputs = {{.name = "x", .datatype = TRITONSERVER_TYPE_FP32}}};
  const ValueType strings{.kind = Kind::kStrings, .text = "List[str]"};
  EXPECT_STREQ(CheckKinds(ports, {{.type = &strings, .input = 0}}).message(),
               "configuration expects datatype TYPE_FP32 for input 'x', model provides List[str]");
}

}  // namespace
}  // namespace nereid::pytorch
