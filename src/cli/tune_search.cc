// SPDX-License-Identifier: Apache-2.0
#include "cli/tune_search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace nereid::cli {
namespace {

// A neighbour must be better by this to be moved to: short measurements differ by about as much.
constexpr double kWorthAMove = 1.03;
// The share of the budget that is kept for the end.
constexpr double kForFinals = 0.4;
constexpr size_t kFinalists = 3;
constexpr size_t kMaxRepeats = 5;
constexpr double kFinalEffort = 3;

// A setting of a choice, and the values that it may have.
struct Axis {
  int TuneChoice::* setting;
  const std::vector<int>* values;
};

std::vector<Axis> AxesOf(const TuneSpace& space) {
  std::vector<Axis> axes;
  // In the order of how much each usually matters.
  for (const Axis& axis :
       {Axis{&TuneChoice::instances, &space.instances}, Axis{&TuneChoice::threads, &space.threads},
        Axis{&TuneChoice::delay_us, &space.delays_us},
        Axis{&TuneChoice::max_batch, &space.max_batches}}) {
    if (!axis.values->empty()) axes.push_back(axis);
  }
  return axes;
}

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// One run of the search.
class Search {
 public:
  Search(const TuneSpace& space, const TuneWorld& world)
      : space_(space), world_(world), axes_(AxesOf(space)) {}

  TuneOutcome Run() {
    const TuneScore present = Try({}, 1, 0);
    for (const TuneChoice& choice : StartingPoints()) {
      if (HasTime()) Try(choice, 1, 0);
    }
    // The second climb is from another place, and often ends where the first one did: then it costs
    // nothing, as no choice is measured twice.
    std::vector<TuneChoice> starts = Ranked();
    starts.resize(std::min<size_t>(starts.size(), 2));
    for (const TuneChoice& start : starts) Climb(start);
    Finals(present);
    return std::move(outcome_);
  }

 private:
  // Whether another choice can be measured and what is kept for the end is still there.
  bool HasTime() const { return world_.left() - CostOf(1) > kForFinals; }

  // The share of the budget that a measurement takes, judged by those that there were.
  double CostOf(double effort) const { return effort_ > 0 ? effort * cost_ / effort_ : 0; }

  TuneScore Try(const TuneChoice& choice, double effort, int stage) {
    const double before = world_.left();
    const TuneScore score = world_.measure(choice, effort, begin_at_);
    cost_ += before - world_.left();
    effort_ += effort;
    outcome_.trials.push_back({choice, score, stage});
    if (world_.on_trial) world_.on_trial(outcome_.trials.back());
    const auto [known, is_new] = scores_.try_emplace(choice, score);
    if (!is_new) known->second = score;
    if (score.failure.empty()) {
      if (!best_ || IsBetter(score, *best_)) {
        best_ = score;
        begin_at_ = score.concurrency;
      }
    }
    return score;
  }

  // Few instances with many threads and the other way round, each with and without waiting.
  std::vector<TuneChoice> StartingPoints() const {
    const auto lowest = [](const std::vector<int>& values, int otherwise) {
      return values.empty() ? otherwise : values.front();
    };
    const auto highest = [](const std::vector<int>& values, int otherwise) {
      return values.empty() ? otherwise : values.back();
    };
    std::vector<TuneChoice> points;
    for (const bool has_many_instances : {false, true}) {
      TuneChoice point;
      point.instances =
          has_many_instances ? MiddleOf(space_.instances, 0) : lowest(space_.instances, 0);
      point.threads = has_many_instances ? lowest(space_.threads, 0) : highest(space_.threads, 0);
      point.delay_us = lowest(space_.delays_us, -1);
      point.max_batch = lowest(space_.max_batches, 0);
      points.push_back(point);
      if (space_.delays_us.size() > 1) {
        point.delay_us = MiddleOf(space_.delays_us, -1);
        points.push_back(point);
      }
    }
    return points;
  }

  static int MiddleOf(const std::vector<int>& values, int otherwise) {
    return values.empty() ? otherwise : values[values.size() / 2];
  }

