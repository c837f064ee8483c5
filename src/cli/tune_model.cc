// SPDX-License-Identifier: Apache-2.0
#include "cli/tune_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "base/system_limits.h"
#include "cli/bench_run.h"
#include "cli/config_edit.h"
#include "cli/files.h"
#include "cli/json.h"

namespace nereid::cli {
namespace {

namespace fs = std::filesystem;

// A p99 of fewer requests is a matter of luck.
constexpr uint64_t kEnoughRequests = 200;
constexpr Seconds kMaxLevelTime{3};
constexpr Seconds kWarmUp{0.1};
// For a server that has just started: libraries prepare themselves in the first runs.
constexpr Seconds kFirstWarmUp{0.5};
constexpr Seconds kFirstTimeout{60};
// Larger batches take memory and hardly make a CPU faster.
constexpr int kMaxBatch = 128;
// With twice the requests in flight, a server that has anything left is faster by more.
constexpr double kStillRising = 1.03;
// Numbers of requests in flight whose ratio is less are not told apart.
constexpr double kFineEnough = 1.3;

// The parameter by which a backend takes its number of threads.
struct ThreadParameter {
  std::string_view backend;
  std::string_view parameter;
};
constexpr ThreadParameter kThreadParameters[] = {{"onnxruntime", "intra_op_thread_count"},
                                                 {"pytorch", "INTRA_OP_THREAD_COUNT"},
                                                 {"tensorflow", "TF_NUM_INTRA_THREADS"},
                                                 {"openvino", "INFERENCE_NUM_THREADS"}};

// Powers of two up to `limit`, and `limit` itself.
std::vector<int> PowersUpTo(int limit) {
  std::vector<int> powers;
  for (int power = 1; power < limit; power *= 2) powers.push_back(power);
  powers.push_back(limit);
  return powers;
}

std::string_view BackendOf(const rapidjson::Value& config) {
  const std::string_view backend = TextOf(config, "backend");
  if (!backend.empty()) return backend;
  const std::string_view platform = TextOf(config, "platform");
  return platform.substr(0, platform.find('_'));
}

int IntegerOf(const rapidjson::Value& object, std::string_view name) {
  const rapidjson::Value* const value = MemberOf(object, name);
  return value != nullptr && value->IsInt() ? value->GetInt() : 0;
}

// Returns what a completed configuration says about everything that may be varied.
TuneChoice PresentChoice(const rapidjson::Value& config, std::string_view thread_parameter) {
  TuneChoice present{.max_batch = IntegerOf(config, "max_batch_size")};
  const auto groups = ListOf(config, "instance_group");
  if (groups.Size() == 1) present.instances = IntegerOf(groups[0], "count");
  if (const rapidjson::Value* const batching = MemberOf(config, "dynamic_batching")) {
    present.delay_us = IntegerOf(*batching, "max_queue_delay_microseconds");
  }
  const rapidjson::Value* const parameters = MemberOf(config, "parameters");
  const rapidjson::Value* const threads =
      parameters == nullptr ? nullptr : MemberOf(*parameters, thread_parameter);
  if (threads != nullptr) {
    const std::string_view text = TextOf(*threads, "string_value");
    std::from_chars(text.data(), text.data() + text.size(), present.threads);
  }
  return present;
}

}  // namespace

base::Result<std::unique_ptr<TunedModel>> TunedModel::Create(const check::ModelView& model,
                                                             const TuneGoal& goal,
                                                             std::stop_token stop) {
  NEREID_ASSIGN_OR_RETURN(base::TemporaryFolder folder, base::MakeTemporaryFolder("tune"));
  std::unique_ptr<TunedModel> tuned(
      new TunedModel(model, goal, std::move(stop), std::move(folder)));
  NEREID_RETURN_IF_ERROR(tuned->MakeLinks());
  return tuned;
}

base::Status TunedModel::MakeLinks() {
  std::error_code error;
  fs::create_directory(ModelFolder(), error);
  for (const repository::Entry& entry : model_.entries) {
    if (error) break;
    if (entry.name == "config.pbtxt") continue;
    const fs::path from = fs::absolute(fs::path(model_.folder) / entry.name);
    const fs::path to = fs::path(ModelFolder()) / entry.name;
    if (fs::is_directory(from, error)) {
      fs::create_directory_symlink(from, to, error);
      continue;
    }
    // A server reads no file, such as one of labels, that a link puts outside of the model's
    // folder.
    fs::create_hard_link(from, to, error);
    if (error) fs::copy_file(from, to, error);
  }
  if (!error) return base::OkStatus();
  return base::InternalError(
      fmt::format("cannot make a copy of the model in {}: {}", folder_.path, error.message()));
}

std::string TunedModel::TextWith(const TuneChoice& choice) const {
  std::string text = model_.text;
  // What is so already stays unwritten: a patch says what matters.
  if (choice.instances > 0 && choice.instances != present_.instances) {
    const std::string count = fmt::format("{}", choice.instances);
    text = SetConfigField(std::move(text), "instance_group[0]", "count", count,
                          fmt::format("instance_group [ {{ count: {} }} ]\n", count));
  }
  if (choice.threads > 0 && choice.threads != present_.threads) {
    text =
        SetConfigParameter(std::move(text), thread_parameter_, fmt::format("{}", choice.threads));
  }
  if (choice.max_batch > 0 && choice.max_batch != present_.max_batch) {
    const std::string size = fmt::format("{}", choice.max_batch);
    text = SetConfigField(std::move(text), "", "max_batch_size", size,
                          fmt::format("max_batch_size: {}\n", size));
  }
  if (choice.delay_us >= 0 && choice.delay_us != present_.delay_us) {
    const std::string delay = fmt::format("{}", choice.delay_us);
    text = SetConfigField(
        std::move(text), "dynamic_batching", "max_queue_delay_microseconds", delay,
        fmt::format("dynamic_batching {{ max_queue_delay_microseconds: {} }}\n", delay));
  }
  return text;
}

std::string TunedModel::Describe(const TuneChoice& choice) const {
  if (choice == TuneChoice{}) return "as it is";
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (choice.instances > 0) {
    add(fmt::format("{} instance{}", choice.instances, choice.instances == 1 ? "" : "s"));
  }
  if (choice.threads > 0) {
    add(fmt::format("{} thread{}", choice.threads, choice.threads == 1 ? "" : "s"));
  }
  if (choice.max_batch > 0) add(fmt::format("batches to {}", choice.max_batch));
  if (choice.delay_us >= 0) add(fmt::format("delay {} us", choice.delay_us));
  return text;
}

base::Result<std::unique_ptr<ChildServer>> TunedModel::Serve(const TuneChoice& choice) {
  const std::string text = TextWith(choice);
  const std::string path = ModelFolder() + "/config.pbtxt";
  std::error_code ignored;
  fs::remove(path, ignored);
  // A model may go without a configuration.
  if (!text.empty()) NEREID_RETURN_IF_ERROR(WriteFile(path, text));
  return ChildServer::Start({folder_.path}, stop_);
}

BenchAddress TunedModel::AddressOf(const ChildServer& server) const {
  return {.server = {.url = server.http_url(), .timeout = goal_.timeout},
          .grpc_url = goal_.uses_grpc ? server.grpc_url() : std::string(),
          .model = model_.name,
          .version = {}};
}

base::Result<TuneSpace> TunedModel::ReadSpace() {
  NEREID_ASSIGN_OR_RETURN(const auto server, Serve({}));
  const BenchAddress address = AddressOf(*server);
  NEREID_ASSIGN_OR_RETURN(const auto client, ServerClient::Create(address.server));
  NEREID_ASSIGN_OR_RETURN(const rapidjson::Document config,
                          client->GetJson(ModelPath(model_.name, "", "/config")));
  for (const char* scheduler : {"ensemble_scheduling", "sequence_batching"}) {
    if (MemberOf(config, scheduler) == nullptr) continue;
    return base::UnsupportedError(
        fmt::format("{} has {}, which is not tuned", model_.name, scheduler));
  }
  NEREID_ASSIGN_OR_RETURN(PreparedBench prepared, PrepareBench(*client, address, goal_.inputs));
  requests_ = std::move(prepared.requests);
  const BenchSubject subject{.target = prepared.target,
                             .requests = requests_,
                             .model = model_.name,
                             .version = {},
                             .statistics = nullptr,
                             .on_progress = {},
                             .stop = stop_};
  NEREID_RETURN_IF_ERROR(TryRequest(subject, kFirstTimeout));
  for (const ThreadParameter& one : kThreadParameters) {
    if (one.backend == BackendOf(config)) thread_parameter_ = one.parameter;
  }
  present_ = PresentChoice(config, thread_parameter_);
  const auto cpus = static_cast<int>(base::AvailableCpus());
  TuneSpace space;
  // Several groups were made by somebody who knows what they are for.
  if (ListOf(config, "instance_group").Size() <= 1) space.instances = PowersUpTo(2 * cpus);
  if (!thread_parameter_.empty() && cpus > 1) space.threads = PowersUpTo(cpus);
  const int batch = present_.max_batch;
  if (batch <= 0) return space;
  for (int size = batch; size <= std::max(kMaxBatch, batch); size *= 2) {
    space.max_batches.push_back(size);
  }
  if (space.max_batches.size() == 1) space.max_batches.clear();
  for (const int delay : {0, 100, 500, 2000, 5000}) {
    if (delay <= goal_.p99_us / 2) space.delays_us.push_back(delay);
  }
  return space;
}

TuneScore TunedModel::Measure(const TuneChoice& choice, double effort, double concurrency) {
  const auto server = Serve(choice);
  if (!server.ok()) return {.failure = std::string(server.status().message())};
  const auto target = MakeBenchTarget(AddressOf(**server));
  if (!target.ok()) return {.failure = std::string(target.status().message())};
  const BenchSubject subject{.target = *target,
                             .requests = requests_,
                             .model = model_.name,
                             .version = {},
                             .statistics = nullptr,
                             .on_progress = {},
                             .stop = stop_};
  if (const base::Status first = TryRequest(subject, kFirstTimeout); !first.ok()) {
    return {.failure = std::string(first.message())};
  }
  bool is_first = true;
  const auto measure = [&](double load) -> TuneLevel {
    BenchPlan plan;
    plan.levels = {{.is_open = false, .load = load}};
    plan.warmup = std::exchange(is_first, false) ? kFirstWarmUp : kWarmUp;
    plan.duration = goal_.level * effort;
    plan.timeout = goal_.timeout;
    auto levels = MeasureLevels(subject, plan);
    if (levels.ok() && levels->front().succeeded < kEnoughRequests &&
        plan.duration < kMaxLevelTime) {
      // A slow model takes longer to tell its slowest requests apart.
      const double seen = static_cast<double>(std::max<uint64_t>(levels->front().succeeded, 1));
      plan.duration = std::min(plan.duration * (kEnoughRequests / seen), kMaxLevelTime);
      levels = MeasureLevels(subject, plan);
    }
    if (!levels.ok()) return {.failure = std::string(levels.status().message())};
    const LevelResult& level = levels->front();
    if (!level.errors.empty()) return {.failure = level.errors.begin()->first};
    if (level.succeeded == 0) return {.failure = "no request was completed in time"};
    return {.rate = level.rate.value, .p99_us = level.quantiles_us[kP99].value, .failure = {}};
  };
  return FindConcurrency(goal_.p99_us, concurrency, goal_.max_concurrency, measure);
}

TuneScore FindConcurrency(double goal_us, double begin, double limit,
                          const std::function<TuneLevel(double concurrency)>& measure) {
  double at = std::clamp(begin, 1.0, limit);
  double too_many = 0;  // the fewest that missed the goal; 0: none has
  TuneLevel level = measure(at);
  while (level.failure.empty() && level.p99_us > goal_us && at > 1) {
    too_many = at;
    at = std::max(std::floor(at / 2), 1.0);
    level = measure(at);
  }
  TuneScore best{.meets = level.p99_us <= goal_us,
                 .rate = level.rate,
                 .p99_us = level.p99_us,
                 .concurrency = at,
                 .failure = level.failure};
  if (!best.failure.empty() || !best.meets) return best;
  // Measures with more in flight; returns whether that was worth it.
  const auto is_worth = [&](double more) {
    const TuneLevel next = measure(more);
    if (!next.failure.empty() || next.p99_us > goal_us) {
      too_many = more;
      return false;
    }
    const bool is_rising = next.rate > best.rate * kStillRising;
    if (next.rate > best.rate) {
      best.rate = next.rate;
      best.p99_us = next.p99_us;
      best.concurrency = more;
    }
    at = more;
    return is_rising;
  };
  // One step without a gain may be noise.
  for (int flat = 0; too_many == 0 && at < limit && flat < 2;) {
    flat = is_worth(std::min(at * 2, limit)) ? 0 : flat + 1;
  }
  // The goal lies between two numbers of which one is up to twice the other.
  while (too_many > at * kFineEnough && std::floor((at + too_many) / 2) > at) {
    const double middle = std::floor((at + too_many) / 2);
    if (!is_worth(middle) && too_many != middle) break;
  }
  return best;
}

}  // namespace nereid::cli
