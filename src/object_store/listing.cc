// SPDX-License-Identifier: Apache-2.0
#include "object_store/listing.h"

#include <algorithm>

namespace nereid::object_store {
namespace {

constexpr size_t kMaxNameBytes = 255;
constexpr size_t kMaxRefused = 10;

// Whether the path can be a file on this machine.
bool CanBePath(std::string_view path) {
  if (path.empty() || path.find('\0') != std::string_view::npos) return false;
  while (true) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, end);
    if (name.empty() || name == "." || name == ".." || name.size() > kMaxNameBytes) return false;
    if (end == path.size()) return true;
    path.remove_prefix(end + 1);
  }
}

std::string WithoutSlash(const std::string& prefix) {
  return prefix.empty() ? prefix : prefix.substr(0, prefix.size() - 1);
}

bool IsSame(const Listing::Node& a, const Listing::Node& b) {
  return a.is_folder == b.is_folder && a.object.etag == b.object.etag &&
         a.object.size == b.object.size && (!a.is_folder || a.children == b.children);
}

}  // namespace

Listing::Listing(std::string prefix, std::vector<Object> objects, const Listing* before)
    : Listing(std::move(prefix), std::move(objects)) {
  if (before != nullptr) Date({before});
}

Listing::Listing(std::string prefix, std::vector<Object> objects) : prefix_(std::move(prefix)) {
  if (prefix_.empty()) nodes_[""].is_folder = true;  // an empty bucket is a folder, too
  for (Object& object : objects) Add(std::move(object));
  for (auto& [key, node] : nodes_) {
    if (key == WithoutSlash(prefix_)) continue;
    const size_t slash = key.rfind('/');
    const std::string parent = slash == std::string::npos ? "" : key.substr(0, slash);
    nodes_[parent].children.push_back({key.substr(parent.empty() ? 0 : slash + 1), node.is_folder});
  }
  for (auto& [key, node] : nodes_) {
    std::sort(node.children.begin(), node.children.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    node.modified_ns = node.is_folder ? 0 : node.object.modified_ns;
    newest_ns_ = std::max(newest_ns_, node.modified_ns);
  }
}

void Listing::Add(Object object) {
  std::string path = object.key.substr(prefix_.size());
  const bool is_folder = path.empty() || path.back() == '/';
  if (is_folder && !path.empty()) path.pop_back();
  if (!path.empty() && !CanBePath(path)) {
    if (refused_.size() < kMaxRefused) refused_.push_back(object.key);
    return;
  }
  const std::string key = path.empty() ? WithoutSlash(prefix_) : prefix_ + path;
  // The folders that contain the object, from the prefix down.
  if (!prefix_.empty()) nodes_[WithoutSlash(prefix_)].is_folder = true;
  for (size_t slash = key.find('/', prefix_.size()); slash != std::string::npos;
       slash = key.find('/', slash + 1)) {
    nodes_[key.substr(0, slash)].is_folder = true;
  }
  Node& node = nodes_[key];
  node.is_folder = node.is_folder || is_folder;
  if (!is_folder) node.object = std::move(object);
}

void Listing::Date(const std::vector<const Listing*>& before) {
  if (before.empty()) return;
  // Later than everything before, and never earlier than the store's own times.
  int64_t change_ns = newest_ns_;
  for (const Listing* const earlier : before) {
    change_ns = std::max(change_ns, earlier->newest_ns_ + 1);
  }
  // If several listings cover a node, the last one decides its time.
  for (const Listing* const earlier : before) Compare(*earlier, change_ns);
  newest_ns_ = change_ns;
}

void Listing::Compare(const Listing& before, int64_t change_ns) {
  const auto date = [change_ns](Node& node, const Node* old) {
    const bool is_same = old != nullptr && IsSame(node, *old);
    node.modified_ns = is_same ? old->modified_ns : change_ns;
  };
  const std::string folder = WithoutSlash(before.prefix_);
  if (const auto own = nodes_.find(folder); own != nodes_.end()) {
    date(own->second, before.Find(folder));
  }
  // Both are sorted, and walked side by side, which is much faster than a search for each node.
  auto it = nodes_.lower_bound(before.prefix_);
  if (it == nodes_.end()) return;
  auto old = before.nodes_.lower_bound(it->first);
  for (; it != nodes_.end() && it->first.starts_with(before.prefix_); ++it) {
    while (old != before.nodes_.end() && old->first < it->first) ++old;
    const bool is_known = old != before.nodes_.end() && old->first == it->first;
    date(it->second, is_known ? &old->second : nullptr);
  }
}

const Listing::Node* Listing::Find(std::string_view key) const {
  const auto found = nodes_.find(key);
  return found == nodes_.end() ? nullptr : &found->second;
}

std::vector<const Object*> Listing::FilesUnder(const std::string& folder) const {
  std::vector<const Object*> files;
  const std::string begin = folder.empty() ? "" : folder + "/";
  for (auto it = nodes_.lower_bound(begin); it != nodes_.end() && it->first.starts_with(begin);
       ++it) {
    if (!it->second.is_folder) files.push_back(&it->second.object);
  }
  return files;
}

std::vector<std::string> Listing::EmptyFoldersUnder(const std::string& folder) const {
  std::vector<std::string> folders;
  const std::string begin = folder.empty() ? "" : folder + "/";
  for (auto it = nodes_.lower_bound(begin); it != nodes_.end() && it->first.starts_with(begin);
       ++it) {
    if (it->second.is_folder && it->second.children.empty()) folders.push_back(it->first);
  }
  return folders;
}

}  // namespace nereid::object_store
