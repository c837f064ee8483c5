// SPDX-License-Identifier: Apache-2.0
#include "engine/load_attempt.h"

#include <utility>

#include "base/log.h"
#include "repository/advice.h"

namespace nereid::engine {

base::Status LoadAttempt::CheckWanted() const {
  if (!is_cancelled_.load()) return base::OkStatus();
  return base::CancelledError(
      "the load was given up, because the model was unloaded meanwhile or the server stops");
}

bool LoadAttempt::AddResult(int64_t version, const base::Status& status,
                            std::unique_ptr<LoadedVersion> made) {
  base::MutexLock lock(mutex_);
  if (!status.ok()) {
    results_.failed[version] = status.ToString();
  } else if (made != nullptr) {
    results_.loaded[version] = std::move(made);
  } else {
    ++results_.changed;
  }
  return results_.loaded.size() + results_.failed.size() + results_.changed == work_.loading.size();
}

LoadAttempt::Results LoadAttempt::TakeResults() {
  base::MutexLock lock(mutex_);
  return std::move(results_);
}

void LoadAttempt::Finish(base::Status status) {
  base::MutexLock lock(mutex_);
  status_ = std::move(status);
  is_finished_ = true;
  finished_.NotifyAll();
}

base::Status LoadAttempt::Wait() {
  base::MutexLock lock(mutex_);
  while (!is_finished_) finished_.Wait(mutex_);
  return status_;
}

base::Result<std::unique_ptr<LoadedVersion>> MakeVersion(const ModelFactory& factory,
                                                         const LoadAttempt& load, int64_t version,
                                                         unsigned retries) {
  const LoadJob& job = load.job();
  const bool is_ensemble = job.source->config->ensemble_scheduling() != nullptr;
  for (;; --retries) {
    NEREID_RETURN_IF_ERROR(load.CheckWanted());
    base::Result<std::unique_ptr<ServableModel>> made =
        is_ensemble ? factory.LoadEnsemble(*job.source, version, job.parts)
                    : factory.Load(*job.source, version, [&load] { return load.CheckWanted(); });
    if (made.ok()) return std::make_unique<LoadedVersion>(job.source, *std::move(made), job.parts);
    const base::Status why(made.status().code(), repository::WithAdvice(made.status().message(),
                                                                        job.source->config_advice));
    if (retries == 0) return why;
    NEREID_LOG(kError, "failed to load '{}' version {}: {}", load.id().Text(), version,
               why.ToString());
  }
}

}  // namespace nereid::engine
