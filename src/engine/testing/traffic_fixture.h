// SPDX-License-Identifier: Apache-2.0
// Models whose versions answer as a test says, and clients that send them requests along the path
// of a frontend: find the version, direct the request, submit it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "core/response.h"
#include "core/submitter.h"
#include "engine/testing/life_cycle_fixture.h"
#include "engine/traffic_director.h"

namespace nereid::engine {

// An answer as its client sees it.
struct Reply {
  int64_t version = 0;
  float value = 0;
  std::string error;
};

// Receives the answers to any number of requests. Thread-safe; outlives its requests.
class ReplySink final : public core::ResponseSink {
 public:
  void Send(core::ResponsePtr response, bool is_final) override;
  void OnRequestGone() override;
  // Waits (up to a minute) until `count` requests are gone; returns false on timeout.
  bool WaitForGone(size_t count);
  std::vector<Reply> replies() const;

 private:
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<Reply> replies_ NEREID_GUARDED_BY(mutex_);
  size_t gone_ NEREID_GUARDED_BY(mutex_) = 0;
};

// Answers requests as one output "OUTPUT0" with the version's value. Versions are called "m:1".
// Thread-safe.
class Answers {
 public:
  void SetValue(const std::string& version, float value);
  // The empty text lets the version answer again.
  void SetError(const std::string& version, const std::string& error);
  // Keeps the requests to the version until LetGo.
  void Hold(const std::string& version);
  void LetGo(const std::string& version);
  // Waits (up to a minute) until `count` requests are held; returns false on timeout.
  bool WaitForHeld(const std::string& version, size_t count);
  // Begins or ends a sequence.
  void SetSequence(const std::string& version, uint64_t id, bool is_in_progress);
  // Calls `inspect` for each request to the version before it is answered, under no lock.
  void Inspect(const std::string& version, std::function<void(const core::Request&)> inspect);

  void Take(const std::string& version, core::RequestPtr request);
  bool HasSequence(const std::string& version, uint64_t id) const;

 private:
  struct Behaviour {
    float value = 1;
    std::string error;
    bool holds = false;
    std::vector<core::RequestPtr> held;
    std::set<uint64_t> sequences;
    std::function<void(const core::Request&)> inspect;
  };

  static void ResponseCopy(core::RequestPtr request, float value, const std::string& error);

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::map<std::string, Behaviour> versions_ NEREID_GUARDED_BY(mutex_);
};

// What a request of a test says besides its data.
struct Ask {
  std::string name = "m";
  std::string version;  // or a label
  std::string key;      // the value of every header
  uint64_t sequence = 0;
};

class TrafficFixture : public LifeCycleFixture, public core::Submitter {
 protected:
  static constexpr uint64_t kRequestsPerModel = 100;

  TrafficFixture();
  // After every test, no copy is on its way, and none has kept its place.
  void TearDown() override;

  // Loads these versions of a model, with parameters for versions.
  std::string LoadVersions(const std::vector<int64_t>& versions,
                           const std::map<std::string, std::string>& parameters = {},
                           const std::string& name = "m");
  // Returns "OK" or the error.
  std::string Change(const service::TrafficChange& change, const std::string& name = "m") {
    return life_cycle_->ChangeTraffic(name, change).ToString();
  }
  std::string SetCanary(int64_t version, double percent, const std::string& label = "");
  std::string SetLabels(const std::map<std::string, std::optional<int64_t>>& labels);
  std::string SetShadow(service::ShadowChange shadow);
  service::ShadowCounts Counts(const std::string& name = "m") const;

  // Makes a request with the input 5, pinned to the version that `ask` leads to, whose answer goes
  // to `sink`. The handle is empty if there is no such version.
  core::RequestPtr Make(const Ask& ask, ReplySink& sink) const;
  // Directs the request as a frontend does.
  void Direct(core::Request& request, const std::string& key = "");
  // Sends a request to `sink`; returns false if no version is found.
  bool Send(const Ask& ask, ReplySink& sink);
  // Sends a request and waits for its answer.
  Reply Request(const Ask& ask);
  // Returns how many of `count` such requests version `version` answers.
  int Count(int64_t version, int count, const Ask& ask);
  bool WaitForMirrors() { return director_->WaitUntilIdle(InAMinute()); }

  base::Result<core::ModelHandle> PinModel(std::string_view name, int64_t version) override {
    return life_cycle_->FindForStep(name, version);
  }
  void Submit(core::RequestPtr request) override {
    core::Scheduler& scheduler = request->model->scheduler();
    scheduler.Enqueue(std::move(request));
  }
  void CancelSubmitted(core::Request& request) override { request.Cancel(); }

  Answers answers_;
  std::unique_ptr<TrafficDirector> director_;
  const float input_ = 5;
};

}  // namespace nereid::engine
