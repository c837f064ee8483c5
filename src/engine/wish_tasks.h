// SPDX-License-Identifier: Apache-2.0
// Loads and unloads models as the generation files ask for, each model on a thread of its own, so
// that a model that takes minutes to load keeps no other waiting.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "base/unique_function.h"

namespace nereid::engine {

// Fulfils one wish for a model at a time, in their order. A wish that another one overtakes before
// its turn is left out. Thread-safe.
class WishTasks {
 public:
  // What is done with models. Called on any thread.
  struct Actions {
    // Loads or unloads a model. Blocks.
    std::function<base::Status(const std::string& model, bool is_loaded)> fulfil;
    // Ends a load in progress early, which `fulfil` then returns from.
    std::function<void(const std::string& model)> cancel_load;
    // Runs work on a thread for work that blocks. The work is over before this object ends.
    std::function<void(base::UniqueFunction<void()> work)> run;
  };

  explicit WishTasks(Actions actions) : actions_(std::move(actions)) {}

  void Add(const std::string& model, bool is_loaded);
  // Returns when all wishes so far are fulfilled or have failed.
  void WaitUntilIdle();

 private:
  void Work(const std::string& model);
  // Returns what is to be done next with a model; nothing if its task is over.
  std::optional<bool> Next(const std::string& model);

  const Actions actions_;
  base::Mutex mutex_;
  base::CondVar idle_;
  // The models with a task, and what is asked for each next.
  std::map<std::string, std::optional<bool>> asked_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::engine
