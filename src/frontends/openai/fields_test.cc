// SPDX-License-Identifier: Apache-2.0
#include "openai/fields.h"

#include <gtest/gtest.h>

#include "http/testing/fake_service.h"

namespace nereid::openai {
namespace {

class FieldsTest : public testing::Test {
 protected:
  // Returns "<param>: <message>" of the error, or nothing.
  static std::string Describe(const ApiError& error) {
    if (error.ok()) return {};
    return std::string(error.param()) + ": " + std::string(error.status().message());
  }
  const JsonValue& Parse(std::string_view text) {
    EXPECT_TRUE(ParseBody(text, document_).ok()) << text;
    return document_;
  }
  // Checks a chat with these members besides those that it needs.
  std::string Chat(std::string_view members) {
    const std::string text =
        R"({"model":"m","messages":[{"role":"user","content":"hi"}])" + std::string(members) + "}";
    return Describe(CheckFields(Parse(text), Task::kChat));
  }
  std::string Messages(std::string_view messages) {
    const std::string text = R"({"model":"m","messages":)" + std::string(messages) + "}";
    return Describe(CheckFields(Parse(text), Task::kChat));
  }

  rapidjson::Document document_;
};

TEST_F(FieldsTest, MayBeAbsentOrNullOrUnknown) {
  EXPECT_EQ(Chat(""), "");
  EXPECT_EQ(Chat(R"(,"stop":null,"n":null,"temperature":null,"stream":null,"tools":null)"), "");
  EXPECT_EQ(Chat(R"(,"some_extension":{"x":[1]})"), "");
}

TEST_F(FieldsTest, HaveTypes) {
  EXPECT_EQ(Chat(R"(,"temperature":"hot")"),
            "temperature: 'temperature' must be a number, not a string");
  EXPECT_EQ(Chat(R"(,"temperature":NaN)"), "temperature: 'temperature' must be a number, not NaN");
  EXPECT_EQ(Chat(R"(,"max_tokens":1.5)"),
            "max_tokens: 'max_tokens' must be an integer, not a fraction");
  EXPECT_EQ(Chat(R"(,"stream":1)"), "stream: 'stream' must be a boolean, not a number");
  EXPECT_EQ(Chat(R"(,"tools":{})"), "tools: 'tools' must be an array, not an object");
}

TEST_F(FieldsTest, HaveRanges) {
  EXPECT_EQ(Chat(R"(,"top_p":1.5)"), "top_p: 'top_p' must be from 0 to 1");
  EXPECT_EQ(Chat(R"(,"max_tokens":0)"), "max_tokens: 'max_tokens' must be from 1 to 1000000000");
  EXPECT_EQ(Chat(R"(,"seed":-9223372036854775808)"), "");
}

TEST_F(FieldsTest, StopHasUpToFourSequences) {
  EXPECT_EQ(Chat(R"(,"stop":["a","b","c","d"])"), "");
  EXPECT_EQ(StopSequences(document_), (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(Chat(R"(,"stop":"x")"), "");
  EXPECT_EQ(StopSequences(document_), std::vector<std::string>{"x"});
  EXPECT_EQ(Chat(R"(,"stop":["a","b","c","d","e"])"),
            "stop: 'stop' has 5 sequences; there may be up to 4");
  EXPECT_EQ(Chat(R"(,"stop":["a",1])"),
            "stop: every element of 'stop' must be a string that is not empty");
  EXPECT_EQ(Chat(R"(,"stop":"")"), "stop: 'stop' must not be empty");
  EXPECT_EQ(Chat(R"(,"stop":7)"),
            "stop: 'stop' must be a string or an array of strings, not a number");
}

TEST_F(FieldsTest, MessagesHaveRolesAndTexts) {
  EXPECT_EQ(Messages("null"), "messages: 'messages' is missing");
  EXPECT_EQ(Messages("[]"), "messages: 'messages' must not be empty");
  EXPECT_EQ(Messages("[1]"), "messages: 'messages[0]' must be an object, not a number");
  EXPECT_EQ(Messages(R"([{"content":"x"}])"), "messages: 'messages[0].role' must be a string");
  EXPECT_EQ(Messages(R"([{"role":"user","content":1}])"),
            "messages: 'messages[0].content' must be a string or an array of parts, not a number");
  EXPECT_EQ(
      Messages(R"([{"role":"user","content":["x"]}])"),
      "messages: 'messages[0].content' must have parts that are objects with a string 'type'");
}

TEST_F(FieldsTest, MessagesBecomeAPrompt) {
  std::string prompt;
  const std::string_view chat =
      R"({"messages":[{"role":"system","content":"Be brief."},)"
      R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},)"
      R"({"role":"assistant","content":null}]})";
  EXPECT_EQ(Describe(AppendPrompt(Parse(chat), prompt)), "");
  EXPECT_EQ(prompt, "system: Be brief.\nuser: ab\nassistant: \nassistant:");
  const std::string_view image =
      R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]})";
  EXPECT_EQ(Describe(AppendPrompt(Parse(image), prompt)),
            "messages: the model takes text only, and not a part of the type 'image_url'");
}

TEST_F(FieldsTest, ThatNobodyCanServeAreRefused) {
  const std::unique_ptr<core::Model> model = http::MakeModel({});
  const auto refusal = [&](std::string_view text, Task task) {
    return Describe(CheckAbilities(Parse(text), task, *model));
  };
  EXPECT_EQ(refusal(R"({"n":2})", Task::kChat), "n: 'n' must be 1: this server gives one choice");
  EXPECT_EQ(refusal(R"({"n":1,"logprobs":false,"tools":[],"echo":false})", Task::kChat), "");
  EXPECT_EQ(refusal(R"({"logprobs":true})", Task::kChat),
            "logprobs: this server gives no 'logprobs'");
  EXPECT_EQ(refusal(R"({"logprobs":0})", Task::kCompletions),
            "logprobs: this server gives no 'logprobs'");
  EXPECT_EQ(refusal(R"({"response_format":{"type":"text"}})", Task::kChat), "");
  EXPECT_EQ(refusal(R"({"response_format":{"type":"json_object"}})", Task::kChat),
            "response_format: the model 'm' does not support 'response_format': it has no input of "
            "that name");
  EXPECT_EQ(
      refusal(R"({"dimensions":8})", Task::kEmbeddings),
      "dimensions: the model 'm' does not support 'dimensions': it has no input of that name");
}

TEST_F(FieldsTest, TextsAreOneOrMany) {
  const auto texts = [&](std::string_view text, Task task) {
    const Texts read = ReadTexts(Parse(text), task);
    return read.error.ok() ? std::to_string(read.texts.size()) : Describe(read.error);
  };
  EXPECT_EQ(texts(R"({"input":"a"})", Task::kEmbeddings), "1");
  EXPECT_EQ(texts(R"({"input":["a","b"]})", Task::kEmbeddings), "2");
  EXPECT_EQ(texts(R"({"input":[]})", Task::kEmbeddings),
            "input: 'input' has 0 elements; there must be from 1 to 2048");
  EXPECT_EQ(texts(R"({"input":[1,2]})", Task::kEmbeddings),
            "input: 'input' must have strings as its elements, not a number; this server takes no "
            "tokens");
  EXPECT_EQ(texts(R"({"prompt":["a","b"]})", Task::kCompletions),
            "prompt: 'prompt' has 2 elements; there must be 1");
  EXPECT_EQ(texts(R"({})", Task::kCompletions), "prompt: 'prompt' is missing: a text");
}

}  // namespace
}  // namespace nereid::openai
