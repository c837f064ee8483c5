// SPDX-License-Identifier: Apache-2.0
#include "python_backend/calls.h"

#include <future>
#include <random>

#include "backend_kit/testing/fake_host.h"
#include "python_backend/testing/fake_server.h"
#include "python_backend/testing/idle_worker.h"
#include "python_backend/testing/worker_reader.h"

namespace nereid::python {
namespace {

template <typename Value>
std::string Bytes(const Value& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string Sized(const std::string& text) {
  std::string bytes;
  AppendSized(bytes, text);
  return bytes;
}

class CallsTest : public IdleWorkerTest {
 protected:
  ~CallsTest() override { context_.server = nullptr; }

  CallBlock Handle(Call kind, const std::string& payload) {
    const CallBlock call = NewCall(kind, payload);
    calls_.Handle(worker_, call);
    return call;
  }
  std::string ReplyTo(Call kind, const std::string& payload) {
    return AwaitReply(Handle(kind, payload));
  }
  // Reads the number in the reply to a call, in the form in which the worker sends it again.
  std::string NumberOf(const std::string& reply) {
    EXPECT_TRUE(reply.starts_with("ok: ")) << reply;
    EXPECT_EQ(reply.size(), 12u);
    return reply.substr(4);
  }

  TRITONSERVER_Server server_;
  CallContext context_{.name = "m_0", .server = &server_};
  const std::shared_ptr<PendingTable> pending_ = std::make_shared<PendingTable>();
  Calls calls_{context_, pending_};
};

TEST_F(CallsTest, LogsWhatAModelLogs) {
  backend::TakeLog();
  const CallBlock call = Handle(Call::kLog, Bytes(uint32_t{1}) + Bytes(uint32_t{17}) +
                                                Sized("model.py") + Sized("it is late"));
  EXPECT_EQ(backend::TakeLog(), std::vector<std::string>{"model.py:17 it is late"});
  EXPECT_TRUE(IsReleased(call));
}

TEST_F(CallsTest, LogsNothingForALevelThatThereIsNotNorForALineCutShort) {
  backend::TakeLog();
  Handle(Call::kLog, Bytes(uint32_t{99}) + Bytes(uint32_t{1}) + Sized("f") + Sized("text"));
  Handle(Call::kLog, Bytes(uint32_t{1}) + Bytes(uint32_t{1}) + Sized("f") + Bytes(uint64_t{50}));
  EXPECT_TRUE(backend::TakeLog().empty());
  EXPECT_EQ(Condemned(), "");
}

// --- Responses through senders ---

class SendTest : public CallsTest {
 protected:
  SendTest()
      : handle_(pending_->Add(
            std::make_shared<Pending>(&request_, true, rules_, context_.slow_clients))) {}

  std::string Send(bool is_final, const std::string& response) {
    return Bytes(SendRecord{
               .handle = handle_, .is_final = is_final, .has_response = !response.empty()}) +
           response;
  }
  static std::string Failure(const std::string& text) {
    std::string bytes = Bytes(ResponseRecord{.kind = static_cast<uint32_t>(ResponseKind::kError),
                                             .tensors = TRITONSERVER_ERROR_INTERNAL,
                                             .text_size = static_cast<uint32_t>(text.size())});
    AppendPadded(bytes, text);
    return bytes;
  }
  const std::vector<SentResponse>& sent() const { return request_.answer.sent; }

  const OutputRules rules_;
  TRITONBACKEND_Request request_;
  const uint64_t handle_;
};

TEST_F(SendTest, AClientReceivesEveryResponseUntilTheEnd) {
  EXPECT_TRUE(IsReleased(Handle(Call::kSend, Send(false, Failure("one")))));
  EXPECT_NE(pending_->Find(handle_), nullptr);
  EXPECT_TRUE(IsReleased(Handle(Call::kSend, Send(true, Failure("two")))));
  EXPECT_EQ(pending_->Find(handle_), nullptr);
  EXPECT_TRUE(IsReleased(Handle(Call::kSend, Send(false, Failure("three")))));
  ASSERT_EQ(sent().size(), 2u);
  EXPECT_EQ(sent()[0].error, "one");
  EXPECT_EQ(sent()[1].error, "two");
  EXPECT_TRUE(sent()[1].is_final);
}

TEST_F(SendTest, AClientThatDoesNotReadHoldsUpNoOtherCall) {
  const std::shared_ptr<Pending> pending = pending_->Find(handle_);
  std::promise<void> client;
  std::promise<void> all;
  request_.reading = client.get_future().share();
  EXPECT_TRUE(IsReleased(Handle(Call::kSend, Send(false, Failure("one")))));
  const CallBlock question = Handle(Call::kAwaitSent, Bytes(handle_));
  EXPECT_TRUE(IsReleased(Handle(Call::kSend, Send(true, ""))));
  EXPECT_TRUE(pending_->Find(handle_) == nullptr);
  EXPECT_EQ(ReplyTo(Call::kIsCancelled, Bytes(handle_)), "ok: " + Bytes(uint64_t{0}));
  EXPECT_EQ(question.header->state.load(), kBlockInUse);
  client.set_value();
  EXPECT_EQ(AwaitReply(question), "ok: ");
  pending->WhenSent([&all] { all.set_value(); });
  all.get_future().wait();
  ASSERT_EQ(sent().size(), 2u);
  EXPECT_TRUE(sent()[1].is_final);
}

TEST_F(SendTest, EverythingOfARequestThatHasEndedIsSent) {
  Handle(Call::kSend, Send(true, ""));
  EXPECT_EQ(ReplyTo(Call::kAwaitSent, Bytes(handle_)), "ok: ");
}

TEST_F(SendTest, AnEndNeedsNoResponse) {
  Handle(Call::kSend, Send(true, ""));
  ASSERT_EQ(sent().size(), 1u);
  EXPECT_TRUE(sent()[0].is_final);
  EXPECT_EQ(pending_->Find(handle_), nullptr);
}

TEST_F(SendTest, AResponseThatCannotBeReadEndsTheWorker) {
  Handle(Call::kSend, Send(false, Failure("text")).substr(0, 24));
  EXPECT_EQ(Condemned(), "it sent a response that cannot be read");
  EXPECT_TRUE(sent().empty());
}

TEST_F(SendTest, AModelThatDropsItsSenderEndsTheRequest) {
  EXPECT_TRUE(IsReleased(Handle(Call::kClose, Bytes(handle_))));
  ASSERT_EQ(sent().size(), 1u);
  EXPECT_TRUE(sent()[0].is_final);
  EXPECT_EQ(pending_->Find(handle_), nullptr);
  EXPECT_TRUE(IsReleased(Handle(Call::kClose, Bytes(handle_))));
  EXPECT_EQ(sent().size(), 1u);
}

TEST_F(SendTest, AModelLearnsOfACancellation) {
  EXPECT_EQ(ReplyTo(Call::kIsCancelled, Bytes(handle_)), "ok: " + Bytes(uint64_t{0}));
  request_.is_cancelled = true;
  EXPECT_EQ(ReplyTo(Call::kIsCancelled, Bytes(handle_)), "ok: " + Bytes(uint64_t{1}));
  // A request that has completed is no longer cancelled.
  EXPECT_EQ(ReplyTo(Call::kIsCancelled, Bytes(handle_ + 1)), "ok: " + Bytes(uint64_t{0}));
}

// --- Metrics ---

class MetricsTest : public CallsTest {
 protected:
  std::string NewFamily(uint64_t kind) {
    return NumberOf(
        ReplyTo(Call::kMetricFamilyNew, Bytes(kind) + Sized("words") + Sized("Words.")));
  }
  std::string NewMetric(const std::string& family, const std::string& labels,
                        const std::vector<double>& buckets = {}) {
    std::string payload = family + Sized(labels) + Bytes(uint64_t{!buckets.empty()}) +
                          Bytes(uint64_t{buckets.size()});
    for (const double bucket : buckets) payload += Bytes(bucket);
    return ReplyTo(Call::kMetricNew, payload);
  }
};

TEST_F(MetricsTest, AreMadeChangedReadAndDeleted) {
  const std::string family = NewFamily(TRITONSERVER_METRIC_KIND_GAUGE);
  const std::string metric = NumberOf(NewMetric(family, R"({"language": "eo"})"));
  ASSERT_EQ(Fakes().metrics.size(), 1u);
  EXPECT_EQ((*Fakes().metrics.begin())->labels.at("language"), "eo");
  EXPECT_EQ((*Fakes().metrics.begin())->family->description, "Words.");
  EXPECT_EQ(ReplyTo(Call::kMetricSet, metric + Bytes(5.0)), "ok: ");
  EXPECT_EQ(ReplyTo(Call::kMetricIncrement, metric + Bytes(1.5)), "ok: ");
  EXPECT_EQ(ReplyTo(Call::kMetricValue, metric), "ok: " + Bytes(6.5));
  EXPECT_EQ(ReplyTo(Call::kMetricDelete, metric), "ok: ");
  EXPECT_EQ(ReplyTo(Call::kMetricValue, metric), "error: the metric is gone");
  EXPECT_EQ(ReplyTo(Call::kMetricFamilyDelete, family), "ok: ");
  EXPECT_TRUE(Fakes().families.empty());
}

TEST_F(MetricsTest, MayBeHistograms) {
  const std::string family = NewFamily(TRITONSERVER_METRIC_KIND_HISTOGRAM);
  const std::string metric = NumberOf(NewMetric(family, "null", {0.5, 1, 10}));
  EXPECT_EQ((*Fakes().metrics.begin())->buckets, (std::vector<double>{0.5, 1, 10}));
  EXPECT_EQ(ReplyTo(Call::kMetricObserve, metric + Bytes(0.7)), "ok: ");
  EXPECT_EQ((*Fakes().metrics.begin())->observed, std::vector<double>{0.7});
}

TEST_F(MetricsTest, GoWithTheirFamily) {
  const std::string family = NewFamily(TRITONSERVER_METRIC_KIND_COUNTER);
  const std::string metric = NumberOf(NewMetric(family, "{}"));
  EXPECT_EQ(ReplyTo(Call::kMetricSet, metric + Bytes(1.0)), "error: a counter cannot be set");
  EXPECT_EQ(ReplyTo(Call::kMetricFamilyDelete, family), "ok: ");
  EXPECT_TRUE(Fakes().metrics.empty());
  EXPECT_EQ(NewMetric(family, "{}"), "error: the metric family is gone");
}

TEST_F(MetricsTest, OfAModelGoWithItsWorker) {
  {
    Calls calls(context_, pending_);
    calls.Handle(worker_,
                 NewCall(Call::kMetricFamilyNew, Bytes(uint64_t{0}) + Sized("a") + Sized("")));
    EXPECT_EQ(Fakes().families.size(), 1u);
  }
  EXPECT_TRUE(Fakes().families.empty());
}

TEST_F(MetricsTest, OfNoSenseAreRefused) {
  EXPECT_EQ(ReplyTo(Call::kMetricFamilyNew, Bytes(uint64_t{9}) + Sized("a") + Sized("")),
            "error: Unknown metric kind");
  const std::string family = NewFamily(TRITONSERVER_METRIC_KIND_GAUGE);
  EXPECT_EQ(NewMetric(family, R"({"language": 7})"), "error: Values of labels must be strings.");
  EXPECT_EQ(NewMetric(family, "words"), "error: labels are not a JSON object");
  EXPECT_EQ(ReplyTo(Call::kMetricNew,
                    family + Sized("null") + Bytes(uint64_t{1}) + Bytes(uint64_t{1} << 40)),
            "error: a histogram has too many buckets");
  EXPECT_EQ(
      ReplyTo(Call::kMetricNew, family + Sized("null") + Bytes(uint64_t{1}) + Bytes(uint64_t{3})),
      "error: a call was cut short");
}

// --- Control of models ---

TEST_F(CallsTest, AModelLoadsOthersWithConfigurationAndFiles) {
  const std::string payload =
      Sized("other") + Sized("{}") + Bytes(uint64_t{1}) + Sized("file:1/model.py") + Sized("pass");
  EXPECT_EQ(ReplyTo(Call::kLoadModel, payload), "ok: ");
  const backend::MutexLock lock(server_.mutex);
  EXPECT_EQ(server_.events, std::vector<std::string>{"load other config={} file:1/model.py=pass"});
}

TEST_F(CallsTest, AModelUnloadsOthersAloneOrWithTheirDependents) {
  EXPECT_EQ(ReplyTo(Call::kUnloadModel, Sized("a") + Bytes(uint64_t{0})), "ok: ");
  EXPECT_EQ(ReplyTo(Call::kUnloadModel, Sized("b") + Bytes(uint64_t{1})), "ok: ");
  const backend::MutexLock lock(server_.mutex);
  EXPECT_EQ(server_.events, (std::vector<std::string>{"unload a", "unload with dependents b"}));
}

TEST_F(CallsTest, ALoadThatFailsSaysWhy) {
  server_.refusal = "there is no such model";
  EXPECT_EQ(ReplyTo(Call::kLoadModel, Sized("other") + Sized("") + Bytes(uint64_t{0})),
            "error: there is no such model");
}

TEST_F(CallsTest, AModelAsksWhetherOthersAreReady) {
  server_.ready = {"other"};
  EXPECT_EQ(ReplyTo(Call::kIsModelReady, Sized("other") + Sized("")), "ok: " + Bytes(uint64_t{1}));
  EXPECT_EQ(ReplyTo(Call::kIsModelReady, Sized("other") + Sized("2")), "ok: " + Bytes(uint64_t{0}));
  EXPECT_EQ(ReplyTo(Call::kIsModelReady, Sized("none") + Sized("")), "ok: " + Bytes(uint64_t{0}));
  for (const std::string version : {"one", "-1", "99999999999999999999"}) {
    EXPECT_EQ(ReplyTo(Call::kIsModelReady, Sized("other") + Sized(version)),
              "error: failed to get model version from specified version string '" + version +
                  "', version should be an integral value > 0");
  }
}

TEST_F(CallsTest, AServerThatLetsNoBackendCallItSaysSo) {
  context_.server = nullptr;
  EXPECT_EQ(ReplyTo(Call::kUnloadModel, Sized("a") + Bytes(uint64_t{0})),
            "error: the server does not let backends call it");
}

TEST_F(CallsTest, ControlThatIsCutShortIsRefused) {
  EXPECT_EQ(ReplyTo(Call::kLoadModel, Sized("other") + Sized("") + Bytes(uint64_t{2})),
            "error: a call was cut short");
  EXPECT_EQ(ReplyTo(Call::kLoadModel, Sized("other") + Sized("") + Bytes(uint64_t{1} << 40)),
            "error: the files of a model are too many or too large");
}

// --- Invalid calls ---

TEST_F(CallsTest, ACallThatThereIsNotEndsTheWorker) {
  Handle(static_cast<Call>(77), "");
  EXPECT_EQ(Condemned(), "it asked for something unknown");
}

class NonsenseTest : public CallsTest {
 protected:
  // Makes a call with random bytes, in memory of its own so that a sanitizer finds reads beyond
  // them.
  CallBlock HandleNonsense(Call kind) {
    std::string payload;
    for (uint32_t i = random_() % 12; i > 0; --i) {
      payload += Bytes(random_() % 2 == 0 ? uint64_t{random_() % 4} : uint64_t{random_()} << 32);
    }
    payload.resize(payload.size() - (payload.empty() ? 0 : random_() % 8));
    const std::vector<char> exact(payload.begin(), payload.end());
    end_.Reset();
    CallBlock call = NewCall(kind, "");
    call.payload = exact;
    calls_.Handle(worker_, call);
    return call;
  }
  std::mt19937 random_{21};
};

TEST_F(NonsenseTest, IsRepliedToOrPassedOver) {
  for (int round = 0; round < 3000; ++round) {
    auto kind = static_cast<Call>(1 + random_() % 19);
    if (kind == Call::kSend || kind == Call::kInfer) kind = Call::kMetricNew;
    const CallBlock call = HandleNonsense(kind);
    if (!IsReleased(call)) AwaitReply(call);
    ASSERT_TRUE(worker_->is_alive()) << static_cast<int>(kind);
  }
}

TEST_F(NonsenseTest, AsAResponseOrARequestMayEndTheWorker) {
  for (int round = 0; round < 1000; ++round) {
    const CallBlock call = HandleNonsense(round % 2 == 0 ? Call::kSend : Call::kInfer);
    ASSERT_TRUE(IsReleased(call) || IsReplied(call) || !worker_->is_alive());
  }
}

}  // namespace
}  // namespace nereid::python
