// SPDX-License-Identifier: Apache-2.0
// The command line of a load generator, and the error exit.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace nereid::bench {

// Prints the message and ends the process with status 1: a load that failed has no figures.
[[noreturn]] void Die(const std::string& message);

// The command line as --name=value pairs; a bare --name has the value "1". Immutable.
class Options {
 public:
  // Ends the process for an argument that is not an option.
  Options(int argc, char** argv);

  std::string Text(const std::string& name, const std::string& otherwise) const;
  double Number(const std::string& name, double otherwise) const;
  size_t Count(const std::string& name, size_t otherwise) const;
  bool Has(const std::string& name) const { return values_.count(name) != 0; }

  // Returns the values of an option that may be repeated.
  std::vector<std::string> All(const std::string& name) const;

  // Returns the content of the file that the option names. Ends the process if there is no such
  // option or file.
  std::string File(const std::string& name) const;

 private:
  std::multimap<std::string, std::string> values_;
};

std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& content);

}  // namespace nereid::bench
