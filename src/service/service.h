// SPDX-License-Identifier: Apache-2.0
// The interface of the server that HTTP, gRPC and the C API call. Implemented by `engine`; tests of
// a frontend implement it in a few lines.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/unique_function.h"
#include "config/model_config.h"
#include "core/model.h"
#include "core/request.h"
#include "memory/region_table.h"
#include "observe/gpu_metrics.h"
#include "observe/trace.h"
#include "service/traffic.h"

namespace nereid::service {

// The content of GET /v2 and ServerMetadata.
struct ServerMetadata {
  std::string name;
  std::string version;
  std::vector<std::string> extensions;
};

// An input or output as clients see it, including the batch dimension.
struct TensorMetadata {
  std::string name;
  tensor::DataType type;
  tensor::Shape shape;  // with a leading -1 when the model batches
};

// The metadata of a model's inputs and outputs.
struct ModelMetadata {
  std::string name;
  std::vector<std::string> versions;
  std::string platform;
  std::vector<TensorMetadata> inputs;
  std::vector<TensorMetadata> outputs;
  std::map<std::string, int64_t, std::less<>> labels;  // of versions
};

// One line of the repository index. A model that was never loaded has only a name.
struct IndexEntry {
  std::string name;
  std::string version;
  std::string state;   // UNKNOWN, READY, UNAVAILABLE, LOADING, UNLOADING
  std::string reason;  // why it is not ready
  std::vector<std::string> labels = {};
};

// The contents of a load request.
struct LoadOptions {
  // A file in a load request.
  struct File {
    std::string path;  // the part after "file:", as the client wrote it
    std::string content;
  };
  std::optional<std::string> config;  // JSON, used instead of the configuration file
  std::vector<File> files;            // used instead of all files in the repository
};

// The statistics of one version.
struct ModelStatistics {
  std::string name;
  std::string version;
  core::StatisticsSnapshot statistics;
};

// How busy one version is, for those who look every second.
struct ModelLoad {
  // Tells the versions of one reading apart. After an unload, another version may get it. Not to be
  // used otherwise.
  const void* identity = nullptr;
  core::LoadCounts counts;
};

// How busy all models together are, for balancers that ask with every request.
struct LoadTotals {
  uint64_t requests_in_flight = 0;  // from clients, arrived and without a last response
  double queue_oldest_seconds = 0;  // how long the request that has waited longest waits
};

// One of the things that health depends on.
struct HealthCheck {
  std::string name;
  std::vector<std::string> problems;  // sentences; empty if all is well
};
using HealthChecks = std::vector<HealthCheck>;

// The server. Versions are text as protocols carry them: "" is the latest version that is ready.
// Thread-safe. No method waits for a model or a disk unless its comment says so.
class Service {
 public:
  virtual ~Service() = default;

  virtual bool IsLive() const = 0;
  virtual bool IsReady() const = 0;
  // Whether IsReady and IsModelReady ask backends, which may take time. If so, call them in
  // RunBlocking.
  virtual bool ReadinessMayBlock() const { return false; }
  // What IsLive, IsReady and IsModelReady are made of, for people: each problem makes the result
  // negative. Block where IsReady may.
  virtual HealthChecks CheckLiveness() const { return {}; }
  virtual HealthChecks CheckReadiness() const { return {}; }
  virtual base::Result<HealthChecks> CheckModel(std::string_view /*name*/,
                                                std::string_view /*version*/) {
    return HealthChecks();
  }
  virtual const ServerMetadata& metadata() const = 0;

