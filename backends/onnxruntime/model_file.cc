// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/model_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "backend_kit/open_file.h"
#include "backend_kit/wire_reader.h"
#include "onnxruntime_backend/external_scan.h"

namespace nereid::onnxruntime {

using backend::Error;
using backend::Result;
using backend::StrCat;
using backend::WireReader;

namespace {

bool BeginsWith(std::string_view text, std::string_view beginning) {
  return text.size() >= beginning.size() &&
         std::equal(beginning.begin(), beginning.end(), text.begin(), [](char a, char b) {
           return a == std::tolower(static_cast<unsigned char>(b));
         });
}

// Returns what kind of file begins like this instead of a model; empty if it may be a model.
std::string WhatElse(std::string_view head) {
  using std::string_view_literals::operator""sv;
  std::string_view text = head;
  if (text.substr(0, 3) == "\xEF\xBB\xBF") {
    text.remove_prefix(3);
  }
  // A line break, 0x0A, may also be a field of a model, so the text after leading blanks decides.
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (BeginsWith(text, "version https://git-lfs")) {
    return "it is a pointer of Git LFS to the model, not the model: fetch that with 'git lfs pull'";
  }
  if (BeginsWith(text, "<!doctype") || BeginsWith(text, "<html") || BeginsWith(text, "<head")) {
    return "it is an HTML page: a download saved the page about the model, or of an error, in "
           "place "
           "of the model";
  }
  if (BeginsWith(text, "<?xml")) {
    return "it is an XML document";
  }
  constexpr std::array<std::pair<std::string_view, const char*>, 5> kFormats{
      {{"PK\x03\x04"sv, "a ZIP archive, as PyTorch writes them (export the model to ONNX)"},
       {"\x1F\x8B"sv, "a gzip archive"},
       {"\x89HDF"sv, "an HDF5 file, as Keras writes them (export the model to ONNX)"},
       {"\x80\x02"sv, "a pickled Python object (export the model to ONNX)"},
       {"\x7F"
        "ELF"sv,
        "a program or shared library"}}};
  for (const auto& [magic, what] : kFormats) {
    if (head.substr(0, magic.size()) == magic) {
      return StrCat("it is ", what);
    }
  }
  return {};
}

bool IsText(std::string_view head) {
  return std::all_of(head.begin(), head.end(), [](char c) {
    return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t';
  });
}

}  // namespace

Result<ModelFile> ModelFile::Read(const std::string& path) {
  const auto refuse = [&path](const auto&... why) {
    return Error::InvalidArgument(StrCat("'", path, "' is not an ONNX model: ", why...));
  };
  const backend::OpenFile file(path);
  struct stat facts{};
  if (file.fd < 0 || ::fstat(file.fd, &facts) != 0) {
    return Error::Unavailable(StrCat("unable to read '", path, "': ", std::strerror(errno)));
  }
  if (facts.st_size == 0) {
    return refuse("the file is empty");
  }
  std::array<char, 512> head{};
  const ssize_t got = ::pread(file.fd, head.data(), head.size(), 0);
  const std::string_view beginning(head.data(), got > 0 ? static_cast<size_t>(got) : 0);
  if (const std::string what = WhatElse(beginning); !what.empty()) {
    return refuse(what);
  }
  ModelFile model;
  model.facts = facts;
  if (beginning.size() >= 8 && beginning.substr(4, 4) == "ORTM") {
    model.is_ort_format = true;
    return model;
  }
  const auto size = static_cast<uint64_t>(facts.st_size);
  WireReader reader(file.fd, size);
  const std::string problem = FindExternalTensors(reader, &model.external_tensors);
  if ((reader.is_cut_off() || reader.is_malformed()) && IsText(beginning)) {
    return refuse("it is a text that begins with '",
                  beginning.substr(0, beginning.find('\n')).substr(0, 80), "'");
  }
  if (reader.is_cut_off()) {
    return refuse("the file ends, after ", size,
                  " bytes, within a part that is longer: it is cut off, or something else");
  }
  if (reader.is_malformed()) {
    return refuse("it is damaged, or something else");
  }
  if (!problem.empty()) {
    return refuse(problem);
  }
  return model;
}

}  // namespace nereid::onnxruntime
