// SPDX-License-Identifier: Apache-2.0
// What models on demand (OnDemand) need of the server: an interface, so that they can be tested
// without models. EngineDemandHost is the server's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "core/model_handle.h"
#include "engine/eviction_policy.h"
#include "engine/life_cycle.h"
#include "engine/memory_meter.h"
#include "engine/model_control.h"
#include "repository/model_scanner.h"
#include "service/service.h"

namespace nereid::engine {

// What a loaded model does. A value type.
struct ModelActivity {
  // Of each version, the requests that have ended since it was loaded.
  std::map<int64_t, uint64_t> requests;
  bool is_busy = false;         // with requests or sequences
  std::set<std::string> parts;  // of an ensemble: the models that it needs
};
using ModelActivities = std::map<std::string, ModelActivity>;

// Thread-safe. Methods block unless they say otherwise.
class DemandHost {
 public:
  virtual ~DemandHost() = default;

  // Returns the names of the models in the repositories, or nothing if those cannot be read now.
  virtual std::optional<std::set<std::string>> ListModels() = 0;
  virtual base::Status Load(const std::string& name, const service::LoadOptions& options) = 0;
  virtual base::Status Unload(const std::string& name, bool with_parts) = 0;
  // Unloads the model, and the parts of an ensemble that no other model needs, and waits until
  // their memory is free. Returns false, without a change, if any of them is busy or the model is
  // not loaded.
  virtual bool UnloadIdle(const std::string& name) = 0;
  // Waits, for a limited time, until the memory of unloaded and replaced versions of the model and
  // its parts is free; returns whether it is.
  virtual bool AwaitTeardown(const std::string& name) = 0;
  // Whether the model is loaded with a configuration or files that came with a load request: the
  // next load after an unload would not bring them back.
  virtual bool IsOverridden(const std::string& name) = 0;
  // Returns the models that an ensemble needs, loaded or not, as far as they are known.
  virtual std::set<std::string> PartsOf(const std::string& name) = 0;
  // Pins a version that is ready. Does not block.
  virtual base::Result<core::ModelHandle> Find(std::string_view name, std::string_view version) = 0;
  // Pins any version that is ready; empty if the model is not loaded. Does not block.
  virtual core::ModelHandle FindAny(std::string_view name) = 0;
  // Returns all models that are loaded.
  virtual ModelActivities Observe() = 0;
  // The kinds of memory that models may take: "CPU" first, then "GPU 0" and so on.
  virtual std::vector<std::string> MemoryKinds() = 0;
  // Returns how much of each kind is in use.
  virtual MemoryBytes MeasureMemory() = 0;
};

// The host that a server's models live in. Thread-safe.
class EngineDemandHost final : public DemandHost {
 public:
  // All outlive this.
  EngineDemandHost(const repository::ModelScanner& scanner, ModelControl& control,
                   LifeCycle& life_cycle, bool has_gpu_budget)
      : scanner_(scanner), control_(control), life_cycle_(life_cycle), meter_(has_gpu_budget) {}

  std::optional<std::set<std::string>> ListModels() override;
  base::Status Load(const std::string& name, const service::LoadOptions& options) override;
  base::Status Unload(const std::string& name, bool with_parts) override;
  bool UnloadIdle(const std::string& name) override;
  bool AwaitTeardown(const std::string& name) override;
  bool IsOverridden(const std::string& name) override { return control_.IsOverridden(name); }
  std::set<std::string> PartsOf(const std::string& name) override { return control_.PartsOf(name); }
  base::Result<core::ModelHandle> Find(std::string_view name, std::string_view version) override;
  core::ModelHandle FindAny(std::string_view name) override { return life_cycle_.FindAny(name); }
  ModelActivities Observe() override;
  std::vector<std::string> MemoryKinds() override { return meter_.kinds(); }
  MemoryBytes MeasureMemory() override { return meter_.Measure(); }

 private:
  const repository::ModelScanner& scanner_;
  ModelControl& control_;
  LifeCycle& life_cycle_;
  MemoryMeter meter_;
};

}  // namespace nereid::engine
