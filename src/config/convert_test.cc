// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/message_differencer.h>

#include "config/parse.h"
#include "config/print.h"
#include "config/proto_convert.h"

namespace nereid::config {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Gives every field outside of a oneof a value that is not its default, two values if repeated, and
// sets member number `choice` of each oneof. `seed` makes the values differ from each other.
class Filler {
 public:
  explicit Filler(int choice) : choice_(choice) {}

  void Fill(Message* message) {
    const auto* type = message->GetDescriptor();
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor* field = type->field(i);
      if (const auto* oneof = field->containing_oneof()) {
        if (oneof->field(choice_ % oneof->field_count()) != field) continue;
      }
      // One entry only: map entries with equal keys would collapse.
      Set(message, field);
      if (field->is_repeated() && !field->is_map()) Set(message, field);
    }
  }

 private:
  void Set(Message* m, const FieldDescriptor* f) {
    const Reflection* r = m->GetReflection();
    const bool many = f->is_repeated();
    ++seed_;
    switch (f->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return many ? r->AddInt32(m, f, seed_) : r->SetInt32(m, f, seed_);
      case FieldDescriptor::CPPTYPE_INT64:
        return many ? r->AddInt64(m, f, seed_ + (1LL << 40)) : r->SetInt64(m, f, -seed_);
      case FieldDescriptor::CPPTYPE_UINT32:
        return many ? r->AddUInt32(m, f, seed_) : r->SetUInt32(m, f, seed_);
      case FieldDescriptor::CPPTYPE_UINT64:
        return many ? r->AddUInt64(m, f, seed_) : r->SetUInt64(m, f, ~0ULL - seed_);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return many ? r->AddDouble(m, f, seed_ + 0.25) : r->SetDouble(m, f, seed_ + 0.25);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return many ? r->AddFloat(m, f, seed_ + 0.5F) : r->SetFloat(m, f, seed_ + 0.5F);
      case FieldDescriptor::CPPTYPE_BOOL:
        return many ? r->AddBool(m, f, seed_ % 2 == 0) : r->SetBool(m, f, true);
      case FieldDescriptor::CPPTYPE_ENUM: {
        const int value = f->enum_type()->value(f->enum_type()->value_count() - 1)->number();
        return many ? r->AddEnumValue(m, f, value) : r->SetEnumValue(m, f, value);
      }
      case FieldDescriptor::CPPTYPE_STRING: {
        std::string text = "text" + std::to_string(seed_);
        return many ? r->AddString(m, f, text) : r->SetString(m, f, text);
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Fill(many ? r->AddMessage(m, f) : r->MutableMessage(m, f));
    }
  }

  const int choice_;
  int seed_ = 0;
};

class EveryOneofMember : public testing::TestWithParam<int> {};

TEST_P(EveryOneofMember, SurvivesConversionToPlainValues) {
  inference::ModelConfig message;
  Filler(GetParam()).Fill(&message);
  const inference::ModelConfig back = ToProto(FromProto(message));
  std::string differences;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  EXPECT_TRUE(differencer.Compare(message, back)) << differences;
}

TEST_P(EveryOneofMember, SurvivesTextJsonAndBytes) {
  inference::ModelConfig message;
  Filler(GetParam()).Fill(&message);
  const ModelConfig config = FromProto(message);
  EXPECT_EQ(*ParseModelConfigText(ToText(config), "t"), config);
  EXPECT_EQ(*ParseModelConfigJson(*ToJson(config)), config);
  EXPECT_EQ(*ParseModelConfigProto(SerializeToProto(config)), config);
}

INSTANTIATE_TEST_SUITE_P(ConfigConversion, EveryOneofMember, testing::Range(0, 6));

TEST(ConfigConversion, KeepsPresenceOfEmptyMessages) {
  for (const char* text :
       {"version_policy { }", "version_policy { latest { } }", "version_policy { all { } }",
        "optimization { }", "optimization { graph { } }", "dynamic_batching { }",
        "dynamic_batching { default_queue_policy { } }", "sequence_batching { }",
        "sequence_batching { direct { } }", "ensemble_scheduling { }", "model_operations { }",
        "model_transaction_policy { }", "model_repository_agents { }", "response_cache { }",
        "model_metrics { }", "input { reshape { } }", "output { reshape { } }",
        "instance_group { rate_limiter { } }"}) {
    const auto config = ParseModelConfigText(text, "t");
    ASSERT_TRUE(config.ok()) << text;
    EXPECT_NE(*config, ModelConfig()) << text;
    EXPECT_EQ(*ParseModelConfigProto(SerializeToProto(*config)), *config) << text;
  }
}

TEST(ConfigConversion, RefusesToTruncateAnUnknownDataType) {
  const auto config = ParseModelConfigText("input { data_type: 257 }", "t");  // 257 % 256 is BOOL
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->input[0].data_type, tensor::DataType::kInvalid);
}

}  // namespace
}  // namespace nereid::config
