// SPDX-License-Identifier: Apache-2.0
#include "load/options.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

namespace nereid::bench {

void Die(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

Options::Options(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument.substr(0, 2) != "--") Die("unknown argument " + std::string(argument));
    argument.remove_prefix(2);
    const size_t equals = argument.find('=');
    values_.emplace(argument.substr(0, equals),
                    equals == argument.npos ? "1" : argument.substr(equals + 1));
  }
}

std::string Options::Text(const std::string& name, const std::string& otherwise) const {
  const auto found = values_.find(name);
  return found == values_.end() ? otherwise : found->second;
}

double Options::Number(const std::string& name, double otherwise) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(found->second.c_str(), &end);
  if (*end != '\0' || found->second.empty()) Die("--" + name + " wants a number");
  return value;
}

size_t Options::Count(const std::string& name, size_t otherwise) const {
  return static_cast<size_t>(Number(name, static_cast<double>(otherwise)));
}

std::vector<std::string> Options::All(const std::string& name) const {
  std::vector<std::string> all;
  const auto [from, to] = values_.equal_range(name);
  for (auto at = from; at != to; ++at) all.push_back(at->second);
  return all;
}

std::string Options::File(const std::string& name) const {
  if (!Has(name)) Die("--" + name + "=FILE is missing");
  return ReadFile(Text(name, ""));
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Die("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!file.flush()) Die("cannot write " + path);
}

}  // namespace nereid::bench
