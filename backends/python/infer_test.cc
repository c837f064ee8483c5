// SPDX-License-Identifier: Apache-2.0
// Requests of a model to other models. The test plays the worker on one side and the server on the
// other.
#include "python_backend/infer.h"

#include "backend_kit/testing/fake_host.h"
#include "python_backend/testing/fake_server.h"
#include "python_backend/testing/idle_worker.h"
#include "python_backend/testing/worker_reader.h"

namespace nereid::python {
namespace {

// A response as the worker sees it.
struct SeenResponse {
  ReplyRecord record;
  std::vector<SeenInput> tensors;
  std::string text;
};

class InferTest : public IdleWorkerTest {
 protected:
  InferTest() { server_.ready = {"other", "stream"}; }
  ~InferTest() override { EXPECT_EQ(Fakes().requests, left_) << "a request was not deleted"; }

  // Encodes a request for a model, with an input of four bytes.
  std::string Request(const std::string& model, bool is_stream = false,
                      InferRecord record = {.model_version = -1}) {
    record.is_stream = is_stream;
    record.inputs = 1;
    record.outputs = 1;
    std::string bytes;
    AppendBytes(bytes, record);
    AppendSized(bytes, model);
    AppendSized(bytes, "id-1");
    AppendSized(bytes, "sequence");
    AppendSized(bytes, R"({"speed": 7, "loud": true, "language": "eo"})");
    const uint64_t at = end_.Put("abcd") + sizeof(BlockHeader);
    AppendTensor(bytes, "IN", TRITONSERVER_TYPE_INT8, {2, 2}, at, 4);
    AppendSized(bytes, "OUT");
    return bytes;
  }
  CallBlock Infer(const std::string& payload) {
    const CallBlock call = NewCall(Call::kInfer, payload);
    Reader reader(call.payload);
    const auto record = reader.Read<InferRecord>();
    inferences_.Infer(worker_, call, record, reader, nullptr);
    return call;
  }
  // Starts a stream and returns its number.
  uint64_t StartStream() {
    const std::string reply = AwaitReply(Infer(Request("stream", true)));
    EXPECT_EQ(reply.size(), 12u) << reply;
    uint64_t number = 0;
    std::memcpy(&number, reply.data() + 4, sizeof(number));
    return number;
  }
  CallBlock Next(uint64_t stream) {
    const CallBlock call = NewCall(Call::kStreamNext, "");
    inferences_.Next(worker_, call, stream);
    return call;
  }
  SeenResponse Read(const CallBlock& call) const {
    EXPECT_TRUE(IsReplied(call));
    const Region& region = worker_->region();
    const char* at = region.At(call.header->reply_offset + sizeof(BlockHeader));
    const char* const end = at + call.header->reply_size;
    SeenResponse seen;
    const auto take = [&at](void* to, size_t size) {
      std::memcpy(to, at, size);
      at += size;
    };
    take(&seen.record, sizeof(seen.record));
    const bool has_tensors = seen.record.kind == static_cast<uint32_t>(ResponseKind::kTensors);
    for (uint32_t i = 0; has_tensors && i < seen.record.tensors; ++i) {
      TensorRecord tensor;
      take(&tensor, sizeof(tensor));
      SeenInput& output = seen.tensors.emplace_back();
      output.datatype = tensor.datatype;
      output.shape.resize(tensor.dims);
      take(output.shape.data(), tensor.dims * sizeof(int64_t));
      output.name.assign(at, tensor.name_size);
      at += Padded(tensor.name_size);
      output.bytes.assign(region.At(tensor.data), tensor.byte_size);
    }
    seen.text.assign(at, end);
    return seen;
  }
  TRITONSERVER_InferenceRequest* Sent() {
    EXPECT_FALSE(server_.sent.empty());
    return server_.sent.back();
  }

