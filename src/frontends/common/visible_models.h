// SPDX-License-Identifier: Apache-2.0
// The server as a sender sees it who may use some of its models only: lists leave out the others.
// Requests that name a model are checked before they get here.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "access/grant.h"
#include "service/service.h"

namespace nereid::common {

// Thread-safe. `service` outlives it.
class VisibleModels final : public service::Service {
 public:
  // A null grant sees everything.
  VisibleModels(service::Service& service, access::GrantRef grant)
      : service_(service), grant_(std::move(grant)) {}

  std::vector<service::IndexEntry> RepositoryIndex(bool only_ready) override {
    return Visible(service_.RepositoryIndex(only_ready));
  }
  base::Result<std::vector<service::ModelStatistics>> ReadStatistics(
      std::string_view name, std::string_view version) override {
    auto all = service_.ReadStatistics(name, version);
    if (!all.ok()) return all.status();
    return Visible(*std::move(all));
  }

  bool IsLive() const override { return service_.IsLive(); }
  bool IsReady() const override { return service_.IsReady(); }
  bool ReadinessMayBlock() const override { return service_.ReadinessMayBlock(); }
  const service::ServerMetadata& metadata() const override { return service_.metadata(); }
  base::Result<core::ModelHandle> FindModel(std::string_view name,
                                            std::string_view version) override {
    return service_.FindModel(name, version);
  }
  bool LoadsOnDemand(std::string_view name) override { return service_.LoadsOnDemand(name); }
  void AwaitModel(std::string_view name, std::string_view version, ModelWaiter done) override {
    service_.AwaitModel(name, version, std::move(done));
  }
  base::Result<bool> IsModelReady(std::string_view name, std::string_view version) override {
    return service_.IsModelReady(name, version);
  }
  base::Result<service::ModelMetadata> DescribeModel(std::string_view name,
                                                     std::string_view version) override {
    return service_.DescribeModel(name, version);
  }
  base::Result<std::shared_ptr<const config::ModelConfig>> GetModelConfig(
      std::string_view name, std::string_view version) override {
    return service_.GetModelConfig(name, version);
  }
  base::Status LoadModel(std::string_view name, const service::LoadOptions& options) override {
    return service_.LoadModel(name, options);
  }
  base::Status UnloadModel(std::string_view name, bool unload_dependents) override {
    return service_.UnloadModel(name, unload_dependents);
  }
  void RunBlocking(base::UniqueFunction<void()> work) override {
    service_.RunBlocking(std::move(work));
  }
  void Infer(core::RequestPtr request) override { service_.Infer(std::move(request)); }
  void Cancel(core::Request& request) override { service_.Cancel(request); }
  memory::RegionTable& regions() override { return service_.regions(); }
  std::string MetricsText() override { return service_.MetricsText(); }
  service::LoadTotals ReadLoadTotals() override { return service_.ReadLoadTotals(); }
  std::string PluginMetricsText(const std::string& family) override {
    return service_.PluginMetricsText(family);
  }
  observe::Tracing* tracing() override { return service_.tracing(); }

 private:
  template <typename Entry>
  std::vector<Entry> Visible(std::vector<Entry> entries) const {
    if (access::SeesAllModels(grant_.get())) return entries;
    std::erase_if(entries,
                  [this](const Entry& entry) { return !grant_->models.Allows(entry.name); });
    return entries;
  }

  service::Service& service_;
  const access::GrantRef grant_;
};

}  // namespace nereid::common
