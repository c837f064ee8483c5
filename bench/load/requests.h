// SPDX-License-Identifier: Apache-2.0
// The requests to send: one repeatedly, one of many by Zipf's law, or those of a sequence.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::bench {

// The position in a sequence of a slot that sends its requests one after the other.
struct SequencePlace {
  size_t position = 0;  // of the next request; 0 begins a sequence
  std::string request;  // contains the sequence's id
  uint64_t id = 0;
};

// Chooses requests. Confined to one thread.
class Requests {
 public:
  // The sequence id in prepared requests. Each sequence replaces it by its own id of the same
  // length, both in decimal digits and in bytes of a varint.
  static constexpr uint64_t kIdToReplace = 1'000'000'000;

  // The encoding of an id in a request.
  enum class IdForm { kDecimal, kVarint };

  static Requests One(std::string request);
  // Chooses the k-th request with a probability proportional to 1/k^exponent.
  static Requests Zipf(std::vector<std::string> requests, double exponent);
  // Ends the process unless each request contains kIdToReplace exactly once.
  static Requests Sequence(std::string first, std::string middle, std::string last, size_t length,
                           IdForm form);

  // Returns the next request of the place, valid until the next call for the same place.
  // `is_ending`: this request must end a sequence in progress.
  std::string_view Next(SequencePlace& place, bool is_ending);

  // Whether all responses must have the same length.
  bool answers_are_alike() const { return kind_ == Kind::kOne; }

 private:
  enum class Kind { kOne, kZipf, kSequence };

  std::string_view NextOfSequence(SequencePlace& place, bool is_ending);

  Kind kind_ = Kind::kOne;
  std::vector<std::string> requests_;
  std::vector<double> cumulative_;  // for Zipf's law
  std::vector<size_t> id_at_;       // for sequences: the position of the id in each request
  IdForm form_ = IdForm::kDecimal;
  size_t length_ = 0;
  uint64_t next_id_ = 0;
  std::mt19937_64 random_{42};
};

}  // namespace nereid::bench
