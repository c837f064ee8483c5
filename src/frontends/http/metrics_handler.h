// SPDX-License-Identifier: Apache-2.0
// The metrics page, for a listener of its own.
#pragma once

#include <string>

#include "access/gate.h"
#include "base/task_pool.h"
#include "http/json_handler.h"
#include "http1/http_server.h"
#include "net/reactor.h"
#include "net/tls.h"
#include "service/service.h"

namespace nereid::http {

// GET /metrics, compressed for clients that accept it, which is done on a worker thread.
// Thread-safe; `service` and `pool`, on which the server runs, outlive it.
class MetricsHandler final : public JsonHandler {
 public:
  // `gate` and `tls`, which is null for a server without TLS, may be null and outlive the handler.
  MetricsHandler(net::ReactorPool& pool, service::Service& service, access::Gate* gate = nullptr,
                 const net::TlsReloads* tls = nullptr)
      : workers_(pool.workers()), service_(service), gate_(gate), tls_(tls) {}
  void Handle(http1::HttpExchangePtr exchange) override;

 private:
  std::string Text() const;

  base::TaskPool& workers_;
  service::Service& service_;
  access::Gate* const gate_;
  const net::TlsReloads* const tls_;
};

}  // namespace nereid::http