  const int left_ = Fakes().requests;
  TRITONSERVER_Server server_;
  Inferences inferences_{&server_};
};

TEST_F(InferTest, TheServerGetsWhatTheModelAsksFor) {
  const CallBlock call = Infer(Request("other", false,
                                       {.model_version = 1,
                                        .correlation_id = 5,
                                        .timeout_us = 77,
                                        .flags = 3,
                                        .has_correlation_text = 1}));
  EXPECT_FALSE(IsReplied(call));
  TRITONSERVER_InferenceRequest& request = *Sent();
  EXPECT_EQ(request.model, "other");
  EXPECT_EQ(request.version, 1);
  EXPECT_EQ(request.id, "id-1");
  EXPECT_EQ(request.correlation_text, "sequence");
  EXPECT_EQ(request.flags, 3u);
  EXPECT_EQ(request.timeout_us, 77u);
  EXPECT_EQ(request.parameters, (std::map<std::string, std::string>{
                                    {"speed", "7"}, {"loud", "true"}, {"language", "eo"}}));
  ASSERT_EQ(request.inputs.size(), 1u);
  EXPECT_EQ(request.inputs[0].name, "IN");
  EXPECT_EQ(request.inputs[0].shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(request.inputs[0].bytes, "abcd");
  EXPECT_EQ(request.wanted, std::vector<std::string>{"OUT"});
  Respond(&request, {}, true);
  HandBack(&request);
}

TEST_F(InferTest, TheModelGetsTensorsAndParametersOfTheResponse) {
  const CallBlock call = Infer(Request("other"));
  Respond(
      Sent(),
      {{"OUT", TRITONSERVER_TYPE_INT16, {3}, "abcdef"}, {"EMPTY", TRITONSERVER_TYPE_FP32, {0}, ""}},
      true, {{"speed", 9}});
  HandBack(Sent());
  EXPECT_TRUE(AwaitReply(call).starts_with("ok: "));
  const SeenResponse seen = Read(call);
  EXPECT_EQ(seen.record.is_last, 1u);
  ASSERT_EQ(seen.tensors.size(), 2u);
  EXPECT_EQ(seen.tensors[0].name, "OUT");
  EXPECT_EQ(seen.tensors[0].datatype, TRITONSERVER_TYPE_INT16);
  EXPECT_EQ(seen.tensors[0].shape, std::vector<int64_t>{3});
  EXPECT_EQ(seen.tensors[0].bytes, "abcdef");
  EXPECT_EQ(seen.tensors[1].bytes, "");
  EXPECT_EQ(seen.text, R"({"speed":9})");
}

TEST_F(InferTest, TheModelGetsTheErrorOfTheOtherModel) {
  const CallBlock call = Infer(Request("other"));
  HandBack(Sent());
  RespondWithError(Sent(), "the shape is wrong");
  const SeenResponse seen = Read(call);
  EXPECT_EQ(seen.record.kind, static_cast<uint32_t>(ResponseKind::kError));
  EXPECT_EQ(seen.record.tensors, static_cast<uint32_t>(TRITONSERVER_ERROR_INVALID_ARG));
  EXPECT_EQ(seen.text, "the shape is wrong");
}

TEST_F(InferTest, AnEndWithoutTheOnlyResponseIsAnError) {
  const CallBlock call = Infer(Request("other"));
  HandBack(Sent());
  End(Sent());
  EXPECT_EQ(Read(call).text, "Unexpected empty response.");
}

TEST_F(InferTest, ARequestThatTheServerRefusesIsAnErrorAtOnce) {
  EXPECT_EQ(AwaitReply(Infer(Request("none"))),
            "error: Model none - Error when running inference: Failed for execute the inference "
            "request. Model 'none' is not ready.");
  server_.refusal = "the queue is full";
  EXPECT_EQ(AwaitReply(Infer(Request("other"))),
            "error: Model other - Error when running inference: the queue is full");
}

TEST_F(InferTest, ARequestToADecoupledModelOpensAStream) {
  server_.decoupled = {"stream"};
  EXPECT_TRUE(AwaitReply(Infer(Request("stream")))
                  .starts_with("error: Model stream - Error when running inference: Model stream "
                               "is using the decoupled."));
  const uint64_t stream = StartStream();
  End(Sent());
  HandBack(Sent());
  inferences_.Close(stream);
}

TEST_F(InferTest, AServerThatLetsNoBackendCallItSaysSo) {
  Inferences none(nullptr);
  const CallBlock call = NewCall(Call::kInfer, Request("other"));
  Reader reader(call.payload);
  const auto record = reader.Read<InferRecord>();
  none.Infer(worker_, call, record, reader, nullptr);
  EXPECT_EQ(AwaitReply(call),
            "error: Model other - Error when running inference: the server does not let backends "
            "call it");
}

TEST_F(InferTest, ARequestThatIsCutShortEndsTheWorker) {
  const std::string whole = Request("other");
  Infer(whole.substr(0, whole.size() - 9));
  EXPECT_EQ(Condemned(), "it made a request that cannot be read");
  EXPECT_TRUE(server_.sent.empty());
}

TEST_F(InferTest, ARequestForMoreTensorsThanThereAreEndsTheWorker) {
  std::string bytes = Request("other");
  const uint32_t many = kMaxTensors + 1;
  std::memcpy(bytes.data() + offsetof(InferRecord, inputs), &many, sizeof(many));
  Infer(bytes);
  EXPECT_EQ(Condemned(), "it made a request that cannot be read");
}

// --- Streams ---

TEST_F(InferTest, AStreamGivesItsResponsesInTheirOrder) {
  const uint64_t stream = StartStream();
  TRITONSERVER_InferenceRequest* const request = Sent();
  Respond(request, {{"OUT", TRITONSERVER_TYPE_INT8, {1}, "a"}}, false);
  Respond(request, {{"OUT", TRITONSERVER_TYPE_INT8, {1}, "b"}}, false);
  const SeenResponse first = Read(Next(stream));
  EXPECT_EQ(first.tensors[0].bytes, "a");
  EXPECT_EQ(first.record.is_last, 0u);
  EXPECT_EQ(Read(Next(stream)).tensors[0].bytes, "b");
  // The worker waits for the next one.
  const CallBlock waiting = Next(stream);
  EXPECT_FALSE(IsReplied(waiting));
  HandBack(request);
  End(request);
  const SeenResponse last = Read(waiting);
  EXPECT_EQ(last.record.kind, static_cast<uint32_t>(ResponseKind::kNone));
  EXPECT_EQ(last.record.is_last, 1u);
  inferences_.Close(stream);
}

TEST_F(InferTest, AStreamThatIsClosedDropsWhatStillComes) {
  const uint64_t stream = StartStream();
  TRITONSERVER_InferenceRequest* const request = Sent();
  Respond(request, {{"OUT", TRITONSERVER_TYPE_INT8, {1}, "a"}}, false);
  inferences_.Close(stream);
  Respond(request, {{"OUT", TRITONSERVER_TYPE_INT8, {1}, "b"}}, true);
  HandBack(request);
  EXPECT_EQ(AwaitReply(Next(stream)), "error: the responses are gone");
}

TEST_F(InferTest, ResponsesThatNobodyReadsLeaveNoMemoryBehind) {
  constexpr size_t kSize = 1 << 20;
  const uint64_t stream = StartStream();
  TRITONSERVER_InferenceRequest* const request = Sent();
  const auto respond = [&](bool is_final) {
    Respond(request, {{"OUT", TRITONSERVER_TYPE_INT8, {kSize}, std::string(kSize, 'a')}}, is_final);
  };
  for (int i = 0; i < 8; ++i) respond(false);
  inferences_.Close(stream);
  for (int i = 0; i < 8; ++i) respond(i == 7);
  HandBack(request);
  EXPECT_LT(worker_->blocks().busy_bytes(), 4 * kSize);
}

TEST_F(InferTest, ARequestIsReleasedWhenTheServerReadsItNoMore) {
  const CallBlock call = Infer(Request("other"));
  Respond(Sent(), {}, true);
  EXPECT_TRUE(IsReplied(call));
  EXPECT_EQ(call.header->is_released, 0u);
  HandBack(Sent());
  EXPECT_EQ(call.header->is_released, 1u);

  const CallBlock stream = Infer(Request("stream", true));
  inferences_.Close(1);
  EXPECT_EQ(stream.header->is_released, 0u);
  End(Sent());
  HandBack(Sent());
  EXPECT_EQ(stream.header->is_released, 1u);

  const CallBlock refused = Infer(Request("none"));
  EXPECT_EQ(refused.header->is_released, 1u);
}

TEST_F(InferTest, AStreamIsAskedOnceAtATime) {
  const uint64_t stream = StartStream();
  const CallBlock first = Next(stream);
  const CallBlock second = Next(stream);
  EXPECT_EQ(AwaitReply(first), "error: asked for twice");
  EXPECT_FALSE(IsReplied(second));
  End(Sent());
  HandBack(Sent());
  EXPECT_TRUE(IsReplied(second));
  inferences_.Close(stream);
}

TEST_F(InferTest, AStreamMayBeCancelledAndOneThatThereIsNotHarmsNothing) {
  const uint64_t stream = StartStream();
  inferences_.Cancel(stream + 1);
  inferences_.Close(stream + 1);
  EXPECT_FALSE(Sent()->parameters.contains("cancelled"));
  inferences_.Cancel(stream);
  EXPECT_TRUE(Sent()->parameters.contains("cancelled"));
  End(Sent());
  HandBack(Sent());
  inferences_.Close(stream);
}

// The server still reads the inputs and may call back after the worker's calls are destroyed.
TEST_F(InferTest, ARequestOutlivesTheCallsOfItsWorker) {
  TRITONSERVER_InferenceRequest* request = nullptr;
  {
    Inferences others(&server_);
    const CallBlock call = NewCall(Call::kInfer, Request("stream", true));
    Reader reader(call.payload);
    const auto record = reader.Read<InferRecord>();
    others.Infer(worker_, call, record, reader, nullptr);
    request = Sent();
  }
  Respond(request, {{"OUT", TRITONSERVER_TYPE_INT8, {1}, "a"}}, true);
  HandBack(request);
}

}  // namespace
}  // namespace nereid::python
