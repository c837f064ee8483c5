// SPDX-License-Identifier: Apache-2.0
#include "grpc/reflection.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include "grpc/wire_reader.h"
#include "grpc/wire_writer.h"

namespace nereid::grpc {
namespace {

using testing::ElementsAre;

// Members of ServerReflectionRequest.
enum Question : uint32_t { kHost = 1, kFile = 3, kSymbol = 4, kExtension = 5, kList = 7 };
// Members of ServerReflectionResponse.
enum ReplyField : uint32_t { kOriginal = 2, kFiles = 4, kServices = 6, kError = 7 };

std::string Ask(Question question, std::string_view argument) {
  std::string request(BytesFieldSize(argument.size()), '\0');
  WireWriter(reinterpret_cast<std::byte*>(request.data())).BytesField(question, argument);
  return request;
}

// Returns the values of all bytes fields with this number.
std::vector<std::string> Fields(std::string_view message, uint32_t field) {
  WireReader reader(message);
  std::vector<std::string> values;
  WireTag tag;
  while (reader.Next(&tag)) {
    if (tag.Is(field, WireType::kBytes)) {
      values.emplace_back(reader.ReadBytes());
    } else {
      reader.Skip(tag);
    }
  }
  EXPECT_FALSE(reader.failed());
  return values;
}

// Returns the names of the files in a reply, whose descriptors must fit together.
std::vector<std::string> FilesIn(std::string_view reply) {
  std::vector<google::protobuf::FileDescriptorProto> files;
  for (const std::string& file_reply : Fields(reply, kFiles)) {
    for (const std::string& bytes : Fields(file_reply, 1)) {
      EXPECT_TRUE(files.emplace_back().ParseFromString(bytes));
    }
  }
  // Each file precedes those that it imports.
  google::protobuf::DescriptorPool pool;
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    EXPECT_NE(pool.BuildFile(*file), nullptr) << file->name();
  }
  std::vector<std::string> names;
  for (const auto& file : files) names.push_back(file.name());
  return names;
}

uint64_t ErrorCode(std::string_view reply) {
  const std::vector<std::string> errors = Fields(reply, kError);
  if (errors.size() != 1) return 0;
  WireReader reader(errors[0]);
  WireTag tag;
  return reader.Next(&tag) && tag.Is(1, WireType::kVarint) ? reader.ReadVarint() : 0;
}

TEST(Reflection, IsServedUnderBothOfItsNames) {
  EXPECT_TRUE(IsReflectionPath("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"));
  EXPECT_TRUE(IsReflectionPath("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"));
  EXPECT_FALSE(IsReflectionPath("/grpc.reflection.v1.ServerReflection/"));
}

TEST(Reflection, ListsTheServices) {
  const std::optional<std::string> reply = Reflect(Ask(kList, ""));
  ASSERT_TRUE(reply.has_value());
  std::vector<std::string> names;
  for (const std::string& list : Fields(*reply, kServices)) {
    for (const std::string& service : Fields(list, 1)) {
      for (std::string& name : Fields(service, 1)) names.push_back(std::move(name));
    }
  }
  EXPECT_THAT(names, ElementsAre("grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
                                 "grpc.reflection.v1alpha.ServerReflection",
                                 "inference.GRPCInferenceService"));
}

TEST(Reflection, GivesTheFileOfASymbolWithAllThatItImports) {
  const std::optional<std::string> reply =
      Reflect(Ask(kSymbol, "inference.GRPCInferenceService.ModelInfer"));
  ASSERT_TRUE(reply.has_value());
  EXPECT_THAT(FilesIn(*reply), ElementsAre("grpc_service.proto", "model_config.proto"));
  EXPECT_THAT(FilesIn(*Reflect(Ask(kSymbol, "grpc.health.v1.Health"))),
              ElementsAre("health.proto"));
}

TEST(Reflection, GivesAFileByItsName) {
  EXPECT_THAT(FilesIn(*Reflect(Ask(kFile, "model_config.proto"))),
              ElementsAre("model_config.proto"));
}

TEST(Reflection, DoesNotDescribeOtherServices) {
  constexpr uint64_t kNotFound = 5;
  EXPECT_EQ(ErrorCode(*Reflect(Ask(kSymbol, "inference.Nothing"))), kNotFound);
  EXPECT_EQ(ErrorCode(*Reflect(Ask(kFile, "nothing.proto"))), kNotFound);
  // Linked into the program, but no part of the protocol.
  EXPECT_EQ(ErrorCode(*Reflect(Ask(kSymbol, "google.protobuf.FileDescriptorProto"))), kNotFound);
  EXPECT_EQ(ErrorCode(*Reflect(Ask(kExtension, ""))), kNotFound);
}

TEST(Reflection, RepeatsTheRequestAndItsHost) {
  const std::string request = Ask(kHost, "example.com") + Ask(kList, "");
  const std::optional<std::string> reply = Reflect(request);
  ASSERT_TRUE(reply.has_value());
  EXPECT_THAT(Fields(*reply, kHost), ElementsAre("example.com"));
  EXPECT_THAT(Fields(*reply, kOriginal), ElementsAre(request));
}

TEST(Reflection, RefusesAQuestionThatItDoesNotKnow) {
  constexpr uint64_t kUnimplemented = 12;
  EXPECT_EQ(ErrorCode(*Reflect("")), kUnimplemented);
  EXPECT_EQ(Reflect("\x1a\x7f"), std::nullopt);
}

}  // namespace
}  // namespace nereid::grpc
