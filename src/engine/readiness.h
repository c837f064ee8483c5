// SPDX-License-Identifier: Apache-2.0
// Whether the loaded models are ready, and why not: what the life cycle, the watchdog and the
// models' backends say.
#pragma once

#include "base/status.h"
#include "core/model.h"
#include "engine/health.h"
#include "engine/life_cycle.h"
#include "service/service.h"

namespace nereid::engine {

// Thread-safe.
class Readiness {
 public:
  // Both outlive this.
  Readiness(const LifeCycle& life_cycle, const Health& health)
      : life_cycle_(life_cycle), health_(health) {}

  // Whether all models that were tried are ready. Asks backends, see MayBlock.
  bool AreModelsReady() const;
  // Whether a backend has to be asked, which may take time.
  bool MayBlock() const;
  // Whether a loaded model is ready. Asks its backend, and logs why if it is not.
  bool IsReady(const core::Model& model) const;

  // Returns one check with the problems of all models. Asks backends.
  service::HealthCheck CheckModels() const;
  // Adds to two checks why a loaded model is not ready: because no instance can execute, or because
  // its backend says so.
  void CheckModel(const core::Model& model, service::HealthCheck& instances,
                  service::HealthCheck& backend) const;

 private:
  base::Status StatusOf(const core::Model& model) const;
  bool AreBackendsReady() const;

  const LifeCycle& life_cycle_;
  const Health& health_;
};

}  // namespace nereid::engine
