// SPDX-License-Identifier: Apache-2.0
#include "load/requests.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "load/options.h"

namespace nereid::bench {
namespace {

std::string WriteId(uint64_t id, Requests::IdForm form) {
  if (form == Requests::IdForm::kDecimal) return std::to_string(id);
  std::string bytes;
  for (; id > 0x7F; id >>= 7) bytes.push_back(static_cast<char>((id & 0x7F) | 0x80));
  bytes.push_back(static_cast<char>(id));
  return bytes;
}

}  // namespace

Requests Requests::One(std::string request) {
  Requests requests;
  requests.requests_.push_back(std::move(request));
  return requests;
}

Requests Requests::Zipf(std::vector<std::string> all, double exponent) {
  Requests requests;
  requests.kind_ = Kind::kZipf;
  double sum = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    sum += 1 / std::pow(static_cast<double>(i + 1), exponent);
    requests.cumulative_.push_back(sum);
  }
  requests.requests_ = std::move(all);
  return requests;
}

Requests Requests::Sequence(std::string first, std::string middle, std::string last, size_t length,
                            IdForm form) {
  if (length < 2) Die("a sequence has two requests at least");
  Requests requests;
  requests.kind_ = Kind::kSequence;
  requests.form_ = form;
  requests.length_ = length;
  // Ids differ from those of a previous load, whose sequences may still be known.
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  requests.next_id_ = kIdToReplace + static_cast<uint64_t>(us) % 4'000'000'000;
  const std::string id = WriteId(kIdToReplace, form);
  for (std::string* request : {&first, &middle, &last}) {
    const size_t at = request->find(id);
    if (at == request->npos || request->find(id, at + 1) != request->npos) {
      Die("a request of a sequence must have the id 1000000000 in it once");
    }
    requests.id_at_.push_back(at);
    requests.requests_.push_back(std::move(*request));
  }
  return requests;
}

std::string_view Requests::Next(SequencePlace& place, bool is_ending) {
  if (kind_ == Kind::kOne) return requests_.front();
  if (kind_ == Kind::kSequence) return NextOfSequence(place, is_ending);
  std::uniform_real_distribution<double> uniform(0, cumulative_.back());
  const auto found = std::lower_bound(cumulative_.begin(), cumulative_.end(), uniform(random_));
  const auto index = static_cast<size_t>(found - cumulative_.begin());
  return requests_[std::min(index, requests_.size() - 1)];
}

std::string_view Requests::NextOfSequence(SequencePlace& place, bool is_ending) {
  if (place.position == 0) place.id = next_id_++;
  const bool is_last = place.position + 1 == length_ || (is_ending && place.position > 0);
  const size_t which = place.position == 0 ? 0 : is_last ? 2 : 1;
  const std::string id = WriteId(place.id, form_);
  place.request = requests_[which];
  place.request.replace(id_at_[which], id.size(), id);
  place.position = is_last ? 0 : place.position + 1;
  return place.request;
}

}  // namespace nereid::bench
