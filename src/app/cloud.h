// SPDX-License-Identifier: Apache-2.0
// The entry points that the clouds expect: their settings, which come from flags and from the
// environment that the clouds set, and their servers.
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

// One cloud's entry point: whether and where it listens.
struct CloudServiceOptions {
  bool is_allowed = false;
  std::string address = "0.0.0.0";
  uint16_t port = 8080;
  int thread_count = 0;  // 0: chosen from the CPUs
};

// Both entry points, as flags and environment give them.
struct CloudOptions {
  CloudServiceOptions sagemaker;
  // Ports that the other services must keep to.
  std::optional<std::pair<uint16_t, uint16_t>> safe_ports;
  cloud::SagemakerOptions sagemaker_entry;
  CloudServiceOptions vertex_ai;
  cloud::VertexAiOptions vertex_ai_entry;
  // Where models are when no flag says so (AIP_STORAGE_URI).
  std::string storage;
};

// What the environment says; whether Vertex AI runs this container as its server is in
// `is_vertex_ai`.
struct CloudEnvironment {
  CloudOptions options;
  bool is_vertex_ai = false;
};
base::Result<CloudEnvironment> ReadCloudEnvironment();

// A folder of this process alone, which is a model repository: models are linked into it. Gone with
// the object. Confined to the main thread.
class LinkFolder {
 public:
  // Null when there can be none.
  static std::unique_ptr<LinkFolder> Create();
  ~LinkFolder();
  LinkFolder(const LinkFolder&) = delete;
  LinkFolder& operator=(const LinkFolder&) = delete;

  const std::string& path() const { return folder_.path; }

 private:
  explicit LinkFolder(base::TemporaryFolder folder) : folder_(std::move(folder)) {}
  const base::TemporaryFolder folder_;
};

// The servers of these entry points. Confined to the main thread.
class CloudServers {
 public:
  // Does not start anything. All but the number outlive the servers.
  CloudServers(const CloudOptions& options, size_t max_body_bytes, net::ReactorPool& reactors,
               service::Service& service, http::ApiHandler& api)
      : options_(options),
        max_body_bytes_(max_body_bytes),
        reactors_(reactors),
        service_(service),
        api_(api) {}

  base::Status StartSagemaker();
  // Once models are loaded: it serves one of them.
  base::Status StartVertexAi();
  void StopAccepting();
  bool Drain(base::TimePoint deadline);

 private:
  base::Result<std::unique_ptr<http1::HttpServer>> Start(const CloudServiceOptions& options,
                                                         http1::HttpHandler& handler) const;

  const CloudOptions& options_;
  const size_t max_body_bytes_;
  net::ReactorPool& reactors_;
  service::Service& service_;
  http::ApiHandler& api_;
  std::unique_ptr<cloud::SagemakerHandler> sagemaker_handler_;
  std::unique_ptr<cloud::VertexAiHandler> vertex_ai_handler_;
  std::unique_ptr<http1::HttpServer> sagemaker_;
  std::unique_ptr<http1::HttpServer> vertex_ai_;
};

}  // namespace nereid::app
