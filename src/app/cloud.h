// SPDX-License-Identifier: Apache-2.0
// The entry points for cloud services: their settings, which come from flags and from the
// environment that the services set, and their servers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "cloud/sagemaker.h"
#include "cloud/vertex_ai.h"
#include "http1/http_server.h"
#include "net/reactor.h"

namespace nereid::app {

// One service's entry point: whether and where it listens.
struct CloudServiceOptions {
  bool is_allowed = false;
  std::string address = "0.0.0.0";
  uint16_t port = 8080;
  int thread_count = 0;  // 0: chosen from the number of CPUs
};

// Both entry points, as set by flags and environment.
struct CloudOptions {
  CloudServiceOptions sagemaker;
  // The range of ports that the other servers must use.
  std::optional<std::pair<uint16_t, uint16_t>> safe_ports;
  cloud::SagemakerOptions sagemaker_entry;
  CloudServiceOptions vertex_ai;
  cloud::VertexAiOptions vertex_ai_entry;
  // The model repository if no flag names one (AIP_STORAGE_URI).
  std::string storage;
};

// The settings in the environment, and whether Vertex AI runs this container.
struct CloudEnvironment {
  CloudOptions options;
  bool is_vertex_ai = false;
};
base::Result<CloudEnvironment> ReadCloudEnvironment();

// A temporary folder that is a model repository: models are linked into it. The destructor removes
// it. Confined to the main thread.
class LinkFolder {
 public:
  // Returns null if the folder cannot be made.
  static std::unique_ptr<LinkFolder> Create();
  ~LinkFolder();
  LinkFolder(const LinkFolder&) = delete;
  LinkFolder& operator=(const LinkFolder&) = delete;

  const std::string& path() const { return folder_.path; }

 private:
  explicit LinkFolder(base::TemporaryFolder folder) : folder_(std::move(folder)) {}
  const base::TemporaryFolder folder_;
};

// The servers of the entry points. Confined to the main thread.
class CloudServers {
 public:
  // Starts nothing. `server` has what all HTTP servers have in common. The references outlive the
  // servers.
  CloudServers(const CloudOptions& options, http1::HttpServerOptions server,
               net::ReactorPool& reactors, service::Service& service, http::ApiHandler& api)
      : options_(options),
        server_(std::move(server)),
        reactors_(reactors),
        service_(service),
        api_(api) {}

  base::Status StartSagemaker();
  // Called after models are loaded, because it serves one of them.
  base::Status StartVertexAi();
  void StopAccepting();
  bool Drain(base::TimePoint deadline);

 private:
  base::Result<std::unique_ptr<http1::HttpServer>> Start(const CloudServiceOptions& options,
                                                         http1::HttpHandler& handler) const;

  const CloudOptions& options_;
  const http1::HttpServerOptions server_;
  net::ReactorPool& reactors_;
  service::Service& service_;
  http::ApiHandler& api_;
  std::unique_ptr<cloud::SagemakerHandler> sagemaker_handler_;
  std::unique_ptr<cloud::VertexAiHandler> vertex_ai_handler_;
  std::unique_ptr<http1::HttpServer> sagemaker_;
  std::unique_ptr<http1::HttpServer> vertex_ai_;
};

}  // namespace nereid::app
