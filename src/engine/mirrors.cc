// SPDX-License-Identifier: Apache-2.0
#include "engine/mirrors.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "core/forwarding_sink.h"
#include "core/model.h"
#include "core/response.h"
#include "engine/response_compare.h"

namespace nereid::engine {

// One copy in the count of those that exist.
class MirrorCount {
 public:
  explicit MirrorCount(Mirrors& mirrors) : mirrors_(mirrors) {
    base::MutexLock lock(mirrors_.mutex_);
    ++mirrors_.count_;
  }
  ~MirrorCount() {
    base::MutexLock lock(mirrors_.mutex_);
    if (--mirrors_.count_ == 0) mirrors_.none_left_.NotifyAll();
  }
  MirrorCount(const MirrorCount&) = delete;
  MirrorCount& operator=(const MirrorCount&) = delete;

 private:
  Mirrors& mirrors_;
};

namespace {

// A parameter of a request that is gone.
struct KeptParameter {
  std::string name;
  std::variant<std::string, int64_t, bool, double> value;
};

// The description of an input, whose data are part of one buffer.
struct KeptInput {
  std::string name;
  tensor::DataType type = tensor::DataType::kInvalid;
  tensor::Shape shape;
  size_t offset = 0;
  size_t byte_size = 0;
};

// A place among the copies on their way.
class MirrorPlace {
 public:
  MirrorPlace(Mirrors& mirrors, std::shared_ptr<const Traffic> traffic, uint64_t bytes)
      : count_(mirrors), traffic_(std::move(traffic)), bytes_(bytes) {}
  ~MirrorPlace() { traffic_->tally().Give(bytes_); }
  MirrorPlace(const MirrorPlace&) = delete;
  MirrorPlace& operator=(const MirrorPlace&) = delete;

  const service::Shadow& shadow() const { return *traffic_->rules().shadow; }
  ShadowTally& tally() const { return traffic_->tally(); }

