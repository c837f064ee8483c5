// SPDX-License-Identifier: Apache-2.0
// The reflection messages are read and written by hand; the descriptors they carry are those
// compiled into the generated code. Field numbers: grpc/reflection/v1/reflection.proto of the gRPC
// project.
#include "grpc/reflection.h"

#include <set>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include "base/object_pool.h"
#include "grpc/wire_reader.h"
#include "grpc/wire_writer.h"
#include "grpc_service.pb.h"
#include "health.pb.h"

namespace nereid::grpc {
namespace {

using google::protobuf::FileDescriptor;

constexpr std::string_view kPaths[] = {
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
};
constexpr std::string_view kServices[] = {
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
    "inference.GRPCInferenceService",
};
constexpr uint64_t kNotFound = 5;
constexpr uint64_t kUnimplemented = 12;

std::string Field(uint32_t field, std::string_view bytes) {
  std::string out(BytesFieldSize(bytes.size()), '\0');
  WireWriter(reinterpret_cast<std::byte*>(out.data())).BytesField(field, bytes);
  return out;
}

std::string Number(uint32_t field, uint64_t value) {
  std::string out(1 + VarintSize(value), '\0');
  WireWriter(reinterpret_cast<std::byte*>(out.data())).VarintField(field, value);
  return out;
}

// ServerReflectionResponse.error_response
std::string ErrorReply(uint64_t code, std::string_view text) {
  return Field(7, Number(1, code) + Field(2, text));
}

void AddFiles(const FileDescriptor& file, std::set<const FileDescriptor*>& seen,
              std::vector<const FileDescriptor*>& files) {
  if (!seen.insert(&file).second) return;
  files.push_back(&file);
  for (int i = 0; i < file.dependency_count(); ++i) AddFiles(*file.dependency(i), seen, files);
}

// ServerReflectionResponse.file_descriptor_response: the file and what it imports.
std::string FileReply(const FileDescriptor& file) {
  std::set<const FileDescriptor*> seen;
  std::vector<const FileDescriptor*> files;
  AddFiles(file, seen, files);
  std::string reply;
  for (const FileDescriptor* const one : files) {
    google::protobuf::FileDescriptorProto proto;
    one->CopyTo(&proto);
    reply += Field(1, proto.SerializeAsString());
  }
  return Field(4, reply);
}

std::string ServicesReply() {
  std::string reply;
  for (const std::string_view service : kServices) reply += Field(1, Field(1, service));
  return Field(6, reply);
}

// Returns the descriptor of one of the served files.
const FileDescriptor* FindFile(std::string_view name) {
  for (const FileDescriptor* const root :
       {inference::ModelInferRequest::descriptor()->file(),
        ::grpc::health::v1::HealthCheckRequest::descriptor()->file()}) {
    std::set<const FileDescriptor*> seen;
    std::vector<const FileDescriptor*> files;
    AddFiles(*root, seen, files);
    for (const FileDescriptor* const file : files) {
      if (file->name() == name) return file;
    }
  }
  return nullptr;
}

const FileDescriptor* FindSymbol(std::string_view symbol) {
  const FileDescriptor* const file =
      google::protobuf::DescriptorPool::generated_pool()->FindFileContainingSymbol(
          std::string(symbol));
  return file != nullptr && FindFile(file->name()) == file ? file : nullptr;
}

}  // namespace

bool IsReflectionPath(std::string_view path) { return path == kPaths[0] || path == kPaths[1]; }

std::optional<std::string> Reflect(std::string_view request) {
  WireReader reader(request);
  WireTag tag;
  std::string_view host;
  std::string_view argument;
  uint32_t kind = 0;  // the member of the message_request oneof
  while (reader.Next(&tag)) {
    if (tag.Is(1, WireType::kBytes)) {
      host = reader.ReadText();
    } else if (tag.type == WireType::kBytes && tag.field >= 3 && tag.field <= 7) {
      kind = tag.field;
      argument = kind == 5 ? reader.ReadBytes() : reader.ReadText();
    } else {
      reader.Skip(tag);
    }
  }
  if (reader.failed()) return std::nullopt;
  std::string reply = host.empty() ? std::string() : Field(1, host);
  reply += Field(2, request);
  if (kind == 3 || kind == 4) {
    const FileDescriptor* const file = kind == 3 ? FindFile(argument) : FindSymbol(argument);
    reply += file != nullptr
                 ? FileReply(*file)
                 : ErrorReply(kNotFound, (kind == 3 ? "File not found: " : "Symbol not found: ") +
                                             std::string(argument));
  } else if (kind == 7) {
    reply += ServicesReply();
  } else if (kind == 5 || kind == 6) {
    reply += ErrorReply(kNotFound, "Type has no extensions");
  } else {
    reply += ErrorReply(kUnimplemented, "Unknown reflection request");
  }
  return reply;
}

http2::GrpcCallEvents* ReflectionCall::Start(http2::GrpcCallRef call) {
  ReflectionCall* const self = base::ObjectPool<ReflectionCall>::Take();
  self->call_ = std::move(call);
  return self;
}

void ReflectionCall::OnMessage(base::BufferRef, std::string_view message) {
  const std::optional<std::string> reply = Reflect(message);
  call_->Credit(message.size());
  if (!reply) return call_->Finish(http2::GrpcStatus::kInternal, "Unable to parse request");
  http2::GrpcMessagePtr out = http2::GrpcMessage::Create();
  if (!out->Append(*reply)) return call_->Finish(http2::GrpcStatus::kResourceExhausted, {});
  call_->Send(std::move(out));
}

void ReflectionCall::OnHalfClose() { call_->Finish(http2::GrpcStatus::kOk, {}); }

void ReflectionCall::OnDone() { base::ObjectPool<ReflectionCall>::Give(this); }

}  // namespace nereid::grpc
