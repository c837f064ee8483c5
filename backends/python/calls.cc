// SPDX-License-Identifier: Apache-2.0
#include "python_backend/calls.h"

#include <cerrno>
#include <cstdlib>

namespace nereid::python {
namespace {

// Each slow call has a thread.
constexpr int kMaxSlowCalls = 256;
constexpr uint64_t kMaxFiles = 65536;
constexpr uint64_t kMaxFileBytes = uint64_t{8} << 30;
constexpr uint64_t kMaxBuckets = 65536;

using backend::Error;
using backend::LogIfError;
using backend::Result;
using backend::StrCat;

template <typename Value>
std::string Bytes(const Value& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

void SendResult(Worker& worker, const CallBlock& call, Result<std::string> result) {
  if (result.ok()) return Reply(worker.blocks(), call.header, Outcome::kOk, result.value());
  Reply(worker.blocks(), call.header, Outcome::kError, result.TakeError().message());
}

Result<int64_t> VersionOf(const std::string& text) {
  if (text.empty()) return int64_t{-1};
  errno = 0;
  char* end = nullptr;
  const long long version = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str() || errno != 0 || version < 0) {
    return Error::InvalidArgument(
        StrCat("failed to get model version from specified version string '", text,
               "', version should be an integral value > 0"));
  }
  return static_cast<int64_t>(version);
}

// A request of a model to load or unload another one. A copy, because it is executed on its own
// thread.
struct ControlRequest {
  std::string name;
  std::string text;  // the configuration, or the version
  bool unloads_dependents = false;
  std::vector<std::pair<std::string, std::string>> files;

  static Result<ControlRequest> Read(Call kind, std::span<const char> payload) {
    Reader reader(payload);
    ControlRequest request;
    request.name = reader.SizedText();
    if (kind == Call::kUnloadModel) {
      request.unloads_dependents = reader.Read<uint64_t>() != 0;
    } else {
      request.text = reader.SizedText();
    }
    if (kind == Call::kLoadModel) {
      auto left = reader.Read<uint64_t>();
      if (left > kMaxFiles || payload.size() > kMaxFileBytes) {
        return Error::InvalidArgument("the files of a model are too many or too large");
      }
      for (; left > 0 && reader.ok(); --left) {
        std::string path(reader.SizedText());
        request.files.emplace_back(std::move(path), std::string(reader.SizedBytes()));
      }
    }
    if (!reader.ok()) return Error::Internal("a call was cut short");
    return request;
  }

  Result<std::string> Run(Call kind, TRITONSERVER_Server* server) const {
    switch (kind) {
      case Call::kLoadModel:
        return Load(server);
      case Call::kUnloadModel:
        NEREID_KIT_TRY(unloads_dependents
                           ? TRITONSERVER_ServerUnloadModelAndDependents(server, name.c_str())
                           : TRITONSERVER_ServerUnloadModel(server, name.c_str()));
        return std::string();
      default: {
        NEREID_KIT_ASSIGN(const int64_t version, VersionOf(text));
        bool is_ready = false;
        NEREID_KIT_TRY(TRITONSERVER_ServerModelIsReady(server, name.c_str(), version, &is_ready));
        return Bytes(uint64_t{is_ready});
      }
    }
  }

