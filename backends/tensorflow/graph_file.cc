// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/graph_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "tensorflow_backend/graph_parser.h"

namespace nereid::tensorflow {

using backend::Error;
using backend::Result;
using backend::StrCat;
using backend::WireReader;

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxBytes = uint64_t{2} << 30;  // what a protobuf message can be

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

// What a file is that begins like this and that is no model of TensorFlow; empty if unknown.
std::string_view Mistaken(std::string_view beginning) {
  const auto begins = [&](std::string_view text) { return beginning.starts_with(text); };
  if (begins("version https://git-lfs")) {
    return "it is a pointer of Git LFS: fetch the file itself with 'git lfs pull'";
  }
  if (begins("<!DOCTYPE") || begins("<!doctype") || begins("<html") || begins("<HTML")) {
    return "it is a web page: the download went wrong";
  }
  if (begins("PK\x03\x04")) {
    return "it is an archive, as PyTorch and Keras make them: TensorFlow serves SavedModels "
           "(model.export(FOLDER) of Keras, tf.saved_model.save)";
  }
  if (begins("\x89HDF")) {
    return "it is an HDF5 file of Keras: save the model as a SavedModel with model.export(FOLDER)";
  }
  if (beginning.size() >= 8 && beginning.substr(4, 4) == "TFL3") {
    return "it is a TensorFlow Lite model, which the openvino backend serves";
  }
  if (begins("node {") || begins("saved_model_schema_version")) {
    return "it is text: write it with as_text=False";
  }
  if (beginning.find_first_not_of('\0') == std::string_view::npos) {
    return "it begins with nothing but zeros";
  }
  return "it is damaged, cut off, or something else";
}

// Opens the file and returns what `parse` makes of it. `what` is what the file should be.
template <typename Message>
Result<Message> Parse(const std::string& path, const char* what,
                      std::optional<Message> (*parse)(WireReader&)) {
  const OpenFile file(path);
  struct stat facts = {};
  if (file.fd < 0 || ::fstat(file.fd, &facts) != 0) {
    return Error::Unavailable(StrCat("'", path, "' cannot be read: ", std::strerror(errno)));
  }
  const auto refuse = [&](std::string_view reason) {
    return Error::InvalidArgument(StrCat("'", path, "' is not ", what, ": ", reason));
  };
  if (!S_ISREG(facts.st_mode)) {
    return refuse(S_ISDIR(facts.st_mode) ? "it is a folder" : "it is no regular file");
  }
  const auto size = static_cast<uint64_t>(facts.st_size);
  if (size == 0) {
    return refuse("it is empty");
  }
  if (size > kMaxBytes) {
    return refuse("it is larger than 2 GiB, which this format cannot be");
  }
  WireReader reader(file.fd, size);
  std::optional<Message> message = parse(reader);
  if (!message) {
    std::array<char, 512> head{};
    const ssize_t got = ::pread(file.fd, head.data(), head.size(), 0);
    return refuse(Mistaken({head.data(), got > 0 ? static_cast<size_t>(got) : 0}));
  }
  return std::move(*message);
}

}  // namespace

Result<std::vector<MetaGraph>> ReadSavedModel(const std::string& folder) {
  std::error_code ignored;
  const fs::path path = fs::path(folder) / "saved_model.pb";
  if (!fs::is_directory(folder, ignored)) {
    return Error::InvalidArgument(StrCat(
        "'", folder, "' is not a SavedModel: it is a file, and a SavedModel is a folder with ",
        "saved_model.pb (for a frozen graph: platform \"tensorflow_graphdef\")"));
  }
  if (!fs::exists(path, ignored)) {
    return Error::InvalidArgument(
        StrCat("'", folder, "' is not a SavedModel: the folder has no saved_model.pb",
               fs::exists(fs::path(folder) / "saved_model.pbtxt", ignored)
                   ? ", only saved_model.pbtxt: save it with as_text=False"
                   : ""));
  }
  return Parse(path.string(), "the graph of a SavedModel", ParseSavedModel);
}

Result<Graph> ReadGraphDef(const std::string& path) {
  return Parse(path, "a GraphDef", ParseGraphDef);
}

}  // namespace nereid::tensorflow
