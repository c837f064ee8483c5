// SPDX-License-Identifier: Apache-2.0
#include "core/request.h"

#include <vector>

#include <gtest/gtest.h>

#include "core/forwarding_sink.h"
#include "core/model.h"
#include "core/open_requests.h"
#include "core/release_scope.h"
#include "core/response.h"
#include "core/testing/fakes.h"

namespace nereid::core {
namespace {

// Records the calls that it receives, in order.
class NotingSink final : public ResponseSink {
 public:
  void OnResponseCreated(const Request&) override { heard.emplace_back("created"); }
  void Send(ResponsePtr response, bool is_final) override {
    heard.push_back((response == nullptr      ? "nothing"
                     : response->error().ok() ? "response"
                                              : std::string(response->error().message())) +
                    (is_final ? ", final" : ""));
  }
  void OnRequestReleased(Request& request) override {
    heard.push_back("released with " + std::to_string(request.inputs.size()) + " inputs");
  }
  void OnRequestGone() override { heard.emplace_back("gone"); }

  std::vector<std::string> heard;
};

using Heard = std::vector<std::string>;

class RequestTest : public testing::Test {
 protected:
  RequestPtr Make() {
    RequestPtr request = Request::Create(sink_);
    EXPECT_TRUE(model_->TryPin());
    request->model = ModelHandle(*model_);
    return request;
  }

