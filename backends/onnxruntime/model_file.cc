// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/model_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "backend_kit/wire_reader.h"

namespace nereid::onnxruntime {

using backend::Error;
using backend::Result;
using backend::StrCat;
using backend::WireRange;
using backend::WireReader;

namespace {

// Graphs may contain graphs; the limit keeps hostile files from overflowing the stack.
constexpr int kMaxDepth = 64;

// Closes the file at the end of its scope.
struct OpenFile {
  explicit OpenFile(const std::string& path) : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~OpenFile() {
    if (fd >= 0) {
      ::close(fd);
    }
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  const int fd;
};

// The field numbers of onnx.proto.
namespace model_field {
constexpr uint32_t kGraph = 7, kFunctions = 25;
}
namespace graph_field {
constexpr uint32_t kNode = 1, kInitializer = 5, kSparseInitializer = 15;
}
namespace function_field {
constexpr uint32_t kNode = 7;
}
namespace node_field {
constexpr uint32_t kAttribute = 5;
}
namespace attribute_field {
constexpr uint32_t kTensor = 5, kGraph = 6, kTensors = 10, kGraphs = 11, kSparseTensor = 22,
                   kSparseTensors = 23;
}
namespace sparse_field {
constexpr uint32_t kValues = 1, kIndices = 2;
}
namespace tensor_field {
constexpr uint32_t kName = 8, kExternalData = 13, kDataLocation = 14;
constexpr uint64_t kExternal = 1;
}  // namespace tensor_field

// Collects the external tensors of a model. Stops if the file is not protobuf.
class Scan {
 public:
  Scan(WireReader& reader, std::vector<ExternalTensor>* found) : reader_(reader), found_(*found) {}

  void Model(WireRange model) {
    while (const auto field = reader_.Next(model)) {
      if (field->number == model_field::kGraph) {
        Graph(field->range, 0);
      } else if (field->number == model_field::kFunctions) {
        Nodes(field->range, function_field::kNode, 0);
      }
    }
  }

  // The error, if external data of a tensor has an invalid number, or graphs are nested too deeply.
  const std::string& problem() const { return problem_; }

 private:
  void Graph(WireRange graph, int depth) {
    if (depth > kMaxDepth) {
      problem_ = StrCat("its graphs are nested more than ", kMaxDepth, " deep");
      return;
    }
    WireRange tensors = graph;
    while (const auto field = reader_.Next(tensors)) {
      if (field->number == graph_field::kInitializer) {
        Tensor(field->range);
      } else if (field->number == graph_field::kSparseInitializer) {
        SparseTensor(field->range);
      } else if (field->number == graph_field::kNode) {
        Node(field->range, depth);
      }
    }
  }

  void Nodes(WireRange function, uint32_t number, int depth) {
    while (const auto field = reader_.Next(function)) {
      if (field->number == number) {
        Node(field->range, depth);
      }
    }
  }

  void Node(WireRange node, int depth) {
    while (const auto field = reader_.Next(node)) {
      if (field->number == node_field::kAttribute) {
        Attribute(field->range, depth);
      }
    }
  }

  void Attribute(WireRange attribute, int depth) {
    while (const auto field = reader_.Next(attribute)) {
      switch (field->number) {
        case attribute_field::kTensor:
        case attribute_field::kTensors:
          Tensor(field->range);
          break;
        case attribute_field::kSparseTensor:
        case attribute_field::kSparseTensors:
          SparseTensor(field->range);
          break;
        case attribute_field::kGraph:
        case attribute_field::kGraphs:
          Graph(field->range, depth + 1);
          break;
        default:
          break;
      }
    }
  }

  void SparseTensor(WireRange sparse) {
    while (const auto field = reader_.Next(sparse)) {
      if (field->number == sparse_field::kValues || field->number == sparse_field::kIndices) {
        Tensor(field->range);
      }
    }
  }

  void Tensor(WireRange tensor) {
    ExternalTensor external;
    bool is_external = false;
    while (const auto field = reader_.Next(tensor)) {
      if (field->number == tensor_field::kName) {
        external.name = reader_.Text(field->range);
      } else if (field->number == tensor_field::kDataLocation) {
        is_external = field->value == tensor_field::kExternal;
      } else if (field->number == tensor_field::kExternalData) {
        Entry(field->range, external);
      }
    }
    if (is_external) {
      found_.push_back(std::move(external));
    }
  }

  void Entry(WireRange entry, ExternalTensor& tensor) {
    std::string key;
    std::string value;
    while (const auto field = reader_.Next(entry)) {
      (field->number == 1 ? key : value) = reader_.Text(field->range);
    }
    if (key == "location") {
      tensor.location = value;
    } else if (key == "offset" || key == "length") {
      uint64_t& number = key == "offset" ? tensor.offset : tensor.length;
      const char* const end = value.data() + value.size();
      if (std::from_chars(value.data(), end, number).ptr != end || value.empty()) {
        problem_ = StrCat("the external data of tensor '", tensor.name, "' has the ", key, " '",
                          value, "', which is not a number");
      }
    }
  }

  WireReader& reader_;
  std::vector<ExternalTensor>& found_;
  std::string problem_;
};

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
  const OpenFile file(path);
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
  Scan scan(reader, &model.external_tensors);
  scan.Model(reader.whole());
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
  if (!scan.problem().empty()) {
    return refuse(scan.problem());
  }
  return model;
}

}  // namespace nereid::onnxruntime
