// SPDX-License-Identifier: Apache-2.0
#include "observe/recent_traces.h"

#include <algorithm>
#include <utility>

namespace nereid::observe {
namespace {

bool Has(const TracedRequest& request, std::string_view name) {
  return std::ranges::find(request.moments, name, &TracedMoment::name) != request.moments.end();
}

}  // namespace

// Returns the request of this id; null if there is no room for another one.
TracedRequest* RecentTraceBuilder::Find(uint64_t id) {
  const auto found = std::ranges::find(trace_.requests, id, &TracedRequest::id);
  if (found != trace_.requests.end()) return &*found;
  if (count_ >= kMaxMoments) {
    trace_.is_cut = true;
    return nullptr;
  }
  ++count_;
  TracedRequest& made = trace_.requests.emplace_back();
  made.id = id;
  return &made;
}

void RecentTraceBuilder::Describe(uint64_t id, uint64_t parent_id, std::string_view model,
                                  int64_t version, std::string_view request_id) {
  TracedRequest* const request = Find(id);
  if (request == nullptr) return;
  request->parent_id = parent_id;
  request->model = model.substr(0, kMaxText);
  request->version = version;
  request->request_id = request_id.substr(0, kMaxText);
}

void RecentTraceBuilder::Add(uint64_t id, std::string_view name, uint64_t ns) {
  TracedRequest* const request = Find(id);
  if (request == nullptr) return;
  // The end tells how long everything took, so there is always room for one.
  const bool is_end = name == "REQUEST_END" || name == "COMPUTE_END";
  if (count_ >= kMaxMoments && (!is_end || Has(*request, name))) {
    trace_.is_cut = true;
    return;
  }
  ++count_;
  request->moments.push_back({std::string(name.substr(0, kMaxText)), ns});
}

RecentTrace RecentTraceBuilder::Take(uint64_t root_id, int64_t unix_ms) {
  trace_.id = root_id;
  trace_.unix_ms = unix_ms;
  const auto root = std::ranges::find(trace_.requests, root_id, &TracedRequest::id);
  if (root != trace_.requests.end()) std::rotate(trace_.requests.begin(), root, root + 1);
  count_ = 0;
  return std::exchange(trace_, {});
}

void RecentTraces::Add(RecentTrace trace) {
  auto kept = std::make_shared<const RecentTrace>(std::move(trace));
  std::shared_ptr<const RecentTrace> oldest;  // destroyed outside the lock
  base::MutexLock lock(mutex_);
  traces_.push_front(std::move(kept));
  if (traces_.size() <= kMaxTraces) return;
  oldest = std::move(traces_.back());
  traces_.pop_back();
}

std::vector<std::shared_ptr<const RecentTrace>> RecentTraces::All() const {
  base::MutexLock lock(mutex_);
  return {traces_.begin(), traces_.end()};
}

std::shared_ptr<const RecentTrace> RecentTraces::Find(uint64_t id) const {
  base::MutexLock lock(mutex_);
  const auto found = std::ranges::find_if(traces_, [id](const auto& one) { return one->id == id; });
  return found == traces_.end() ? nullptr : *found;
}

}  // namespace nereid::observe
