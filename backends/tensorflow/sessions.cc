// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/sessions.h"

#include <sys/stat.h>

#include <filesystem>

namespace nereid::tensorflow {

using backend::MutexLock;
using backend::Result;
using backend::StrCat;

namespace {

// The files as they are now: those that were replaced since are others.
std::string IdentityOf(const SessionSpec& spec) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::canonical(spec.path, error);
  if (error) {
    path = spec.path;
  }
  std::string identity = path.string();
  const auto add = [&](const std::filesystem::path& file) {
    struct stat facts = {};
    if (::stat(file.c_str(), &facts) == 0) {
      identity += StrCat("|", facts.st_dev, ".", facts.st_ino, ".", facts.st_size, ".",
                         facts.st_mtim.tv_sec, ".", facts.st_mtim.tv_nsec);
    }
  };
  add(path);
  if (!spec.is_graph_def) {
    add(path / "saved_model.pb");
    add(path / "variables" / "variables.index");
  }
  return identity;
}

// A text that no other list has.
std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    text += StrCat(part.size(), ":", part);
  }
  return text;
}

// A session keeps the slot in which others find it.
struct Kept {
  std::shared_ptr<Session> session;
  std::shared_ptr<void> slot;
};

}  // namespace

std::string SessionSpec::Key() const {
  return Joined({is_graph_def ? "graph" : "saved", IdentityOf(*this), Joined(tags), config,
                 Joined(init_ops)});
}

Result<std::shared_ptr<Session>> Sessions::Get(Runtime& runtime, const SessionSpec& spec,
                                               const std::string& group) {
  const std::string key = Joined({group, spec.Key()});
  std::shared_ptr<Slot> slot;
  {
    const MutexLock lock(mutex_);
    std::erase_if(slots_, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<Slot>& known = slots_[key];
    slot = known.lock();
    if (slot == nullptr) {
      slot = std::make_shared<Slot>();
      known = slot;
    }
  }
  const MutexLock lock(slot->mutex);
  if (std::shared_ptr<Session> session = slot->session.lock()) {
    return session;
  }
  NEREID_KIT_ASSIGN(std::shared_ptr<Session> loaded, runtime.Load(spec));
  auto kept = std::make_shared<Kept>(Kept{.session = std::move(loaded), .slot = slot});
  std::shared_ptr<Session> session(kept, kept->session.get());
  slot->session = session;
  return session;
}

}  // namespace nereid::tensorflow
