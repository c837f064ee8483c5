// SPDX-License-Identifier: Apache-2.0
#include "engine/generation_watch.h"

#include <utility>

#include "base/log.h"

namespace nereid::engine {

GenerationWatch::News GenerationWatch::Look(const std::vector<std::string>& repositories,
                                            const std::stop_token& stop) {
  News news;
  std::map<std::string, File> now;
  for (const std::string& path : repositories) {
    File& file = now[path] = std::move(known_[path]);
    if (file.pause > 0) {
      --file.pause;
      continue;
    }
    base::Result<repository::Generation> read = repository::ReadGeneration(store_, path, stop);
    if (stop.stop_requested()) return {};
    Tell(path, read.status());
    if (!read.ok()) {
      file.pause = kPause;
    } else if (*read != file.generation) {
      NEREID_LOG(kInfo, "repository '{}' has generation {}", path, read->number);
      news.is_changed = true;
      file.generation = *std::move(read);
    }
  }
  known_ = std::move(now);
  Sources merged = Merge(repositories);
  for (const auto& [model, source] : merged) {
    const auto before = merged_.find(model);
    if (before != merged_.end() && before->second == source) continue;
    news.asked.push_back({model, source.wish.is_loaded});
  }
  // Also because a repository has come or gone.
  news.is_changed = news.is_changed || merged != merged_;
  merged_ = std::move(merged);
  return news;
}

std::set<std::string> GenerationWatch::Unwanted() const {
  std::set<std::string> names;
  for (const auto& [model, source] : merged_) {
    if (!source.wish.is_loaded) names.insert(model);
  }
  return names;
}

GenerationWatch::Sources GenerationWatch::Merge(
    const std::vector<std::string>& repositories) const {
  Sources merged;
  for (const std::string& path : repositories) {
    for (const auto& [model, wish] : known_.at(path).generation.wishes) {
      merged.try_emplace(model, Source{path, wish});
    }
  }
  return merged;
}

void GenerationWatch::Tell(const std::string& repository, const base::Status& status) {
  if (status.ok()) {
    if (told_.erase(repository) > 0) {
      NEREID_LOG(kInfo, "the generation file of repository '{}' can be read again", repository);
    }
    return;
  }
  std::string text(status.message());
  if (std::exchange(told_[repository], text) == text) return;
  NEREID_LOG(kError, "the generation file of repository '{}' is left aside: {}", repository, text);
}

}  // namespace nereid::engine
