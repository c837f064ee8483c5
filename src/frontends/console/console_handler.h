// SPDX-License-Identifier: Apache-2.0
// The console at /ui: the files of its page, and what the page asks beyond the v2 API, which are
// the routes of ConsoleRoutes().
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "access/gate.h"
#include "access/scope.h"
#include "base/task_pool.h"
#include "common/restrictions.h"
#include "console/assets.h"
#include "console/data_route.h"
#include "console/recorder.h"
#include "http/json_handler.h"
#include "http1/http_server.h"
#include "service/service.h"

namespace nereid::console {

// Whether a path is the console's.
bool IsConsolePath(std::string_view path);

// What a listener serves the console with.
struct ConsoleOptions {
  // Knows who may do what; null: everybody may do everything. Outlives the handler.
  access::Gate* gate = nullptr;
  // The routes that need a header.
  common::Restrictions restrictions;
  std::vector<std::string> own_names = {};  // http::OwnNames
  std::span<const Asset> assets = Assets();
  // Returns, as JSON, where each value of a loaded model's configuration comes from. May block.
  // Empty: nobody knows.
  std::function<base::Result<std::string>(const std::string& model)> explain;
};

// Thread-safe. Outlives its server.
class ConsoleHandler final : public http::JsonHandler {
 public:
  // The references outlive the handler. `workers` compress what is large.
  ConsoleHandler(ConsoleOptions options, service::Service& service, Recorder& recorder,
                 base::TaskPool& workers)
      : options_(std::move(options)), service_(service), recorder_(recorder), workers_(workers) {}

  // Serves requests whose path IsConsolePath; others get 404.
  void Handle(http1::HttpExchangePtr exchange) override;

 private:
  bool Admit(http1::HttpExchangePtr& exchange, const DataRoute& route) const;
  void HandleData(http1::HttpExchangePtr exchange, std::string_view path, bool is_head);
  void SendAsset(http1::HttpExchangePtr exchange, std::string_view path) const;
  void SendHistory(http1::HttpExchangePtr exchange);
  void SendModelLoad(http1::HttpExchangePtr exchange, std::string_view model);
  void SendSequences(http1::HttpExchangePtr exchange, std::string_view model);
  void SendExplanation(http1::HttpExchangePtr exchange, std::string_view model);
  void SendTraces(http1::HttpExchangePtr exchange);
  void SendTrace(http1::HttpExchangePtr exchange, std::string_view id);
  void StartLive(http1::HttpExchangePtr exchange);

  const ConsoleOptions options_;
  service::Service& service_;
  Recorder& recorder_;
  base::TaskPool& workers_;
};

}  // namespace nereid::console
