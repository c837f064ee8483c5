// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "abi_objects/buffer_attributes.h"
#include "abi_objects/error.h"
#include "abi_objects/message.h"
#include "abi_objects/parameter.h"

namespace nereid::abi_objects {
namespace {

TEST(Error, KeepsCodeAndTextBothWays) {
  for (int code = 0; code <= 7; ++code) {
    const base::Status status(static_cast<base::StatusCode>(code), "what went wrong");
    TRITONSERVER_Error* error = NewError(status);
    EXPECT_EQ(TRITONSERVER_ErrorCode(error), code);
    EXPECT_STREQ(TRITONSERVER_ErrorMessage(error), "what went wrong");
    EXPECT_EQ(TRITONSERVER_ErrorCodeString(error), base::StatusCodeName(status.code()));
    const base::Status back = TakeStatus(error);
    EXPECT_EQ(back.code(), status.code());
    EXPECT_EQ(back.message(), status.message());
  }
}

TEST(Error, IsNullForSuccess) {
  EXPECT_EQ(NewError(base::OkStatus()), nullptr);
  EXPECT_TRUE(TakeStatus(nullptr).ok());
}

TEST(Error, CountsAnUnknownNumberAsUnknown) {
  TRITONSERVER_Error* error = TRITONSERVER_ErrorNew(static_cast<TRITONSERVER_Error_Code>(99), "m");
  EXPECT_EQ(TakeStatus(error).code(), base::StatusCode::kUnknown);
}

TEST(Error, ConvertsAnExceptionToInternal) {
  TRITONSERVER_Error* error =
      RunApiCall([]() -> base::Status { throw std::runtime_error("oops"); });
  const base::Status status = TakeStatus(error);
  EXPECT_EQ(status.code(), base::StatusCode::kInternal);
  EXPECT_EQ(status.message(), "oops");
}

TEST(Error, StopsAnExceptionOfAPlugin) {
  const auto thrower = +[](int) -> TRITONSERVER_Error* { throw std::runtime_error("inside"); };
  EXPECT_EQ(CallPlugin(thrower, 1).message(), "exception from plug-in: inside");
}

TEST(Message, GivesBackItsText) {
  TRITONSERVER_Message* message = nullptr;
  ASSERT_EQ(TRITONSERVER_MessageNewFromSerializedJson(&message, "{\"a\":1}junk", 7), nullptr);
  const char* base = nullptr;
  size_t size = 0;
  ASSERT_EQ(TRITONSERVER_MessageSerializeToJson(message, &base, &size), nullptr);
  EXPECT_EQ(std::string_view(base, size), "{\"a\":1}");
  EXPECT_EQ(TRITONSERVER_MessageDelete(message), nullptr);
}

TEST(Message, QuotesWhatJsonCannotHold) {
  EXPECT_EQ(QuoteJson("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
  EXPECT_EQ(SettingsJson("cpu", {}), "{\"cpu\":{}}");
  EXPECT_EQ(SettingsJson("cmdline", {{"a", "1"}, {"b", "2"}}),
            "{\"cmdline\":{\"a\":\"1\",\"b\":\"2\"}}");
}

TEST(BufferAttributes, KeepsWhatIsSet) {
  TRITONSERVER_BufferAttributes* attributes = nullptr;
  ASSERT_EQ(TRITONSERVER_BufferAttributesNew(&attributes), nullptr);
  int handle = 0;
  TRITONSERVER_BufferAttributesSetMemoryType(attributes, TRITONSERVER_MEMORY_GPU);
  TRITONSERVER_BufferAttributesSetMemoryTypeId(attributes, 3);
  TRITONSERVER_BufferAttributesSetByteSize(attributes, 17);
  TRITONSERVER_BufferAttributesSetCudaIpcHandle(attributes, &handle);
  TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
  int64_t id = 0;
  size_t size = 0;
  void* found = nullptr;
  TRITONSERVER_BufferAttributesMemoryType(attributes, &type);
  TRITONSERVER_BufferAttributesMemoryTypeId(attributes, &id);
  TRITONSERVER_BufferAttributesByteSize(attributes, &size);
  TRITONSERVER_BufferAttributesCudaIpcHandle(attributes, &found);
  EXPECT_EQ(type, TRITONSERVER_MEMORY_GPU);
  EXPECT_EQ(id, 3);
  EXPECT_EQ(size, 17u);
  EXPECT_EQ(found, &handle);
  TRITONSERVER_BufferAttributesDelete(attributes);
}

TEST(Parameter, CopiesItsValue) {
  const int64_t number = 42;
  TRITONSERVER_Parameter* parameter =
      TRITONSERVER_ParameterNew("n", TRITONSERVER_PARAMETER_INT, &number);
  EXPECT_EQ(parameter->name, "n");
  EXPECT_EQ(std::get<int64_t>(parameter->value), 42);
  TRITONSERVER_ParameterDelete(parameter);
  EXPECT_EQ(TRITONSERVER_ParameterNew("b", TRITONSERVER_PARAMETER_BYTES, &number), nullptr);
}

TEST(Names, AreThoseOfTheProtocols) {
  EXPECT_STREQ(TRITONSERVER_DataTypeString(TRITONSERVER_TYPE_BF16), "BF16");
  EXPECT_STREQ(TRITONSERVER_DataTypeString(static_cast<TRITONSERVER_DataType>(-1)), "<invalid>");
  EXPECT_EQ(TRITONSERVER_StringToDataType("BYTES"), TRITONSERVER_TYPE_BYTES);
  EXPECT_EQ(TRITONSERVER_StringToDataType("bytes"), TRITONSERVER_TYPE_INVALID);
  EXPECT_EQ(TRITONSERVER_DataTypeByteSize(TRITONSERVER_TYPE_FP64), 8u);
  EXPECT_STREQ(TRITONSERVER_MemoryTypeString(TRITONSERVER_MEMORY_CPU_PINNED), "CPU_PINNED");
  EXPECT_STREQ(TRITONSERVER_InstanceGroupKindString(TRITONSERVER_INSTANCEGROUPKIND_MODEL), "MODEL");
}

TEST(Log, RefusesAnUnknownLevel) {
  const base::Status status =
      TakeStatus(TRITONSERVER_LogMessage(static_cast<TRITONSERVER_LogLevel>(9), "file", 1, "text"));
  EXPECT_EQ(status.code(), base::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "unknown logging level '9'");
}

}  // namespace
}  // namespace nereid::abi_objects
