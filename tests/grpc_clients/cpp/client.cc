// SPDX-License-Identifier: Apache-2.0
// A grpc++ client of the server at argv[1]. Prints one line per check and exits with 1 at the first
// failure.
#include <chrono>
#include <iostream>
#include <string>
#include <thread>

#include <grpcpp/grpcpp.h>

#include "grpc_service.grpc.pb.h"

namespace {

using inference::GRPCInferenceService;
using inference::ModelInferRequest;
using inference::ModelInferResponse;

void Check(const std::string& name, bool ok, const std::string& detail = {}) {
  std::cout << (ok ? "ok " : "FAILED ") << name << ' ' << (ok ? "" : detail) << std::endl;
  if (!ok) std::exit(1);
}

ModelInferRequest Request(const std::string& model, const std::string& id,
                          const std::string& data) {
  ModelInferRequest request;
  request.set_model_name(model);
  request.set_id(id);
  auto& input = *request.add_inputs();
  input.set_name("INPUT0");
  input.set_datatype("FP32");
  if (model == "id_FP32") input.add_shape(1);
  input.add_shape(static_cast<int64_t>(data.size() / 4));
  request.add_raw_input_contents(data);
  return request;
}

void SetTimeout(grpc::ClientContext& context, std::chrono::milliseconds timeout) {
  context.set_deadline(std::chrono::system_clock::now() + timeout);
}

void CheckUnary(GRPCInferenceService::Stub& stub) {
  for (const auto compression : {GRPC_COMPRESS_NONE, GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext context;
    SetTimeout(context, std::chrono::seconds(20));
    context.set_compression_algorithm(compression);
    const std::string data(4096, 'd');
    ModelInferResponse reply;
    const grpc::Status status = stub.ModelInfer(&context, Request("id_FP32", "cpp", data), &reply);
    Check("unary with compression " + std::to_string(compression),
          status.ok() && reply.id() == "cpp" && reply.raw_output_contents(0) == data,
          status.error_message());
  }
  grpc::ClientContext context;
  std::string data(64 << 20, 'L');
  ModelInferResponse reply;
  const grpc::Status status = stub.ModelInfer(&context, Request("id_FP32", "", data), &reply);
  Check("64 MiB", status.ok() && reply.raw_output_contents(0) == data, status.error_message());
}

void CheckErrors(GRPCInferenceService::Stub& stub) {
  ModelInferResponse reply;
  {
    // While an earlier request is still executed, a deadline that cannot be met is refused with
    // UNAVAILABLE at once: the check below needs an idle instance.
    grpc::ClientContext context;
    const grpc::Status status = stub.ModelInfer(&context, Request("id_slow", "", "1234"), &reply);
    Check("slow model", status.ok(), status.error_message());
  }
  {
    grpc::ClientContext context;
    const grpc::Status status = stub.ModelInfer(&context, Request("nobody", "", "1234"), &reply);
    Check("unknown model", status.error_code() == grpc::StatusCode::NOT_FOUND,
          status.error_message());
  }
  {
    grpc::ClientContext context;
    SetTimeout(context, std::chrono::milliseconds(50));
    const grpc::Status status = stub.ModelInfer(&context, Request("id_slow", "", "1234"), &reply);
    Check("deadline", status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED,
          status.error_message());
  }
  grpc::ClientContext context;
  std::thread canceller([&] {
    // A response on the same connection shows that the server has received the earlier call.
    grpc::ClientContext other;
    inference::ServerLiveResponse live;
    stub.ServerLive(&other, {}, &live);
    context.TryCancel();
  });
  const grpc::Status status = stub.ModelInfer(&context, Request("id_slow", "", "1234"), &reply);
  canceller.join();
  Check("cancel", status.error_code() == grpc::StatusCode::CANCELLED, status.error_message());
}

void CheckStream(GRPCInferenceService::Stub& stub) {
  grpc::ClientContext context;
  const auto stream = stub.ModelStreamInfer(&context);
  constexpr int kCount = 200;
  const std::string data(64, 's');
  std::thread writer([&] {
    for (int i = 0; i < kCount; ++i) stream->Write(Request("id_FP32", std::to_string(i), data));
    stream->WritesDone();
  });
  inference::ModelStreamInferResponse reply;
  int seen = 0;
  bool in_order = true;
  while (stream->Read(&reply)) {
    in_order = in_order && reply.infer_response().id() == std::to_string(seen++) &&
               reply.infer_response().raw_output_contents(0) == data;
  }
  writer.join();
  const grpc::Status status = stream->Finish();
  Check("stream", status.ok() && in_order && seen == kCount, status.error_message());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  const auto stub = GRPCInferenceService::NewStub(
      grpc::CreateCustomChannel(argv[1], grpc::InsecureChannelCredentials(), arguments));
  CheckUnary(*stub);
  CheckErrors(*stub);
  CheckStream(*stub);
}