  // All choices that were measured, the best first.
  std::vector<TuneChoice> Ranked() const {
    std::vector<TuneChoice> ranked;
    for (const auto& [choice, score] : scores_) {
      if (score.failure.empty()) ranked.push_back(choice);
    }
    std::ranges::sort(ranked, [this](const TuneChoice& a, const TuneChoice& b) {
      if (IsBetter(scores_.at(a), scores_.at(b))) return true;
      return !IsBetter(scores_.at(b), scores_.at(a)) && a < b;
    });
    return ranked;
  }

  const TuneScore& ScoreOf(const TuneChoice& choice) {
    const auto known = scores_.find(choice);
    if (known != scores_.end()) return known->second;
    Try(choice, 1, 1);
    return scores_.at(choice);
  }

  static bool IsWorthAMove(const TuneScore& to, const TuneScore& from) {
    if (!to.failure.empty()) return false;
    if (to.meets != from.meets) return to.meets;
    return to.meets ? to.rate > from.rate * kWorthAMove : to.p99_us * kWorthAMove < from.p99_us;
  }

  // Moves one setting after the other until a whole turn has changed nothing.
  void Climb(TuneChoice at) {
    bool has_moved = true;
    while (has_moved && HasTime()) {
      has_moved = false;
      for (const Axis& axis : axes_) {
        for (const int step : {1, -1}) {
          bool is_better = true;
          while (is_better && HasTime()) {
            const std::optional<TuneChoice> next = Neighbour(at, axis, step);
            is_better = next && IsWorthAMove(ScoreOf(*next), ScoreOf(at));
            if (is_better) at = *next;
            has_moved = has_moved || is_better;
          }
        }
      }
    }
  }

  // Returns the choice whose setting is the next higher or lower one. A setting that is as in the
  // present configuration has no neighbours but the lowest value.
  static std::optional<TuneChoice> Neighbour(TuneChoice choice, const Axis& axis, int step) {
    const auto at = std::ranges::find(*axis.values, choice.*axis.setting);
    if (at == axis.values->end()) {
      if (step < 0) return std::nullopt;
      choice.*axis.setting = axis.values->front();
      return choice;
    }
    const auto index = at - axis.values->begin() + step;
    if (index < 0 || index >= std::ssize(*axis.values)) return std::nullopt;
    choice.*axis.setting = (*axis.values)[static_cast<size_t>(index)];
    return choice;
  }

  // The best choices, as many as there is time for, and the present one. The best and the present
  // one are compared in any case: what is written must have been measured well.
  std::vector<TuneChoice> Finalists(const TuneScore& present) const {
    std::vector<TuneChoice> finalists = Ranked();
    finalists.resize(std::min(finalists.size(), kFinalists));
    const auto is_affordable = [this](size_t count) {
      return CostOf(1) * static_cast<double>(count) <= world_.left();
    };
    while (finalists.size() > 1 && !is_affordable(finalists.size() + 1)) finalists.pop_back();
    const bool has_present = std::ranges::find(finalists, TuneChoice{}) != finalists.end();
    if (!has_present && present.failure.empty()) finalists.push_back({});
    return finalists;
  }

  // Measures the finalists in turns, so that a machine that becomes slower meanwhile does so for
  // all of them; each for as long as there is time.
  void Finals(const TuneScore& present) {
    const std::vector<TuneChoice> finalists = Finalists(present);
    const double least = CostOf(1) * static_cast<double>(finalists.size());
    const double effort = least > 0 ? std::clamp(world_.left() / least, 1.0, kFinalEffort) : 1;
    std::map<TuneChoice, std::vector<TuneScore>> repeats;
    for (size_t round = 0; round < kMaxRepeats; ++round) {
      const double before = world_.left();
      for (const TuneChoice& choice : finalists) {
        begin_at_ = scores_.at(choice).concurrency;
        repeats[choice].push_back(Try(choice, effort, 2));
      }
      // Another round would take about as long.
      const double left = world_.left();
      if (left < before - left) break;
    }
    outcome_.present = {{}, present, 0};
    bool has_best = false;
    for (const auto& [choice, scores] : repeats) {
      const TuneTrial trial{choice, MedianScore(scores), 2};
      if (choice == TuneChoice{}) outcome_.present = trial;
      if (!trial.score.failure.empty()) continue;
      if (!has_best || IsBetter(trial.score, outcome_.best.score)) outcome_.best = trial;
      has_best = true;
    }
    if (!has_best) outcome_.best = outcome_.present;
    outcome_.is_certain = IsCertain(repeats);
  }