 private:
  const MirrorCount count_;  // the first member, so that nothing is left when it ends
  const std::shared_ptr<const Traffic> traffic_;
  const uint64_t bytes_;
};

// A request as its client sent it, with the response that it got.
struct Mirror {
  std::unique_ptr<MirrorPlace> place;
  std::string model;  // that the request went to
  std::string id;
  uint64_t priority = 0;
  uint64_t timeout_us = 0;
  std::vector<KeptInput> inputs;
  base::BufferRef data;
  std::vector<std::string> outputs;
  std::vector<KeptParameter> parameters;
  std::optional<ResponseCopy> expected;  // nothing: the request failed
};

constexpr size_t kInputAlignment = base::kBufferAlignment;

size_t RoundUp(size_t size) { return (size + kInputAlignment - 1) & ~(kInputAlignment - 1); }

// Returns the bytes that copies of the inputs take; nothing if they cannot be copied here.
std::optional<size_t> InputBytes(const core::Request& request) {
  if (request.has_gpu_inputs) return std::nullopt;
  size_t size = 0;
  for (const core::RequestInput& input : request.inputs) size += RoundUp(input.byte_size);
  return size;
}

KeptParameter Keep(const core::Parameter& parameter) {
  KeptParameter kept{.name = std::string(parameter.name), .value = {}};
  if (const auto* text = std::get_if<std::string_view>(&parameter.value)) {
    kept.value = std::string(*text);
  } else if (const auto* number = std::get_if<int64_t>(&parameter.value)) {
    kept.value = *number;
  } else if (const auto* on = std::get_if<bool>(&parameter.value)) {
    kept.value = *on;
  } else {
    kept.value = std::get<double>(parameter.value);
  }
  return kept;
}

core::Parameter Refer(const KeptParameter& kept, memory::Arena& arena) {
  core::Parameter parameter{.name = arena.Copy(kept.name), .value = {}};
  if (const auto* text = std::get_if<std::string>(&kept.value)) {
    parameter.value = arena.Copy(*text);
  } else if (const auto* number = std::get_if<int64_t>(&kept.value)) {
    parameter.value = *number;
  } else if (const auto* on = std::get_if<bool>(&kept.value)) {
    parameter.value = *on;
  } else {
    parameter.value = std::get<double>(kept.value);
  }
  return parameter;
}

// Copies all of `request` but its data.
void DescribeRequest(const core::Request& request, Mirror& mirror) {
  mirror.model = request.model->name();
  mirror.id = request.id;
  mirror.priority = request.priority;
  mirror.timeout_us = request.timeout_us;
  for (const core::RequestedOutput& output : request.outputs)
    mirror.outputs.emplace_back(output.name);
  for (const core::Parameter& parameter : request.parameters) {
    mirror.parameters.push_back(Keep(parameter));
  }
}

void CopyInputs(const core::Request& request, Mirror& mirror) {
  size_t offset = 0;
  for (const core::RequestInput& input : request.inputs) {
    mirror.inputs.push_back({.name = std::string(input.name),
                             .type = input.type,
                             .shape = input.shape,
                             .offset = offset,
                             .byte_size = input.byte_size});
    size_t at = offset;
    for (size_t i = 0; i < input.chunk_count(); ++i) {
      const core::DataChunk& chunk = input.chunk(i);
      if (chunk.size > 0) std::memcpy(mirror.data.data() + at, chunk.data, chunk.size);
      at += chunk.size;
    }
    offset += RoundUp(input.byte_size);
  }
}

// Keeps an output beyond the end of its response; returns false if it cannot be read here. Data in
// the pool are shared; the others are copied.
bool KeepOutput(const core::ResponseOutput& output, ResponseCopy& copy) {
  if (output.where.type == memory::MemoryType::kGpu) return false;
  OutputCopy& kept = copy.emplace_back();
  kept.name = output.name;
  kept.type = output.type;
  kept.shape = output.shape;
  if (output.byte_size == 0) return true;
  if (output.data == nullptr) return false;
  kept.buffer = output.buffer;
  const std::byte* data = output.data;
  if (!kept.buffer || output.is_placed) {
    kept.buffer = base::AcquireBuffer(output.byte_size);
    if (!kept.buffer) return false;
    std::memcpy(kept.buffer.data(), output.data, output.byte_size);
    data = kept.buffer.data();
  }
  kept.data = {data, output.byte_size};
  return true;
}

std::optional<ResponseCopy> CopyResponse(const core::Response& response) {
  if (!response.error().ok()) return std::nullopt;
  ResponseCopy copy;
  for (size_t i = 0; i < response.output_count(); ++i) {
    if (!KeepOutput(response.output(i), copy)) return std::nullopt;
  }
  return copy;
}

}  // namespace

// The request at the shadow, and the sink of its response. Destroys itself when both are gone.
class ShadowRequest final : public core::ResponseSink {
 public:
  static void Send(Mirrors& mirrors, Mirror mirror) {
    auto* const self = new ShadowRequest(mirrors, std::move(mirror));
    self->Start();
  }

  void Send(core::ResponsePtr response, bool is_final) override {
    if (response != nullptr) {
      response_ = CopyResponse(*response);
      if (!response->error().ok()) error_ = response->error();
    }
    if (is_final) has_ended_ = true;
  }

  // Comparing may take a while, so neither a thread of the shadow's instances nor a reactor does
  // it.
  void OnRequestGone() override {
    mirrors_.pool_.Post([this] {
      const std::unique_ptr<ShadowRequest> self(this);
      Compare();
    });
  }

 private:
  ShadowRequest(Mirrors& mirrors, Mirror mirror) : mirrors_(mirrors), mirror_(std::move(mirror)) {}

  void Start() {
    const service::Shadow& shadow = mirror_.place->shadow();
    const std::string_view name = shadow.model.empty() ? mirror_.model : shadow.model;
    const std::string version = shadow.version ? std::to_string(*shadow.version) : "";
    base::Result<core::ModelHandle> model = mirrors_.life_cycle_.Find(name, version);
    if (model.ok() && (*model)->is_decoupled()) {
      model = base::UnsupportedError("the shadow is decoupled");
    }
    if (!model.ok()) {
      error_ = model.status();
      const std::unique_ptr<ShadowRequest> self(this);
      return Compare();
    }
    core::RequestPtr request = core::Request::Create(*this);
    request->model = *std::move(model);
    request->model.SetRoute(0);
    Fill(*request);
    // May destroy this.
    mirrors_.submitter_.Submit(std::move(request));
  }