  NotingSink sink_;
  const std::unique_ptr<Model> model_ = MakeFakeModel(8, {2});
};

TEST_F(RequestTest, IsGoneOnceItIsReleasedAndItsLastResponseIsGone) {
  RequestPtr request = Make();
  ResponsePtr response = Response::Create(*request);
  request.reset();
  EXPECT_EQ(sink_.heard, (Heard{"created", "released with 0 inputs"}));
  EXPECT_EQ(model_->pin_count(), 1u);
  response.reset();
  EXPECT_EQ(sink_.heard.back(), "gone");
  EXPECT_EQ(model_->pin_count(), 0u);
}

TEST_F(RequestTest, IsKeptByAReferenceWithoutTheRightToProcessIt) {
  RequestPtr request = Make();
  request->id = request->arena().Copy("an id");
  RequestRef reference(*request);
  request.reset();
  EXPECT_EQ(reference->id, "an id");
  EXPECT_EQ(sink_.heard, (Heard{"released with 0 inputs"}));
  RequestRef moved = std::move(reference);
  EXPECT_FALSE(reference);  // NOLINT(bugprone-use-after-move): what remains is defined
  moved.Reset();
  EXPECT_EQ(sink_.heard.back(), "gone");
}

TEST_F(RequestTest, CompletesOnceWhateverFollows) {
  RequestPtr request = Make();
  EXPECT_TRUE(request->MarkCompleted());
  EXPECT_FALSE(request->MarkCompleted());
  CompleteWithError(std::move(request), base::InternalError("too late"));
  EXPECT_EQ(sink_.heard, (Heard{"created", "released with 0 inputs", "gone"}));
}

TEST_F(RequestTest, NamesItselfInItsErrors) {
  RequestPtr request = Make();
  request->id = "7";
  CompleteWithPrefixedError(std::move(request), base::UnavailableError("queue is full"));
  EXPECT_EQ(sink_.heard.at(1), "released with 0 inputs");
  EXPECT_EQ(sink_.heard.at(2), "[request id: 7] queue is full, final");
  sink_.heard.clear();
  CompleteWithPrefixedError(Make(), base::UnavailableError("queue is full"));
  EXPECT_EQ(sink_.heard.at(2), "[request id: <id_unknown>] queue is full, final");
}

TEST_F(RequestTest, FindsItsInputsAndDropsThoseOfTheServer) {
  RequestPtr request = Make();
  const float start = 1;
  const int64_t shape[] = {1};
  request->AddInput("INPUT0", tensor::DataType::kFp32);
  request->AddServerInput("START", tensor::DataType::kFp32, shape,
                          {.data = reinterpret_cast<const std::byte*>(&start), .size = 4});
  ASSERT_NE(request->FindInput("START"), nullptr);
  EXPECT_EQ(request->FindInput("START")->byte_size, 4u);
  EXPECT_EQ(request->FindInput("START")->owner, request.get());
  EXPECT_EQ(request->FindInput("STAR"), nullptr);
  request->RemoveServerInputs();
  EXPECT_EQ(request->FindInput("START"), nullptr);
  EXPECT_NE(request->FindInput("INPUT0"), nullptr);
}

TEST_F(RequestTest, KeepsChunksInTheirOrder) {
  RequestPtr request = Make();
  RequestInput& input = request->AddInput("INPUT0", tensor::DataType::kBytes);
  EXPECT_EQ(input.chunk_count(), 0u);
  const std::byte data[3] = {};
  for (size_t i = 0; i < 3; ++i) input.Append({.data = data + i, .size = i});
  ASSERT_EQ(input.chunk_count(), 3u);
  EXPECT_EQ(input.byte_size, 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(input.chunk(i).data, data + i);
}

TEST_F(RequestTest, ReleasesItsBuffersWithItself) {
  RequestPtr request = Make();
  base::BufferRef buffer = base::AcquireBuffer(64);
  const base::BufferRef watched = buffer;
  request->Hold(std::move(buffer));
  const RequestRef reference(*request);
  EXPECT_FALSE(watched.unique());
  request.reset();
  EXPECT_TRUE(watched.unique());
}

// Pools reuse memory, so nothing of the previous request may be left in it.
TEST_F(RequestTest, BeginsWithNothingOfAnEarlierOne) {
  {
    RequestPtr request = Make();
    request->id = "7";
    request->AddInput("INPUT0", tensor::DataType::kFp32).Append({.size = 1});
    request->outputs.push_back({.name = "OUTPUT0"});
    request->parameters.push_back({.name = "p", .value = int64_t{1}});
    request->flags = kSequenceStart;
    request->correlation_id = std::string_view("s");
    request->priority = request->timeout_us = request->expires_at_ns = 9;
    request->batch_size = 3;
    request->is_padding = request->clears_outputs = request->has_c_strings = true;
    request->has_gpu_inputs = true;
    request->is_counted = false;
    request->Cancel();
    request->MarkCompleted();
    request->MarkQueued();
  }
  const RequestPtr request = Request::Create(sink_);
  EXPECT_EQ(request->id, "");
  EXPECT_FALSE(request->model);
  EXPECT_TRUE(request->inputs.empty() && request->outputs.empty() && request->parameters.empty());
  EXPECT_EQ(request->flags, 0u);
  EXPECT_EQ(request->correlation_id, CorrelationId(uint64_t{0}));
  EXPECT_EQ(request->priority + request->timeout_us + request->expires_at_ns, 0u);
  EXPECT_EQ(request->batch_count(), 1u);
  EXPECT_FALSE(request->is_padding || request->clears_outputs || request->has_c_strings);
  EXPECT_FALSE(request->has_gpu_inputs);
  EXPECT_TRUE(request->is_counted);
  EXPECT_FALSE(request->is_cancelled() || request->is_completed());
  EXPECT_EQ(request->times.queue_start_ns, 0u);
}

TEST_F(RequestTest, KeepsTheTimeAtWhichItsWaitBegan) {
  const RequestPtr request = Make();
  request->times.queue_start_ns = 5;
  EXPECT_EQ(request->MarkQueued(), 5u);
  const RequestPtr other = Make();
  EXPECT_GT(other->MarkQueued(), 0u);
  EXPECT_EQ(other->times.queue_start_ns, other->MarkQueued());
}

TEST_F(RequestTest, RecordsTheTimeOfTheFirstResponseIfEnabled) {
  model_->statistics().Observe({.first_response_bounds_ms = std::vector<double>{1e9}});
  RequestPtr request = Make();
  request->times.request_start_ns = base::NowNs();
  const ResponsePtr response = Response::Create(*request);
  request->NoteResponse(*response);
  request->NoteResponse(*response);
  const auto count = [&] {
    return model_->statistics().observers()->first_response->Counts().at(0);
  };
  EXPECT_EQ(count(), 1u);
  RequestPtr warm_up = Make();
  warm_up->is_counted = false;
  warm_up->NoteResponse(*response);
  EXPECT_EQ(count(), 1u);
}

// --- The instance whose backend has it ---------------------------------------------------------

// Remembers how often the model was pinned when its backend had no request any more.
class PinWatcher final : public OpenRequests::Watcher {
 public:
  explicit PinWatcher(const Model& model) : model_(model) {}
  void OnNoneOpen() override { pins.push_back(model_.pin_count()); }

  std::vector<uint64_t> pins;

 private:
  const Model& model_;
};

class OpenRequestTest : public RequestTest {
 protected:
  OpenRequestTest() { open_.Watch(); }
  // Makes a request that an instance has taken.
  RequestPtr MakeOpen() {
    RequestPtr request = Make();
    request->open_in = &open_;
    open_.Add(1);
    return request;
  }

  PinWatcher watcher_{*model_};
  OpenRequests open_{watcher_};
};

TEST_F(OpenRequestTest, LeavesTheBackendThatReleasesItAfterItsLastResponse) {
  RequestPtr request = MakeOpen();
  const ResponsePtr kept_by_client = Response::Create(*request);
  EXPECT_TRUE(request->MarkCompleted());
  EXPECT_FALSE(open_.empty());
  request.reset();
  EXPECT_TRUE(open_.empty()) << "though the client has not read the response";
  EXPECT_EQ(watcher_.pins, std::vector<uint64_t>{1});
}

TEST_F(OpenRequestTest, LeavesTheBackendThatReleasesItFirstWhenItIsGone) {
  RequestPtr request = MakeOpen();
  RequestRef reference(*request);
  request.reset();
  EXPECT_FALSE(open_.empty());
  EXPECT_TRUE(reference->MarkCompleted());
  EXPECT_FALSE(open_.empty());
  reference.Reset();
  EXPECT_TRUE(open_.empty());
  EXPECT_EQ(watcher_.pins, std::vector<uint64_t>{1}) << "what is told must still exist";
  EXPECT_EQ(model_->pin_count(), 0u);
  EXPECT_EQ(sink_.heard.back(), "gone");
}

TEST_F(OpenRequestTest, LeavesItsBackendOnceHoweverItEnds) {
  CompleteWithError(MakeOpen(), base::InternalError("why"));
  MakeOpen().reset();
  {
    std::vector<RequestRef> kept;
    const ReleaseScope scope(kept);
    CompleteWithError(MakeOpen(), base::InternalError("why"));
    EXPECT_TRUE(open_.empty()) << "though the scope keeps its memory";
  }
  EXPECT_TRUE(open_.empty());
  EXPECT_EQ(watcher_.pins.size(), 3u);
  Make().reset();
  EXPECT_EQ(watcher_.pins.size(), 3u) << "no instance had that one";
}

// --- Scopes in which released requests stay readable -------------------------------------------

TEST_F(RequestTest, StaysReadableInTheScopeInWhichItWasReleased) {
  std::vector<RequestRef> kept;
  RequestPtr request = Make();
  Request* const address = request.get();
  RequestPtr waiting = Make();
  {
    const ReleaseScope scope(kept);
    request.reset();
    EXPECT_EQ(sink_.heard, (Heard{"released with 0 inputs"}));
    EXPECT_TRUE(ReleaseScope::IsReleased(*address));
    EXPECT_TRUE(scope.Holds(address));
    EXPECT_FALSE(scope.Holds(waiting.get()));
    EXPECT_FALSE(ReleaseScope::IsReleased(*waiting));
  }
  EXPECT_EQ(sink_.heard.back(), "gone");
  EXPECT_TRUE(kept.empty());
}

TEST_F(RequestTest, BelongsToTheInnermostScope) {
  std::vector<RequestRef> outer_kept, inner_kept;
  const ReleaseScope outer(outer_kept);
  {
    const ReleaseScope inner(inner_kept);
    EXPECT_EQ(ReleaseScope::Current(), &inner);
    Make().reset();
    EXPECT_EQ(inner_kept.size(), 1u);
  }
  EXPECT_EQ(ReleaseScope::Current(), &outer);
  EXPECT_EQ(sink_.heard.back(), "gone");
  EXPECT_TRUE(outer_kept.empty());
}

// --- Sinks in front of a request's sink --------------------------------------------------------

// Holds back responses that are not final.
class LastOnly final : public ForwardingSink {
 public:
  explicit LastOnly(bool& is_retired) : is_retired_(is_retired) {}
  void Send(ResponsePtr response, bool is_final) override {
    if (is_final) ForwardingSink::Send(std::move(response), true);
  }

 private:
  void Retire() override {
    is_retired_ = true;
    delete this;
  }
  bool& is_retired_;
};

TEST_F(RequestTest, IsSeenFirstByTheSinkThatWasPutBeforeItsOwn) {
  bool is_retired = false;
  RequestPtr request = Make();
  (new LastOnly(is_retired))->PutBefore(*request);
  request->sink().Send(Response::Create(*request), false);
  CompleteWithError(std::move(request), base::InternalError("why"));
  EXPECT_EQ(sink_.heard,
            (Heard{"created", "created", "released with 0 inputs", "why, final", "gone"}));
  EXPECT_TRUE(is_retired);
}

}  // namespace
}  // namespace nereid::core
