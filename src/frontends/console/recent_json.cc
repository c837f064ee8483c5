// SPDX-License-Identifier: Apache-2.0
#include "console/recent_json.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/json_text.h"

namespace nereid::console {
namespace {

// Writes the members of an object, or the elements of an array.
class JsonList {
 public:
  // `brackets` are "{}" or "[]".
  JsonList(std::string& json, std::string_view brackets) : json_(json), end_(brackets[1]) {
    json_ += brackets[0];
  }
  ~JsonList() { json_ += end_; }
  JsonList(const JsonList&) = delete;
  JsonList& operator=(const JsonList&) = delete;

  std::string& Next() {
    if (!is_empty_) json_ += ',';
    is_empty_ = false;
    return json_;
  }
  std::string& Next(std::string_view name) {
    base::AppendJsonString(Next(), name);
    return json_ += ':';
  }
  void Text(std::string_view name, std::string_view value) {
    base::AppendJsonString(Next(name), value);
  }
  void Bool(std::string_view name, bool value) { base::AppendJsonBool(Next(name), value); }
  template <std::integral T>
  void Integer(std::string_view name, T value) {
    base::AppendJsonInteger(Next(name), value);
  }

 private:
  std::string& json_;
  const char end_;
  bool is_empty_ = true;
};

constexpr std::array<std::string_view, 4> kLevelNames = {"error", "warning", "info", "verbose"};

// The first and the last moment of a trace.
struct Extent {
  uint64_t first_ns = UINT64_MAX;
  uint64_t last_ns = 0;

  uint64_t length_ns() const { return last_ns > first_ns ? last_ns - first_ns : 0; }
};

Extent ExtentOf(const observe::RecentTrace& trace) {
  Extent extent;
  for (const observe::TracedRequest& request : trace.requests) {
    for (const observe::TracedMoment& moment : request.moments) {
      extent.first_ns = std::min(extent.first_ns, moment.ns);
      extent.last_ns = std::max(extent.last_ns, moment.ns);
    }
  }
  return extent;
}

void AppendRequest(JsonList& object, const observe::TracedRequest& request) {
  object.Text("model", request.model);
  object.Integer("version", request.version);
  object.Text("request_id", request.request_id);
}

void AppendSequences(JsonList& object, std::string_view name,
                     std::span<const core::SequenceReading> sequences) {
  std::string& json = object.Next(name);
  JsonList list(json, "[]");
  for (const core::SequenceReading& sequence : sequences) {
    list.Next();
    JsonList one(json, "{}");
    one.Text("id", sequence.id);
    one.Integer("instance", sequence.instance);
    one.Integer("position", sequence.position);
    one.Integer("waiting", sequence.waiting);
    one.Bool("executing", sequence.is_executing);
    one.Bool("closed", sequence.is_closed);
    one.Integer("idle_ns", sequence.idle_ns);
  }
}

}  // namespace

std::string LogJson(std::span<const base::RecentMessage> messages) {
  std::string json;
  {
    JsonList all(json, "{}");
    all.Next("messages");
    JsonList list(json, "[]");
    for (const base::RecentMessage& message : messages) {
      list.Next();
      JsonList one(json, "{}");
      one.Integer("id", message.id);
      one.Integer("time_ms", message.unix_ms);
      one.Text("level", kLevelNames[static_cast<size_t>(message.level)]);
      one.Text("source", message.source);
      one.Text("text", message.text);
    }
  }
  return json;
}

std::string TracesJson(bool is_on,
                       std::span<const std::shared_ptr<const observe::RecentTrace>> traces) {
  std::string json;
  {
    JsonList all(json, "{}");
    all.Bool("is_on", is_on);
    all.Next("traces");
    JsonList list(json, "[]");
    for (const auto& trace : traces) {
      list.Next();
      JsonList one(json, "{}");
      one.Integer("id", trace->id);
      one.Integer("time_ms", trace->unix_ms);
      AppendRequest(one, trace->requests.empty() ? observe::TracedRequest() : trace->requests[0]);
      one.Integer("requests", trace->requests.size());
      one.Integer("ns", ExtentOf(*trace).length_ns());
    }
  }
  return json;
}

std::string TraceJson(const observe::RecentTrace& trace) {
  const Extent extent = ExtentOf(trace);
  std::string json;
  {
    JsonList all(json, "{}");
    all.Integer("id", trace.id);
    all.Integer("time_ms", trace.unix_ms);
    all.Bool("is_cut", trace.is_cut);
    all.Next("requests");
    JsonList list(json, "[]");
    for (const observe::TracedRequest& request : trace.requests) {
      list.Next();
      JsonList one(json, "{}");
      one.Integer("id", request.id);
      one.Integer("parent_id", request.parent_id);
      AppendRequest(one, request);
      one.Next("moments");
      JsonList moments(json, "[]");
      for (const observe::TracedMoment& moment : request.moments) {
        moments.Next();
        JsonList entry(json, "{}");
        entry.Text("name", moment.name);
        entry.Integer("ns", moment.ns - extent.first_ns);
      }
    }
  }
  return json;
}

std::string SequencesJson(const core::Model& model, const core::SequencesReading& sequences) {
  std::string json;
  {
    JsonList all(json, "{}");
    all.Text("name", model.name());
    all.Text("version", model.version_text());
    all.Text("strategy", sequences.is_oldest ? "oldest" : "direct");
    all.Integer("slots_per_instance", sequences.slots_per_instance);
    all.Integer("used_slots", sequences.used_slots);
    all.Integer("free_slots", sequences.free_slots);
    all.Integer("idle_limit_ns", sequences.idle_limit_ns);
    all.Integer("backlog_sequences", sequences.backlog_sequences);
    all.Integer("backlog_requests", sequences.backlog_requests);
    AppendSequences(all, "running", sequences.running);
    AppendSequences(all, "backlog", sequences.backlog);
  }
  return json;
}

}  // namespace nereid::console