  void Fill(core::Request& request) const {
    memory::Arena& arena = request.arena();
    request.id = arena.Copy(mirror_.id);
    request.priority = mirror_.priority;
    request.timeout_us = mirror_.timeout_us;
    for (const KeptInput& kept : mirror_.inputs) {
      core::RequestInput& input = request.AddInput(kept.name, kept.type);
      input.shape = kept.shape;
      if (kept.byte_size > 0) {
        input.Append(
            {.data = mirror_.data.data() + kept.offset, .size = kept.byte_size, .where = {}});
      }
    }
    if (mirror_.data) request.Hold(mirror_.data);
    for (const std::string& name : mirror_.outputs) request.outputs.push_back({.name = name});
    for (const KeptParameter& kept : mirror_.parameters) {
      request.parameters.push_back(Refer(kept, arena));
    }
  }

  void Compare() const {
    const MirrorPlace& place = *mirror_.place;
    if (!response_ || !has_ended_) {
      place.tally().failed.fetch_add(1);
      NEREID_VLOG(1, "shadow of model '{}': request '{}' failed: {}", mirror_.model, mirror_.id,
                  error_.ok() ? "there was no answer that can be compared" : error_.message());
      return;
    }
    const std::string difference =
        Difference(*mirror_.expected, *response_, place.shadow().tolerance);
    (difference.empty() ? place.tally().equal : place.tally().different).fetch_add(1);
    if (!difference.empty()) {
      NEREID_VLOG(1, "shadow of model '{}': the answer to request '{}' differs: {}", mirror_.model,
                  mirror_.id, difference);
    }
  }

  Mirrors& mirrors_;
  const Mirror mirror_;
  std::optional<ResponseCopy> response_;
  base::Status error_;
  bool has_ended_ = false;
};

// Stands before the sink of a request that is copied: keeps its response, and sends the copy when
// the request is gone.
class MirroredRequest final : public core::ForwardingSink {
 public:
  MirroredRequest(Mirrors& mirrors, Mirror mirror)
      : mirrors_(mirrors), mirror_(std::move(mirror)) {}

  void Send(core::ResponsePtr response, bool is_final) override {
    if (response != nullptr) mirror_.expected = CopyResponse(*response);
    next().Send(std::move(response), is_final);
  }

 private:
  void Retire() override {
    const std::unique_ptr<MirroredRequest> self(this);
    // There is nothing to compare with.
    if (!mirror_.expected) {
      mirror_.place->tally().dropped.fetch_add(1);
      return;
    }
    mirrors_.pool_.Post([&mirrors = mirrors_, mirror = std::move(mirror_)]() mutable {
      ShadowRequest::Send(mirrors, std::move(mirror));
    });
  }

  Mirrors& mirrors_;
  Mirror mirror_;
};

bool Mirrors::WaitUntilIdle(base::TimePoint deadline) {
  {
    base::MutexLock lock(mutex_);
    while (count_ > 0) {
      if (!none_left_.WaitUntil(mutex_, deadline)) break;
    }
    if (count_ > 0) return false;
  }
  return pool_.WaitUntilIdle(deadline);
}

void Mirrors::Begin(core::Request& request, const std::shared_ptr<const Traffic>& traffic) {
  const service::Shadow& shadow = *traffic->rules().shadow;
  // A version is not compared with itself.
  const bool is_same_model = shadow.model.empty() || shadow.model == request.model->name();
  if (is_same_model && shadow.version == request.model->version()) return;
  const std::optional<size_t> bytes =
      request.model->is_decoupled() ? std::nullopt : InputBytes(request);
  if (!bytes) {
    traffic->tally().dropped.fetch_add(1);
    return;
  }
  if (!traffic->tally().Take(shadow.in_flight, *bytes)) return;
  Mirror mirror;
  mirror.place = std::make_unique<MirrorPlace>(*this, traffic, *bytes);
  mirror.data = base::AcquireBuffer(std::max<size_t>(*bytes, 1));
  if (!mirror.data) {
    traffic->tally().dropped.fetch_add(1);
    return;
  }
  CopyInputs(request, mirror);
  DescribeRequest(request, mirror);
  (new MirroredRequest(*this, std::move(mirror)))->PutBefore(request);
}

}  // namespace nereid::engine
