// SPDX-License-Identifier: Apache-2.0
#include "app/cloud.h"

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fmt/core.h>

#include "app/flag_values.h"
#include "base/log.h"

namespace nereid::app {
namespace {

std::string Variable(const char* name, const char* otherwise = "") {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

base::Status ReadPort(const char* name, uint16_t& port) {
  const std::string text = Variable(name);
  if (text.empty()) return base::OkStatus();
  const auto number = ReadInteger(text, 0, 65535);
  if (!number.ok()) {
    return number.status().WithPrefix(fmt::format("the environment variable {}={}: ", name, text));
  }
  port = static_cast<uint16_t>(*number);
  return base::OkStatus();
}

}  // namespace

base::Result<CloudEnvironment> ReadCloudEnvironment() {
  CloudEnvironment environment;
  CloudOptions& options = environment.options;
  environment.is_vertex_ai = Variable("AIP_MODE") == "PREDICTION";
  options.vertex_ai.is_allowed = environment.is_vertex_ai;
  NEREID_RETURN_IF_ERROR(ReadPort("AIP_HTTP_PORT", options.vertex_ai.port));
  options.vertex_ai_entry.predict_route = Variable("AIP_PREDICT_ROUTE");
  options.vertex_ai_entry.health_route = Variable("AIP_HEALTH_ROUTE");
  options.storage = Variable("AIP_STORAGE_URI");

  NEREID_RETURN_IF_ERROR(ReadPort("SAGEMAKER_BIND_TO_PORT", options.sagemaker.port));
  cloud::SagemakerOptions& sagemaker = options.sagemaker_entry;
  sagemaker.default_model =
      Variable("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", sagemaker.default_model.c_str());
  sagemaker.models.archives =
      Variable("NEREID_SAGEMAKER_ARCHIVES", sagemaker.models.archives.c_str());
  if (Variable("SAGEMAKER_TRITON_PING_MODE") == "live") {
    sagemaker.ping = http::RouteKind::kServerLive;
  }
  NEREID_ASSIGN_OR_RETURN(sagemaker.inference, cloud::ParseSagemakerInference(Variable(
                                                   "SAGEMAKER_TRITON_INFERENCE_TYPE", "infer")));
  return environment;
}

std::unique_ptr<LinkFolder> LinkFolder::Create() {
  base::Result<base::TemporaryFolder> made = base::MakeTemporaryFolder("models");
  if (!made.ok()) return nullptr;
  return std::unique_ptr<LinkFolder>(new LinkFolder(*std::move(made)));
}

LinkFolder::~LinkFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_.path, ignored);  // does not follow links
}

base::Result<std::unique_ptr<http1::HttpServer>> CloudServers::Start(
    const CloudServiceOptions& options, http1::HttpHandler& handler) const {
  http1::HttpServerOptions server = server_;
  server.listener.address = options.address;
  server.listener.port = options.port;
  return http1::HttpServer::Start(server, reactors_, handler);
}

base::Status CloudServers::StartSagemaker() {
  if (!options_.sagemaker.is_allowed) return base::OkStatus();
  sagemaker_handler_ =
      std::make_unique<cloud::SagemakerHandler>(options_.sagemaker_entry, api_, service_);
  NEREID_ASSIGN_OR_RETURN(sagemaker_, Start(options_.sagemaker, *sagemaker_handler_));
  NEREID_LOG(kInfo, "Started Sagemaker HTTPService at {}:{}", options_.sagemaker.address,
             sagemaker_->port());
  return base::OkStatus();
}

base::Status CloudServers::StartVertexAi() {
  if (!options_.vertex_ai.is_allowed) return base::OkStatus();
  NEREID_ASSIGN_OR_RETURN(vertex_ai_handler_,
                          cloud::VertexAiHandler::Create(options_.vertex_ai_entry, api_, service_));
  NEREID_ASSIGN_OR_RETURN(vertex_ai_, Start(options_.vertex_ai, *vertex_ai_handler_));
  NEREID_LOG(kInfo, "Started Vertex AI HTTPService at {}:{}", options_.vertex_ai.address,
             vertex_ai_->port());
  return base::OkStatus();
}

void CloudServers::StopAccepting() {
  for (http1::HttpServer* server : {sagemaker_.get(), vertex_ai_.get()}) {
    if (server != nullptr) server->StopAccepting();
  }
}

bool CloudServers::Drain(base::TimePoint deadline) {
  bool all_finished = true;
  for (http1::HttpServer* server : {sagemaker_.get(), vertex_ai_.get()}) {
    if (server != nullptr) all_finished &= server->Drain(deadline);
  }
  return all_finished;
}

}  // namespace nereid::app
