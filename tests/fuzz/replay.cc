// SPDX-License-Identifier: Apache-2.0
// The main program of a fuzzer that is built without libFuzzer: x_fuzz [--runs=N] [--seconds=S]
// [--corpus=FILE] [FILE...]. It processes the files, or the seeds, the inputs of the corpus, and N
// damaged copies of all of them. The N copies are the same each time; S stops early on a slow
// build. An input that ends the process is saved in the file "crash-<name>".
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz/corpus.h"
#include "fuzz/fuzz.h"

namespace {

std::string current;  // the input being processed
std::string crash_file;

void KeepInput(int signal) {
  // Best effort: the process ends in any case.
  if (FILE* const file = std::fopen(crash_file.c_str(), "wb")) {
    std::fwrite(current.data(), 1, current.size(), file);
    std::fclose(file);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void Read(std::string input) {
  current = std::move(input);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(current.data()), current.size());
}

class Damage {
 public:
  explicit Damage(const std::vector<std::string>& seeds) : seeds_(seeds) {}

  std::string Next() {
    std::string text = seeds_[random_() % seeds_.size()];
    for (unsigned i = 0, changes = 1 + random_() % 5; i < changes; ++i) Change(text);
    return text;
  }

 private:
  size_t Place(const std::string& text) { return random_() % (text.size() + 1); }

  std::string Piece() {
    const std::string& other = seeds_[random_() % seeds_.size()];
    const size_t at = Place(other);
    return other.substr(at, random_() % 40);
  }

  void Change(std::string& text) {
    static constexpr char kSpecial[] = "\0\1\x7f\x80\xff\r\n\t \"\\{}[]:,-+.eE09";
    static const char* const kTokens[] = {"4294967296",
                                          "-1",
                                          "1e999",
                                          "\r\n\r\n",
                                          "null",
                                          "\\u0000",
                                          "\xff\xff\xff\xff",
                                          "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
                                          "[[[[[[[[",
                                          "0x7fffffff",
                                          "\"\"",
                                          "9223372036854775808"};
    const size_t at = Place(text);
    const bool is_inside = at < text.size();
    switch (random_() % 8) {
      case 0:
        if (is_inside) text[at] = static_cast<char>(text[at] ^ (1 << random_() % 8));
        break;
      case 1:
        if (is_inside) text[at] = kSpecial[random_() % (sizeof(kSpecial) - 1)];
        break;
      case 2:
        if (is_inside) text[at] = static_cast<char>(random_());
        break;
      case 3:
        text.erase(at, 1 + random_() % 16);
        break;
      case 4:
        text.insert(at, Piece());
        break;
      case 5:
        text.insert(at, kTokens[random_() % std::size(kTokens)]);
        break;
      case 6:
        text.resize(at);
        break;
      default: {
        const std::string& other = seeds_[random_() % seeds_.size()];
        text = text.substr(0, at) + other.substr(Place(other));
      }
    }
  }

  const std::vector<std::string>& seeds_;
  std::mt19937 random_{20261121};
};

}  // namespace

int main(int argc, char** argv) {
  size_t runs = 200'000;
  double seconds = 3;
  std::vector<const char*> files;
  std::string corpus;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--runs=", 7) == 0) {
      runs = std::strtoull(argv[i] + 7, nullptr, 10);
    } else if (std::strncmp(argv[i], "--seconds=", 10) == 0) {
      seconds = std::strtod(argv[i] + 10, nullptr);
    } else if (std::strncmp(argv[i], "--corpus=", 9) == 0) {
      corpus = argv[i] + 9;
    } else {
      files.push_back(argv[i]);
    }
  }
  const char* const slash = std::strrchr(argv[0], '/');
  crash_file = std::string("crash-") + (slash != nullptr ? slash + 1 : argv[0]);
  std::signal(SIGABRT, KeepInput);
  std::signal(SIGSEGV, KeepInput);

  for (const char* const name : files) {
    std::ifstream file(name, std::ios::binary);
    Read({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
  }
  if (!files.empty()) return 0;

  std::vector<std::string> seeds = FuzzSeeds();
  if (!nereid::fuzz::ReadCorpus(corpus, seeds)) {
    std::fprintf(stderr, "%s is damaged\n", corpus.c_str());
    return 1;
  }
  for (const std::string& seed : seeds) Read(seed);
  Damage damage(seeds);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  size_t run = 0;
  while (run < runs && std::chrono::steady_clock::now() < end) {
    Read(damage.Next());
    ++run;
  }
  std::printf("%zu seeds and %zu damaged inputs were read\n", seeds.size(), run);
  return 0;
}