  // The score of several measurements: whether most met the goal, and the medians of those that
  // agree with that.
  static TuneScore MedianScore(const std::vector<TuneScore>& scores) {
    const auto met = static_cast<size_t>(std::ranges::count(scores, true, &TuneScore::meets));
    TuneScore result = scores.front();
    result.meets = 2 * met > scores.size();
    std::vector<double> rates;
    std::vector<double> latencies;
    std::vector<double> concurrencies;
    for (const TuneScore& score : scores) {
      if (!score.failure.empty()) return score;
      if (score.meets != result.meets) continue;
      rates.push_back(score.rate);
      latencies.push_back(score.p99_us);
      concurrencies.push_back(score.concurrency);
    }
    if (rates.empty()) return result;
    result.rate = MedianOf(rates);
    result.p99_us = MedianOf(latencies);
    // One of those that were measured, not a number between two.
    std::ranges::sort(concurrencies);
    result.concurrency = concurrencies[concurrencies.size() / 2];
    return result;
  }

  // Every repeat of the winner must be better than every repeat of the present configuration.
  bool IsCertain(const std::map<TuneChoice, std::vector<TuneScore>>& repeats) const {
    const auto best = repeats.find(outcome_.best.choice);
    const auto present = repeats.find(TuneChoice{});
    if (best == repeats.end() || best == present) return false;
    if (present == repeats.end()) return outcome_.best.score.meets;
    return std::ranges::all_of(best->second, [&](const TuneScore& winner) {
      return std::ranges::all_of(present->second,
                                 [&](const TuneScore& loser) { return IsBetter(winner, loser); });
    });
  }

  const TuneSpace& space_;
  const TuneWorld& world_;
  const std::vector<Axis> axes_;
  TuneOutcome outcome_;
  std::map<TuneChoice, TuneScore> scores_;  // the latest of each choice
  std::optional<TuneScore> best_;
  double begin_at_ = 0;
  double cost_ = 0;    // of all measurements, as a share of the budget
  double effort_ = 0;  // of all measurements
};

size_t CountOf(const std::vector<int>& values) { return std::max<size_t>(values.size(), 1); }

}  // namespace

size_t TuneSpace::size() const {
  return CountOf(instances) * CountOf(threads) * CountOf(max_batches) * CountOf(delays_us);
}

std::vector<TuneChoice> TuneSpace::All() const {
  std::vector<TuneChoice> all = {{}};
  const auto vary = [&all](int TuneChoice::* setting, const std::vector<int>& values) {
    if (values.empty()) return;
    std::vector<TuneChoice> more;
    for (const TuneChoice& choice : all) {
      for (const int value : values) {
        more.push_back(choice);
        more.back().*setting = value;
      }
    }
    all = std::move(more);
  };
  vary(&TuneChoice::instances, instances);
  vary(&TuneChoice::threads, threads);
  vary(&TuneChoice::max_batch, max_batches);
  vary(&TuneChoice::delay_us, delays_us);
  return all;
}

bool IsBetter(const TuneScore& a, const TuneScore& b) {
  if (a.failure.empty() != b.failure.empty()) return a.failure.empty();
  if (a.meets != b.meets) return a.meets;
  return a.meets ? a.rate > b.rate : a.p99_us < b.p99_us;
}

TuneOutcome SearchChoices(const TuneSpace& space, const TuneWorld& world) {
  return Search(space, world).Run();
}

}  // namespace nereid::cli
