// SPDX-License-Identifier: Apache-2.0
#include "engine/testing/traffic_fixture.h"

namespace nereid::engine {

void ReplySink::Send(core::ResponsePtr response, bool /*is_final*/) {
  Reply reply;
  reply.version = response->request().model->version();
  reply.error = response->error().message();
  if (reply.error.empty()) std::memcpy(&reply.value, response->output(0).data, sizeof(float));
  base::MutexLock lock(mutex_);
  replies_.push_back(std::move(reply));
}

void ReplySink::OnRequestGone() {
  base::MutexLock lock(mutex_);
  ++gone_;
  changed_.NotifyAll();
}

bool ReplySink::WaitForGone(size_t count) {
  const base::TimePoint deadline = InAMinute();
  base::MutexLock lock(mutex_);
  while (gone_ < count) {
    if (!changed_.WaitUntil(mutex_, deadline)) return gone_ >= count;
  }
  return true;
}

std::vector<Reply> ReplySink::replies() const {
  base::MutexLock lock(mutex_);
  return replies_;
}

void Answers::SetValue(const std::string& version, float value) {
  base::MutexLock lock(mutex_);
  versions_[version].value = value;
}

void Answers::SetError(const std::string& version, const std::string& error) {
  base::MutexLock lock(mutex_);
  versions_[version].error = error;
}

void Answers::Hold(const std::string& version) {
  base::MutexLock lock(mutex_);
  versions_[version].holds = true;
}

void Answers::LetGo(const std::string& version) {
  std::vector<core::RequestPtr> held;
  float value = 0;
  std::string error;
  {
    base::MutexLock lock(mutex_);
    Behaviour& behaviour = versions_[version];
    behaviour.holds = false;
    held.swap(behaviour.held);
    value = behaviour.value;
    error = behaviour.error;
  }
  for (core::RequestPtr& request : held) ResponseCopy(std::move(request), value, error);
}

bool Answers::WaitForHeld(const std::string& version, size_t count) {
  const base::TimePoint deadline = InAMinute();
  base::MutexLock lock(mutex_);
  while (versions_[version].held.size() < count) {
    if (!changed_.WaitUntil(mutex_, deadline)) return versions_[version].held.size() >= count;
  }
  return true;
}

void Answers::SetSequence(const std::string& version, uint64_t id, bool is_in_progress) {
  base::MutexLock lock(mutex_);
  if (is_in_progress) {
    versions_[version].sequences.insert(id);
  } else {
    versions_[version].sequences.erase(id);
  }
}

void Answers::Inspect(const std::string& version,
                      std::function<void(const core::Request&)> inspect) {
  base::MutexLock lock(mutex_);
  versions_[version].inspect = std::move(inspect);
}

void Answers::Take(const std::string& version, core::RequestPtr request) {
  float value = 0;
  std::string error;
  std::function<void(const core::Request&)> inspect;
  {
    base::MutexLock lock(mutex_);
    Behaviour& behaviour = versions_[version];
    if (behaviour.holds) {
      behaviour.held.push_back(std::move(request));
      changed_.NotifyAll();
      return;
    }
    value = behaviour.value;
    error = behaviour.error;
    inspect = behaviour.inspect;
  }
  if (inspect) inspect(*request);
  ResponseCopy(std::move(request), value, error);
}

bool Answers::HasSequence(const std::string& version, uint64_t id) const {
  base::MutexLock lock(mutex_);
  const auto found = versions_.find(version);
  return found != versions_.end() && found->second.sequences.contains(id);
}

void Answers::ResponseCopy(core::RequestPtr request, float value, const std::string& error) {
  if (!error.empty()) {
    return core::CompleteWithError(std::move(request), base::InternalError(error));
  }
  core::ResponsePtr response = core::Response::Create(*request);
  constexpr int64_t kShape[] = {1};
  core::ResponseOutput& output = *response->AddOutput("OUTPUT0", tensor::DataType::kFp32, kShape);
  EXPECT_TRUE(response->AllocateBuffer(output, sizeof(value), {}, false).ok());
  std::memcpy(output.data, &value, sizeof(value));
  core::Complete(std::move(request), std::move(response));
}

TrafficFixture::TrafficFixture() {
  factory_.Serve([this](const std::string& version,
                        core::RequestPtr request) { answers_.Take(version, std::move(request)); },
                 [this](const std::string& version, uint64_t id) {
                   return answers_.HasSequence(version, id);
                 });
  director_ = std::make_unique<TrafficDirector>(*life_cycle_, *this, kRequestsPerModel);
}

void TrafficFixture::TearDown() {
  std::vector<std::shared_ptr<const Traffic>> rules;
  for (const auto& [id, record] : life_cycle_->Table().models()) {
    if (record->traffic != nullptr && record->traffic->has_shadow()) {
      rules.push_back(record->traffic);
    }
  }
  EXPECT_EQ(life_cycle_->UnloadAll(InAMinute()).work, std::vector<std::string>());
  EXPECT_TRUE(WaitForMirrors());
  for (const auto& traffic : rules) {
    EXPECT_EQ(traffic->tally().in_flight.load(), 0u);
    EXPECT_EQ(traffic->tally().bytes_in_flight.load(), 0u);
  }
  director_.reset();
  LifeCycleFixture::TearDown();
}

std::string TrafficFixture::LoadVersions(const std::vector<int64_t>& versions,
                                         const std::map<std::string, std::string>& parameters,
                                         const std::string& name) {
  FakeModel model(PlainConfig(name));
  model.config.parameters.insert(parameters.begin(), parameters.end());
  std::map<int64_t, int64_t> times;
  for (const int64_t version : versions) times[version] = 1;
  return Load(model.With(AllVersions()).With(times));
}

std::string TrafficFixture::SetCanary(int64_t version, double percent, const std::string& label) {
  service::TrafficChange change;
  change.canary = service::CanaryChange{
      .version = version, .percent = percent, .header = "x-user", .label = label};
  return Change(change);
}

std::string TrafficFixture::SetLabels(const std::map<std::string, std::optional<int64_t>>& labels) {
  service::TrafficChange change;
  change.labels = labels;
  return Change(change);
}

std::string TrafficFixture::SetShadow(service::ShadowChange shadow) {
  service::TrafficChange change;
  change.shadow = std::move(shadow);
  return Change(change);
}

service::ShadowCounts TrafficFixture::Counts(const std::string& name) const {
  const auto traffic = life_cycle_->Table().TrafficOf(name);
  return traffic == nullptr ? service::ShadowCounts() : traffic->Read().shadow_counts;
}

core::RequestPtr TrafficFixture::Make(const Ask& ask, ReplySink& sink) const {
  core::RequestPtr request = core::Request::Create(sink);
  request->model = Pin(ask.name, ask.version);
  core::RequestInput& input = request->AddInput("INPUT0", tensor::DataType::kFp32);
  input.shape = {1};
  input.Append(
      {.data = std::as_bytes(std::span(&input_, 1)).data(), .size = sizeof(input_), .where = {}});
  request->correlation_id = ask.sequence;
  return request;
}

void TrafficFixture::Direct(core::Request& request, const std::string& key) {
  if (!request.model.follows_rules()) return;
  director_->Direct(request, [&key](std::string_view /*name*/) { return std::string_view(key); });
}

bool TrafficFixture::Send(const Ask& ask, ReplySink& sink) {
  core::RequestPtr request = Make(ask, sink);
  if (!request->model) return false;
  Direct(*request, ask.key);
  Submit(std::move(request));
  return true;
}

Reply TrafficFixture::Request(const Ask& ask) {
  ReplySink sink;
  if (!Send(ask, sink))
    return {.version = -1, .value = 0, .error = FindError(ask.name, ask.version)};
  EXPECT_TRUE(sink.WaitForGone(1));
  const std::vector<Reply> replies = sink.replies();
  EXPECT_EQ(replies.size(), 1u);
  return replies.empty() ? Reply() : replies.front();
}

int TrafficFixture::Count(int64_t version, int count, const Ask& ask) {
  int found = 0;
  for (int i = 0; i < count; ++i) found += Request(ask).version == version ? 1 : 0;
  return found;
}

}  // namespace nereid::engine
