// SPDX-License-Identifier: Apache-2.0
#include "config/openai_contract.h"

#include <gtest/gtest.h>

namespace nereid::config {
namespace {

using tensor::DataType;

ModelInput Input(std::string name, bool optional = false, DataType type = DataType::kBytes,
                 std::vector<int64_t> dims = {1}) {
  ModelInput input;
  input.name = std::move(name);
  input.data_type = type;
  input.dims = std::move(dims);
  input.optional = optional;
  return input;
}

ModelOutput Output(std::string name, DataType type = DataType::kBytes,
                   std::vector<int64_t> dims = {1}) {
  ModelOutput output;
  output.name = std::move(name);
  output.data_type = type;
  output.dims = std::move(dims);
  return output;
}

ModelConfig Model(std::string tasks, std::vector<ModelInput> inputs,
                  std::vector<ModelOutput> outputs) {
  ModelConfig config;
  config.name = "m";
  config.parameters["openai"] = std::move(tasks);
  config.input = std::move(inputs);
  config.output = std::move(outputs);
  return config;
}

std::string ErrorOf(const ModelConfig& config) {
  const auto contract = ReadOpenAiContract(config);
  return contract.ok() ? std::string() : std::string(contract.status().message());
}

OpenAiContract ContractOf(const ModelConfig& config) {
  const auto contract = ReadOpenAiContract(config);
  EXPECT_TRUE(contract.ok()) << contract.status().message();
  return contract.ok() && *contract ? **contract : OpenAiContract();
}

TEST(OpenAiContract, IsAbsentWithoutItsParameter) {
  const auto contract = ReadOpenAiContract(ModelConfig());
  ASSERT_TRUE(contract.ok());
  EXPECT_FALSE(*contract);
}

TEST(OpenAiContract, FindsTensorsByTheirUsualNames) {
  const ModelConfig config =
      Model("chat, completions", {Input("text_input", true), Input("messages", true)},
            {Output("text_output"), Output("completion_tokens", DataType::kInt32)});
  const OpenAiContract contract = ContractOf(config);
  EXPECT_TRUE(contract.serves_chat);
  EXPECT_TRUE(contract.serves_completions);
  EXPECT_FALSE(contract.serves_embeddings);
  EXPECT_EQ(contract.text_input, "text_input");
  EXPECT_EQ(contract.messages_input, "messages");
  EXPECT_EQ(contract.text_output, "text_output");
  EXPECT_EQ(contract.embedding_output, "");
}

TEST(OpenAiContract, FindsTensorsByTheNamesThatParametersGive) {
  ModelConfig config =
      Model("embeddings", {Input("TEXT")}, {Output("VECTOR", DataType::kFp32, {8})});
  config.parameters["openai_text_input"] = "TEXT";
  config.parameters["openai_embedding"] = "VECTOR";
  EXPECT_EQ(ContractOf(config).embedding_output, "VECTOR");
  config.parameters["openai_embedding"] = "VEKTOR";
  EXPECT_EQ(ErrorOf(config),
            "parameter 'openai_embedding' of model 'm': the model has no output 'VEKTOR'");
}

TEST(OpenAiContract, NamesWhatIsWrong) {
  const std::vector<ModelInput> text = {Input("text_input")};
  const std::vector<ModelOutput> answer = {Output("text_output")};
  const std::string begin = "parameter 'openai' of model 'm': ";
  EXPECT_EQ(ErrorOf(Model("chats", text, answer)),
            begin +
                "'chats' is not one of 'chat', 'completions' and 'embeddings', of which it is "
                "a list with commas");
  EXPECT_EQ(ErrorOf(Model("chat", {Input("IN")}, answer)),
            begin +
                "'chat' needs an input 'text_input', which the model lacks; the parameter "
                "'openai_text_input' can give it another name");
  EXPECT_EQ(ErrorOf(Model("completions,embeddings", text, answer)),
            begin +
                "'embeddings' needs an output 'embedding', which the model lacks; the "
                "parameter 'openai_embedding' can give it another name");
  EXPECT_EQ(ErrorOf(Model("chat", {Input("text_input", false, DataType::kInt32, {4})}, answer)),
            begin +
                "the input 'text_input' must be of TYPE_STRING with the dims [ 1 ], not of "
                "TYPE_INT32 with the dims [4]");
  EXPECT_EQ(ErrorOf(Model("chat", {text[0], Input("seed", false, DataType::kInt64)}, answer)),
            begin +
                "the input 'seed' must have 'optional: true', because not every request has "
                "it");
  EXPECT_EQ(ErrorOf(Model("chat,completions", {text[0], Input("messages", true)}, answer)),
            begin +
                "the input 'text_input' must have 'optional: true', because not every request "
                "has it");
  EXPECT_EQ(
      ErrorOf(Model("completions", text, {answer[0], Output("prompt_tokens", DataType::kFp32)})),
      begin +
          "the output 'prompt_tokens' must be of TYPE_INT32 or TYPE_INT64, not of "
          "TYPE_FP32");
}

TEST(OpenAiContract, KnowsNoOtherParameters) {
  ModelConfig config = Model("chat", {Input("text_input")}, {Output("text_output")});
  config.parameters["openai_input"] = "x";
  EXPECT_EQ(ErrorOf(config),
            "parameter 'openai_input' of model 'm': there is no such parameter; there are "
            "'openai', 'openai_text_input', 'openai_messages', 'openai_text_output', "
            "'openai_embedding'");
  config.parameters = {{"openai_messages", "x"}};
  EXPECT_EQ(ErrorOf(config),
            "parameter 'openai_messages' of model 'm': it has no effect without the parameter "
            "'openai'");
}

}  // namespace
}  // namespace nereid::config
