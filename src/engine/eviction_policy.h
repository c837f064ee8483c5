// SPDX-License-Identifier: Apache-2.0
// Which models to unload when memory is needed for another one, in the control mode "ondemand".
//
// A model is worth what it would cost to be without it: how often it is used, times the seconds
// that loading it takes, divided by the share of the budget that it fills. The least worth goes
// first. How often a model is used is a count that halves with every half-life, and is kept for
// models that are not loaded, too: otherwise a model that comes back would be taken for a new one.
// A steady load is thus served as by the best fixed choice of models, and a load that changes is
// followed within a few half-lives.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"

namespace nereid::engine {

// Bytes in each kind of memory, in the order of the budgets.
using MemoryBytes = std::vector<uint64_t>;

// What the policy goes by; constant.
struct EvictionOptions {
  MemoryBytes budgets;                     // in each kind of memory; 0: unlimited
  std::chrono::nanoseconds min_stay{0};    // a model stays at least so long after it was loaded
  std::chrono::nanoseconds idle_limit{0};  // unused models go after that time; 0: never
  std::chrono::nanoseconds half_life = std::chrono::minutes(30);  // of the counts of uses
};

// Whether a model may be loaded now, and what has to go before.
struct RoomPlan {
  enum class Outcome {
    kFits,    // once `victims` are unloaded
    kNotNow,  // what could make room is in use, or has been loaded too recently
    kNever,   // it needs more than pinned models leave
  };
  Outcome outcome = Outcome::kFits;
  std::vector<std::string> victims;  // in this order
  size_t lacking = 0;                // the kind of memory that does not suffice as it is
  // If not now: when the last model that is only too young may go; the epoch if all are in use.
  base::TimePoint next_chance;
};

// The models of a server as memory sees them. Times are passed in and never go back.
// Thread-compatible.
class EvictionPolicy {
 public:
  explicit EvictionPolicy(EvictionOptions options);
  EvictionPolicy(const EvictionPolicy&) = delete;
  EvictionPolicy& operator=(const EvictionPolicy&) = delete;

  // Counts `uses` of a model, loaded or not.
  void NoteUses(const std::string& name, uint64_t uses, base::TimePoint now);
  // A loaded model is in use, by requests that were counted or will be.
  void NoteBusy(const std::string& name, base::TimePoint now);
  // The model is loaded since `now`. Bytes are averaged with those of earlier loads, because
  // measurements have noise; but of a model that was loaded, `bytes` is what it takes from now on.
  void NoteLoaded(const std::string& name, const MemoryBytes& bytes, std::chrono::nanoseconds took,
                  base::TimePoint now);
  // The model turns out to be loaded, although nobody has asked for it by name. It takes what is
  // known of it, or else `guess`, which is not remembered when it is unloaded.
  void NoteFound(const std::string& name, const MemoryBytes& guess, base::TimePoint now);
  void NoteUnloaded(const std::string& name);
  // The files of the model may be others now: what its next load measures replaces what is known,
  // which is an estimate until then.
  void Distrust(const std::string& name);
  // Pinned models never go, now or when they are loaded again.
  void Pin(const std::string& name) { entries_[name].is_pinned = true; }
  // The model, which is loaded, is pinned until it is unloaded, or not any more.
  void PinWhileLoaded(const std::string& name, bool is_pinned);
  // Forgets all that is known of models that are neither loaded nor pinned, except `names`.
  void RetainOnly(const std::set<std::string>& names);

  // The loaded ensemble needs these models: they can go only after it. An ensemble may take nothing
  // itself, if its models were loaded before it.
  void NoteParts(const std::string& name, const std::set<std::string>& parts);

  // Says how to make room for a model that is not loaded, or with one that is. A model that was
  // never loaded counts as nothing, because nobody knows. A model in `busy` stays.
  RoomPlan MakeRoom(const std::string& name, const std::set<std::string>& busy,
                    base::TimePoint now) const;
  // Returns the models to unload to come back below the budgets, or as close as possible now, but
  // not `newest`.
  std::vector<std::string> FindExcess(const std::string& newest, const std::set<std::string>& busy,
                                      base::TimePoint now) const;
  // Returns the loaded models that nobody has used for the idle limit.
  std::vector<std::string> FindIdle(const std::set<std::string>& busy, base::TimePoint now) const;

  bool IsLoaded(const std::string& name) const;
  bool IsPinned(const std::string& name) const;
  // Whether a loaded ensemble needs the model.
  bool IsHeld(const std::string& name) const;
  std::vector<std::string> Loaded() const;
  size_t loaded_count() const { return loaded_.size(); }
  // The bytes of all loaded models.
  const MemoryBytes& used() const { return used_; }
  // Returns what the model took when it was last loaded; of a loaded one, what it counts for.
  std::optional<MemoryBytes> KnownBytes(const std::string& name) const;
  // Returns how long loads of the model took; 0 if it was never loaded.
  std::chrono::nanoseconds KnownDuration(const std::string& name) const;
  const EvictionOptions& options() const { return options_; }

 private:
  // What is known of one model.
  struct Entry {
    bool is_loaded = false;
    bool is_pinned = false;
    bool is_pinned_now = false;            // until it is unloaded
    bool has_bytes = false;                // they were measured
    bool is_distrusted = false;            // of files that may have changed
    MemoryBytes bytes;                     // in every kind
    std::chrono::nanoseconds duration{0};  // of loading it
    double uses = 0;                       // as of uses_at
    base::TimePoint uses_at;
    base::TimePoint loaded_at;
    base::TimePoint last_use;
    std::set<std::string> parts;  // of a loaded ensemble
  };
  using LoadedEntry = std::pair<const std::string, Entry*>;

  static bool Stays(const Entry& entry) { return entry.is_pinned || entry.is_pinned_now; }
  void SetLoaded(const std::string& name, Entry& entry, base::TimePoint now);
  MemoryBytes Missing(const MemoryBytes& needed, const MemoryBytes& present) const;
  double Worth(const Entry& entry, base::TimePoint now) const;
  bool MayGo(const std::string& name, const Entry& entry, const std::set<std::string>& busy,
             base::TimePoint now) const;
  // Returns the models that loaded ensembles need.
  std::set<std::string> Held() const;
  // Returns the ensembles that must go before the model, outer ones first; nothing if one has to
  // stay.
  std::optional<std::vector<std::string>> HoldersOf(const std::string& name,
                                                    const std::set<std::string>& busy,
                                                    base::TimePoint now) const;
  // Returns the models that may go, or may once ensembles have, except `name`; the least worth
  // first.
  std::vector<const LoadedEntry*> Candidates(const std::string& name,
                                             const std::set<std::string>& busy,
                                             base::TimePoint now) const;
  // Adds victims to the plan until nothing is missing; returns what is missing still.
  MemoryBytes Choose(const std::string& name, MemoryBytes missing,
                     const std::set<std::string>& busy, base::TimePoint now, RoomPlan& plan) const;
  // Takes the victims off the plan that need not go, the most worth first.
  void Spare(const MemoryBytes& missing, RoomPlan& plan) const;

  const EvictionOptions options_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, Entry*> loaded_;  // the loaded ones of entries_
  MemoryBytes used_;
};

}  // namespace nereid::engine
