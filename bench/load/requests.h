// SPDX-License-Identifier: Apache-2.0
// What is sent: one request over and over, one of many by Zipf's law, or the requests of a
// sequence.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::bench {

// Where a place that sends one request after the other is in its sequence.
struct SequencePlace {
  size_t position = 0;  // of the next request; 0 begins a sequence
  std::string request;  // with the sequence's id in it
  uint64_t id = 0;
};

// Confined to one thread.
class Requests {
 public:
  // The id that requests of a sequence are written with; each gets one of its own of the same
  // length, in decimal digits as well as in bytes of a varint.
  static constexpr uint64_t kIdToReplace = 1'000'000'000;

  // How an id stands in a request.
  enum class IdForm { kDecimal, kVarint };

  static Requests One(std::string request);
  // The k-th is chosen with a probability in proportion to 1/k^exponent.
  static Requests Zipf(std::vector<std::string> requests, double exponent);
  // Dies unless each has kIdToReplace in it exactly once.
  static Requests Sequence(std::string first, std::string middle, std::string last, size_t length,
                           IdForm form);

  // The next request to send from the place, valid until the next call for the same place.
  // `is_ending`: what was begun is to be ended with this request.
  std::string_view Next(SequencePlace& place, bool is_ending);

  // Whether every answer must be as long as the first.
  bool answers_are_alike() const { return kind_ == Kind::kOne; }

 private:
  enum class Kind { kOne, kZipf, kSequence };

  std::string_view NextOfSequence(SequencePlace& place, bool is_ending);

  Kind kind_ = Kind::kOne;
  std::vector<std::string> requests_;
  std::vector<double> cumulative_;  // of Zipf
  std::vector<size_t> id_at_;       // of a sequence: where the id stands in each
  IdForm form_ = IdForm::kDecimal;
  size_t length_ = 0;
  uint64_t next_id_ = 0;
  std::mt19937_64 random_{42};
};

}  // namespace nereid::bench