 private:
  Result<std::string> Load(TRITONSERVER_Server* server) const {
    std::vector<backend::Parameter> owned;
    if (!text.empty()) {
      owned.emplace_back(
          TRITONSERVER_ParameterNew("config", TRITONSERVER_PARAMETER_STRING, text.c_str()));
    }
    for (const auto& [path, content] : files) {
      owned.emplace_back(
          TRITONSERVER_ParameterBytesNew(path.c_str(), content.data(), content.size()));
    }
    std::vector<const TRITONSERVER_Parameter*> parameters;
    for (const backend::Parameter& parameter : owned) parameters.push_back(parameter.get());
    NEREID_KIT_TRY(TRITONSERVER_ServerLoadModelWithParameters(
        server, name.c_str(), parameters.data(), parameters.size()));
    return std::string();
  }
};

}  // namespace

void Calls::Handle(const std::shared_ptr<Worker>& worker, const CallBlock& call) {
  try {
    Dispatch(worker, call);
  } catch (const std::exception& error) {
    // There is not enough memory, or there are too many threads, for the call.
    worker->Condemn(StrCat("the server failed to do what it asked for: ", error.what()));
  }
}

void Calls::Dispatch(const std::shared_ptr<Worker>& worker, const CallBlock& call) {
  Reader reader(call.payload);
  switch (call.kind) {
    case Call::kLog:
      Log(reader);
      return Release(call.header);
    case Call::kSend:
      return Send(worker, call);
    case Call::kClose: {
      const auto handle = reader.Read<uint64_t>();
      if (const auto pending = pending_->Find(handle); pending != nullptr) {
        pending->Abandon();
        pending_->Remove(handle);
      }
      return Release(call.header);
    }
    case Call::kAwaitSent: {
      const auto pending = pending_->Find(reader.Read<uint64_t>());
      const auto reply = [worker, call] { Reply(call.header, Outcome::kOk); };
      return pending == nullptr ? reply() : pending->WhenSent(reply);
    }
    case Call::kIsCancelled:
      return IsCancelled(*worker, call, reader);
    case Call::kMetricFamilyNew:
    case Call::kMetricFamilyDelete:
    case Call::kMetricNew:
    case Call::kMetricDelete:
    case Call::kMetricIncrement:
    case Call::kMetricSet:
    case Call::kMetricObserve:
    case Call::kMetricValue:
      return SendResult(*worker, call, Metrics(call.kind, reader));
    case Call::kLoadModel:
    case Call::kUnloadModel:
    case Call::kIsModelReady:
      return ControlModel(worker, call);
    case Call::kInfer: {
      const auto record = reader.Read<InferRecord>();
      const auto parent = pending_->Find(record.parent);
      return inferences_.Infer(worker, call, record, reader, parent.get());
    }
    case Call::kStreamNext:
      return inferences_.Next(worker, call, reader.Read<uint64_t>());
    case Call::kStreamCancel:
      inferences_.Cancel(reader.Read<uint64_t>());
      return Release(call.header);
    case Call::kStreamClose:
      inferences_.Close(reader.Read<uint64_t>());
      return Release(call.header);
    case Call::kRelease:
      break;
  }
  worker->Condemn("it asked for something unknown");
}

void Calls::Log(Reader& reader) {
  const auto level = reader.Read<uint32_t>();
  const auto line = reader.Read<uint32_t>();
  const std::string file(reader.SizedText());
  const std::string text(reader.SizedBytes().substr(0, kMaxMessage));
  if (!reader.ok() || level > TRITONSERVER_LOG_VERBOSE) return;
  Error(TRITONSERVER_LogMessage(static_cast<TRITONSERVER_LogLevel>(level), file.c_str(),
                                static_cast<int>(line), text.c_str()))
      .Ignore();
}

void Calls::Send(const std::shared_ptr<Worker>& worker, const CallBlock& call) {
  Reader reader(call.payload);
  const auto record = reader.Read<SendRecord>();
  const uint64_t handle = record.handle;
  const bool is_final = record.is_final != 0;
  const bool has_response = record.has_response != 0;
  std::optional<ModelResponse> response;
  if (has_response) response = ReadResponse(reader, worker->region());
  if (!reader.ok() || (has_response && !response)) {
    return worker->Condemn("it sent a response that cannot be read");
  }
  const auto pending = pending_->Find(handle);
  Error error;
  if (pending == nullptr) {
    error = Error::Internal("Unable to send response. Response sender has been closed.");
  } else if (has_response) {
    if (Error wrong = pending->Check(*response); !wrong.ok()) response->Refuse(wrong);
    error = pending->Send(*response, is_final);
  } else if (is_final) {
    error = pending->End();
  }
  if (is_final) pending_->Remove(handle);
  LogIfError(std::move(error), "failed to send a response of a Python model");
  Release(call.header);
}

void Calls::IsCancelled(Worker& worker, const CallBlock& call, Reader& reader) {
  const auto pending = pending_->Find(reader.Read<uint64_t>());
  if (pending == nullptr) return SendResult(worker, call, Bytes(uint64_t{0}));
  auto is_cancelled = pending->IsCancelled();
  if (!is_cancelled.ok()) return SendResult(worker, call, is_cancelled.TakeError());
  SendResult(worker, call, Bytes(uint64_t{is_cancelled.value()}));
}

Result<std::string> Calls::Metrics(Call kind, Reader& reader) {
  const auto object = reader.Read<uint64_t>();
  switch (kind) {
    case Call::kMetricFamilyNew: {
      const std::string name(reader.SizedText());
      const std::string description(reader.SizedText());
      if (object > TRITONSERVER_METRIC_KIND_HISTOGRAM)
        return Error::Internal("Unknown metric kind");
      NEREID_KIT_ASSIGN(
          const uint64_t family,
          metrics_.NewFamily(static_cast<TRITONSERVER_MetricKind>(object), name, description));
      return Bytes(family);
    }
    case Call::kMetricNew: {
      const std::string_view labels = reader.SizedText();
      std::optional<std::vector<double>> buckets;
      if (reader.Read<uint64_t>() != 0) buckets.emplace();
      auto left = reader.Read<uint64_t>();
      if (left > kMaxBuckets) return Error::InvalidArgument("a histogram has too many buckets");
      for (; left > 0 && reader.ok() && buckets; --left) {
        buckets->push_back(reader.Read<double>());
      }
      if (!reader.ok()) return Error::Internal("a call was cut short");
      NEREID_KIT_ASSIGN(const uint64_t metric, metrics_.NewMetric(object, labels, buckets));
      return Bytes(metric);
    }
    case Call::kMetricFamilyDelete:
      metrics_.DeleteFamily(object);
      return std::string();
    case Call::kMetricDelete:
      metrics_.DeleteMetric(object);
      return std::string();
    default:
      break;
  }
  TRITONSERVER_Metric* const metric = metrics_.Find(object);
  if (metric == nullptr) return Error::Internal("the metric is gone");
  if (kind == Call::kMetricValue) {
    double value = 0;
    NEREID_KIT_TRY(TRITONSERVER_MetricValue(metric, &value));
    return Bytes(value);
  }
  NEREID_KIT_TRY(ChangeMetric(kind, metric, reader.Read<double>()).Release());
  return std::string();
}

Error Calls::ChangeMetric(Call kind, TRITONSERVER_Metric* metric, double value) {
  switch (kind) {
    case Call::kMetricIncrement:
      return Error(TRITONSERVER_MetricIncrement(metric, value));
    case Call::kMetricSet:
      return Error(TRITONSERVER_MetricSet(metric, value));
    default:
      return Error(TRITONSERVER_MetricObserve(metric, value));
  }
}

void Calls::ControlModel(const std::shared_ptr<Worker>& worker, const CallBlock& call) {
  auto read = ControlRequest::Read(call.kind, call.payload);
  if (!read.ok()) return SendResult(*worker, call, read.TakeError());
  if (context_.server == nullptr) {
    return SendResult(*worker, call,
                      Error::Unsupported("the server does not let backends call it"));
  }
  const auto request = std::make_shared<ControlRequest>(std::move(read).value());
  if (call.kind == Call::kIsModelReady) {
    return SendResult(*worker, call, request->Run(call.kind, context_.server));
  }
  if (context_.open_slow_calls.fetch_add(1) >= kMaxSlowCalls) {
    --context_.open_slow_calls;
    return SendResult(*worker, call,
                      Error::Unavailable("too many models are being loaded or unloaded"));
  }
  context_.slow_calls.Start([worker, call, request, &context = context_] {
    SendResult(*worker, call, request->Run(call.kind, context.server));
    --context.open_slow_calls;
  });
}

}  // namespace nereid::python
