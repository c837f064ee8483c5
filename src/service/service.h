// SPDX-License-Identifier: Apache-2.0
// The server as its faces see it: HTTP, gRPC and the C API call nothing else. Implemented by
// `engine`; tests of a frontend implement it in a few lines.
#pragma once

#include <cstdint>
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
#include "observe/trace.h"

namespace nereid::service {

// What GET /v2 and ServerMetadata tell.
struct ServerMetadata {
  std::string name;
  std::string version;
  std::vector<std::string> extensions;
};

// An input or output as clients see it, the batch dimension included.
struct TensorMetadata {
  std::string name;
  tensor::DataType type;
  tensor::Shape shape;  // with a leading -1 when the model batches
};

// What is told of a model's inputs and outputs.
struct ModelMetadata {
  std::string name;
  std::vector<std::string> versions;
  std::string platform;
  std::vector<TensorMetadata> inputs;
  std::vector<TensorMetadata> outputs;
};

// One line of the repository index. A model that was never loaded has only a name.
struct IndexEntry {
  std::string name;
  std::string version;
  std::string state;   // UNKNOWN, READY, UNAVAILABLE, LOADING, UNLOADING
  std::string reason;  // why it is not ready
};

// What a load request brings along.
struct LoadOptions {
  // A file that came with a load request.
  struct File {
    std::string path;  // what follows "file:", as the client wrote it
    std::string content;
  };
  std::optional<std::string> config;  // JSON, in place of the configuration file
  std::vector<File> files;            // in place of everything that lies in the repository
};

// What is told of one version's statistics.
struct ModelStatistics {
  std::string name;
  std::string version;
  core::StatisticsSnapshot statistics;
};

// Versions are text as protocols carry them: "" is "the latest that is ready".
// Thread-safe. Nothing here blocks on a model or a disk but what says so.
class Service {
 public:
  virtual ~Service() = default;

  virtual bool IsLive() const = 0;
  virtual bool IsReady() const = 0;
  // Whether IsReady and IsModelReady ask backends, which may take a moment. They belong on
  // RunBlocking then.
  virtual bool ReadinessMayBlock() const { return false; }
  virtual const ServerMetadata& metadata() const = 0;

  // Pins a version that is ready; the errors are those every protocol prints for an unknown or
  // unavailable model.
  virtual base::Result<core::ModelHandle> FindModel(std::string_view name,
                                                    std::string_view version) = 0;
  // Whether the version can serve; an error when there is no such model or version.
  virtual base::Result<bool> IsModelReady(std::string_view name, std::string_view version) = 0;
  virtual base::Result<ModelMetadata> DescribeModel(std::string_view name,
                                                    std::string_view version) = 0;
  virtual base::Result<std::shared_ptr<const config::ModelConfig>> GetModelConfig(
      std::string_view name, std::string_view version) = 0;
  // Looks into the repositories: may block.
  virtual std::vector<IndexEntry> RepositoryIndex(bool only_ready) = 0;
  // Block until the model is loaded or has failed; until its versions take no more requests. Errors
  // are those that every protocol prints.
  virtual base::Status LoadModel(std::string_view name, const LoadOptions& options) = 0;
  virtual base::Status UnloadModel(std::string_view name, bool unload_dependents) = 0;
  // Runs `work`, soon, on a thread where it may call what blocks. Every work that was taken is run.
  virtual void RunBlocking(base::UniqueFunction<void()> work) = 0;
  // Of one version, of all loaded versions of a model (version ""), or of everything (name "").
  virtual base::Result<std::vector<ModelStatistics>> ReadStatistics(std::string_view name,
                                                                    std::string_view version) = 0;

  // Takes a request whose model is pinned (FindModel) and answers it through its sink, perhaps
  // before this returns. Checks it against the model first.
  virtual void Infer(core::RequestPtr request) = 0;
  // The client of `request` is gone: it leaves the queue if it still waits there. Call it only
  // while something else keeps the request (a RequestRef).
  virtual void Cancel(core::Request& request) = 0;

  // Memory that clients share with the server; outlives every request.
  virtual memory::RegionTable& regions() = 0;

  // The metrics page in Prometheus text format.
  virtual std::string MetricsText() = 0;

  // Who is traced, and the settings of that. Null: nobody ever.
  virtual observe::Tracing* tracing() { return nullptr; }
};

}  // namespace nereid::service
