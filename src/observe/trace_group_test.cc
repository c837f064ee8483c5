// SPDX-License-Identifier: Apache-2.0
// Tests traces as spans, as a local collector receives them.
#include "observe/trace_group.h"

#include <map>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "http_client/testing/http_stub.h"

namespace nereid::observe {
namespace {

// A field of a protobuf message: its number, and its bytes or its value.
struct Field {
  uint32_t number = 0;
  std::string_view bytes;
  uint64_t value = 0;
};

uint64_t TakeVarint(std::string_view& in) {
  uint64_t value = 0;
  for (int shift = 0; !in.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(in.front());
    in.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

std::vector<Field> Fields(std::string_view in) {
  std::vector<Field> fields;
  while (!in.empty()) {
    const uint64_t tag = TakeVarint(in);
    Field field{.number = static_cast<uint32_t>(tag >> 3)};
    if ((tag & 7) == 2) {
      const uint64_t size = TakeVarint(in);
      field.bytes = in.substr(0, size);
      in.remove_prefix(field.bytes.size());
    } else if ((tag & 7) == 1) {
      field.bytes = in.substr(0, 8);
      in.remove_prefix(8);
    } else {
      field.value = TakeVarint(in);
    }
    fields.push_back(field);
  }
  return fields;
}

// A span as the collector receives it.
struct Seen {
  std::string trace_id, span_id, parent_id, state;
  std::vector<std::string> events;
  std::map<std::string, std::string> attributes;
};

// Returns the spans of an export request by their names.
std::map<std::string, Seen> ReadSpans(std::string_view request) {
  std::map<std::string, Seen> spans;
  const auto each = [](std::string_view in, uint32_t number, const auto& read) {
    for (const Field& field : Fields(in)) {
      if (field.number == number) read(field.bytes);
    }
  };
  const auto read_attribute = [&](Seen& span, std::string_view attribute) {
    std::string key, value;
    each(attribute, 1, [&](std::string_view bytes) { key = bytes; });
    each(attribute, 2, [&](std::string_view any) {
      for (const Field& field : Fields(any)) {
        value = field.number == 1 ? std::string(field.bytes) : std::to_string(field.value);
      }
    });
    span.attributes[key] = value;
  };
  const auto read_span = [&](std::string_view bytes) {
    std::string name;
    Seen span;
    each(bytes, 1, [&](std::string_view id) { span.trace_id = id; });
    each(bytes, 2, [&](std::string_view id) { span.span_id = id; });
    each(bytes, 3, [&](std::string_view state) { span.state = state; });
    each(bytes, 4, [&](std::string_view id) { span.parent_id = id; });
    each(bytes, 5, [&](std::string_view text) { name = text; });
    each(bytes, 9, [&](std::string_view attribute) { read_attribute(span, attribute); });
    each(bytes, 11, [&](std::string_view event) {
      each(event, 2, [&](std::string_view text) { span.events.emplace_back(text); });
    });
    spans[name] = std::move(span);
  };
  each(request, 1, [&](std::string_view resource_spans) {
    each(resource_spans, 2, [&](std::string_view scope) { each(scope, 2, read_span); });
  });
  return spans;
}

class TraceGroupTest : public testing::Test {
 protected:
  TraceGroupTest() {
    TraceOptions options;
    options.settings = {.levels = kTraceTimestamps, .rate = 1};
    options.mode = TraceMode::kOpenTelemetry;
    options.otlp.url = collector_.endpoint();
    options.otlp.schedule_delay = std::chrono::hours(1);
    tracing_ = std::make_unique<Tracing>(std::move(options));
  }
  // Ends the server's traces, and returns the spans that the collector received.
  std::map<std::string, Seen> Spans() {
    tracing_.reset();
    base::MutexLock lock(mutex_);
    return ReadSpans(received_);
  }

 private:
  base::Mutex mutex_;
  std::string received_ NEREID_GUARDED_BY(mutex_);
  const http_client::HttpStub collector_{[this](const http_client::StubRequest& request) {
    base::MutexLock lock(mutex_);
    received_ = request.body;
    return http_client::StubReply{};
  }};

 protected:
  std::unique_ptr<Tracing> tracing_;
};

using Events = std::vector<std::string>;

TEST_F(TraceGroupTest, HasASpanForTheRequestItsModelAndTheComputation) {
  {
    const auto trace = tracing_->Start("m", {});
    trace->Describe("m", 3, "r7");
    trace->ReportFrontend("HTTP_RECV_START", 1);
    trace->Report(TraceActivity::kRequestStart, 2);
    trace->Report(TraceActivity::kQueueStart, 3);
    trace->Report(TraceActivity::kComputeStart, 4);
    trace->Report(TraceActivity::kComputeInputEnd, 5);
    trace->Report(TraceActivity::kComputeEnd, 6);
    trace->Report(TraceActivity::kRequestEnd, 7);
  }
  const auto spans = Spans();
  ASSERT_EQ(spans.size(), 3u);
  const Seen& root = spans.at("InferRequest");
  const Seen& model = spans.at("m");
  const Seen& compute = spans.at("compute");
  EXPECT_EQ(root.parent_id, "");
  EXPECT_EQ(model.parent_id, root.span_id);
  EXPECT_EQ(compute.parent_id, model.span_id);
  EXPECT_EQ(model.trace_id, root.trace_id);
  EXPECT_EQ(compute.trace_id, root.trace_id);
  EXPECT_EQ(root.events, (Events{"HTTP_RECV_START"}));
  EXPECT_EQ(model.events, (Events{"REQUEST_START", "QUEUE_START", "REQUEST_END"}));
  EXPECT_EQ(compute.events, (Events{"COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_END"}));
  EXPECT_EQ(model.attributes,
            (std::map<std::string, std::string>{{"triton.model_name", "m"},
                                                {"triton.model_version", "3"},
                                                {"triton.request_id", "r7"},
                                                {"triton.trace_id", "1"},
                                                {"triton.trace_parent_id", "0"}}));
}

TEST_F(TraceGroupTest, PutsTheStepsOfAnEnsembleIntoItsSpan) {
  {
    const auto trace = tracing_->Start("whole", {});
    trace->Describe("whole", 1, "");
    trace->Report(TraceActivity::kRequestStart, 1);
    const auto step = trace->SpawnChild();
    step->Describe("part", 2, "");
    step->Report(TraceActivity::kRequestStart, 2);
    step->Report(TraceActivity::kRequestEnd, 3);
    trace->Report(TraceActivity::kRequestEnd, 4);
  }
  const auto spans = Spans();
  EXPECT_EQ(spans.at("part").parent_id, spans.at("whole").span_id);
  EXPECT_EQ(spans.at("part").attributes.at("triton.trace_parent_id"), "1");
}

TEST_F(TraceGroupTest, ContinuesTheTraceOfItsClient) {
  const std::string trace_id = "0af7651916cd43dd8448eb211c12666c";
  std::string context;
  {
    const std::string parent = "00-" + trace_id + "-b7ad6b7169242424-01";
    const auto trace = tracing_->Start("m", {.traceparent = parent, .tracestate = "a=b"});
    trace->Describe("m", 1, "");
    EXPECT_STREQ(trace->context(), "");
    trace->Report(TraceActivity::kRequestStart, 1);
    context = trace->context();
  }
  // The context with which backends continue the trace.
  EXPECT_TRUE(context.starts_with("{\"traceparent\":\"00-" + trace_id + "-")) << context;
  EXPECT_TRUE(context.ends_with("-01\",\"tracestate\":\"a=b\"}")) << context;
  const auto spans = Spans();
  EXPECT_EQ(spans.at("InferRequest").parent_id, "\xb7\xad\x6b\x71\x69\x24\x24\x24");
  EXPECT_EQ(spans.at("InferRequest").state, "a=b");
  EXPECT_EQ(spans.at("m").trace_id.substr(0, 2), "\x0a\xf7");
}

TEST_F(TraceGroupTest, MakesSpansOfActivitiesThatStartAndEnd) {
  {
    const auto trace = tracing_->Start("m", {});
    trace->Describe("m", 1, "");
    trace->Report(TraceActivity::kRequestStart, 1);
    trace->ReportCustom("TOKENIZE_START", 2);
    trace->ReportCustom("hello", 3);
    trace->ReportCustom("TOKENIZE_END", 4);
    trace->ReportCustom("after", 5);
    trace->Report(TraceActivity::kRequestEnd, 6);
  }
  const auto spans = Spans();
  EXPECT_EQ(spans.at("TOKENIZE").parent_id, spans.at("m").span_id);
  EXPECT_EQ(spans.at("TOKENIZE").events, (Events{"TOKENIZE_START", "hello", "TOKENIZE_END"}));
  EXPECT_EQ(spans.at("m").events, (Events{"REQUEST_START", "after", "REQUEST_END"}));
}

TEST_F(TraceGroupTest, EndsSpansThatNobodyEnded) {
  {
    const auto trace = tracing_->Start("m", {});
    trace->Describe("m", 1, "");
    trace->Report(TraceActivity::kRequestStart, 1);
    trace->Report(TraceActivity::kComputeStart, 2);
  }
  EXPECT_EQ(Spans().size(), 3u);
}

TEST_F(TraceGroupTest, KeepsTensorsOutOfSpans) {
  EXPECT_TRUE(tracing_->Change("", {.levels = {.value = kTraceTimestamps | kTraceTensors}}).ok());
  {
    const auto trace = tracing_->Start("m", {});
    trace->ReportTensor(TraceActivity::kTensorQueueInput,
                        {.name = "secret", .type = tensor::DataType::kInt8, .bytes = "x"});
  }
  const auto spans = Spans();
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_TRUE(spans.at("InferRequest").events.empty());
}

}  // namespace
}  // namespace nereid::observe