  // Pins a version that is ready; `version` may be a label. Errors for an unknown or unavailable
  // model are those that every protocol prints. If the handle follows rules, a request that gets it
  // has to be directed.
  virtual base::Result<core::ModelHandle> FindModel(std::string_view name,
                                                    std::string_view version) = 0;
  // Does what the rules of the model want of a request: another version, a copy for a shadow.
  // REQUIRES: request.model.follows_rules(), the request is complete, and no other thread knows it.
  virtual void Direct(core::Request& /*request*/, const HeaderLookup& /*header*/) {}
  // The rules by which requests to a model find a version. ChangeTraffic takes effect in one step.
  virtual base::Result<TrafficState> ReadTraffic(std::string_view /*name*/) {
    return TrafficState();
  }
  virtual base::Status ChangeTraffic(std::string_view /*name*/, const TrafficChange& /*change*/) {
    return base::UnsupportedError("the server has no rules for versions");
  }
  // Gets a pin on the model, or why there is none. Called once.
  using ModelWaiter = base::UniqueFunction<void(base::Result<core::ModelHandle>)>;
  // Whether a model that FindModel does not find is one that is loaded when a request needs it, so
  // that AwaitModel may find it.
  virtual bool LoadsOnDemand(std::string_view /*name*/) { return false; }
  // Finds a model that is loaded on demand. Does not block: `done` is called at once or later, on
  // another thread that may take its time.
  virtual void AwaitModel(std::string_view name, std::string_view version, ModelWaiter done) {
    done(FindModel(name, version));
  }
  // Whether the version can serve requests. Fails if there is no such model or version.
  virtual base::Result<bool> IsModelReady(std::string_view name, std::string_view version) = 0;
  virtual base::Result<ModelMetadata> DescribeModel(std::string_view name,
                                                    std::string_view version) = 0;
  virtual base::Result<std::shared_ptr<const config::ModelConfig>> GetModelConfig(
      std::string_view name, std::string_view version) = 0;
  // Reads the repositories, so it may block.
  virtual std::vector<IndexEntry> RepositoryIndex(bool only_ready) = 0;
  // LoadModel blocks until the model is loaded or has failed, UnloadModel until its versions accept
  // no more requests. Errors are those that every protocol prints.
  virtual base::Status LoadModel(std::string_view name, const LoadOptions& options) = 0;
  virtual base::Status UnloadModel(std::string_view name, bool unload_dependents) = 0;
  // Runs `work` soon, on a thread where it may block. All accepted work is run.
  virtual void RunBlocking(base::UniqueFunction<void()> work) = 0;
  // Returns the statistics of one version, of all loaded versions of a model (version ""), or of
  // all models (name "").
  virtual base::Result<std::vector<ModelStatistics>> ReadStatistics(std::string_view name,
                                                                    std::string_view version) = 0;
  // Returns the load of every loaded version that ever got a request.
  virtual std::vector<ModelLoad> ReadLoads() { return {}; }

  // Validates a request and executes it. REQUIRES: its model is pinned (FindModel). The response
  // arrives through the request's sink, perhaps before this returns.
  virtual void Infer(core::RequestPtr request) = 0;
  // Called when the client of `request` is gone: removes the request from the queue if it still
  // waits there. REQUIRES: the caller keeps the request alive with a RequestRef.
  virtual void Cancel(core::Request& request) = 0;

  // The memory that clients share with the server; outlives every request.
  virtual memory::RegionTable& regions() = 0;

  // Returns the metrics page in Prometheus text format.
  virtual std::string MetricsText() = 0;
  // Return parts of it for a small part of its costs: totals over the families
  // nereid_model_requests_in_flight and nereid_queue_oldest_seconds, and the lines of a family of
  // plug-ins, empty if there is none.
  virtual LoadTotals ReadLoadTotals() { return {}; }
  virtual std::string PluginMetricsText(const std::string& /*family*/) { return {}; }
  // Returns what the GPUs of the machine say of themselves; nothing if there are none, or if their
  // metrics are off.
  virtual std::vector<observe::GpuReading> ReadGpus() { return {}; }

  // The trace settings and the choice of requests to trace. Null if tracing is impossible.
  virtual observe::Tracing* tracing() { return nullptr; }
};

}  // namespace nereid::service
