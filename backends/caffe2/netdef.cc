// SPDX-License-Identifier: Apache-2.0
#include "caffe2_backend/netdef.h"

#include <algorithm>
#include <optional>

#include "caffe2_backend/wire.h"

namespace nereid::caffe2 {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

using Kind = WireField::Kind;

// The field numbers of the messages of Caffe2.
namespace operator_field {
constexpr uint32_t kInput = 1, kOutput = 2, kName = 3, kType = 4, kArgument = 5;
}
namespace net_field {
constexpr uint32_t kName = 1, kOperator = 2, kExternalInput = 7, kExternalOutput = 8;
}

std::optional<Operator> ParseOperator(std::string_view message) {
  Operator parsed;
  WireReader reader(message);
  WireField field;
  while (reader.Next(field)) {
    if (field.number <= operator_field::kArgument && field.kind != Kind::kBytes) {
      return std::nullopt;
    }
    switch (field.number) {
      case operator_field::kInput:
        parsed.inputs.push_back(field.bytes);
        break;
      case operator_field::kOutput:
        parsed.outputs.push_back(field.bytes);
        break;
      case operator_field::kName:
        parsed.name = field.bytes;
        break;
      case operator_field::kType:
        parsed.type = field.bytes;
        break;
      case operator_field::kArgument: {
        const std::optional<Argument> argument = Argument::Parse(field.bytes);
        if (!argument) {
          return std::nullopt;
        }
        parsed.arguments.push_back(*argument);
        break;
      }
      default:
        break;
    }
  }
  if (reader.is_malformed() || parsed.type.empty()) {
    return std::nullopt;
  }
  return parsed;
}

bool IsText(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t';
  });
}

// Returns what a file may be that is no network; empty if that cannot be told.
std::string WhatItIs(std::string_view bytes) {
  const std::string_view head = bytes.substr(0, 512);
  if (IsText(head)) {
    return StrCat("it is a text that begins with '", head.substr(0, head.find('\n')).substr(0, 80),
                  "'; networks in text form (.pbtxt) have to be written with SerializeToString()");
  }
  if (std::all_of(head.begin(), head.end(), [](char c) { return c == '\0'; })) {
    return "it begins with nothing but zeros";
  }
  return {};
}

// Returns what kind of file begins like this instead of a network; empty if it may be one.
std::string WhatElse(std::string_view bytes) {
  using std::string_view_literals::operator""sv;
  if (bytes.empty()) {
    return "the file is empty";
  }
  if (bytes.starts_with("version https://git-lfs")) {
    return "it is a pointer of Git LFS to the model, not the model: fetch that with 'git lfs pull'";
  }
  if (bytes.starts_with("PK\x03\x04"sv)) {
    return "it is a ZIP archive, as PyTorch writes them (platform pytorch_libtorch)";
  }
  if (bytes.starts_with("\x89HDF"sv)) {
    return "it is an HDF5 file";
  }
  return {};
}

}  // namespace

const Argument* Operator::Find(std::string_view wanted) const {
  for (const Argument& argument : arguments) {
    if (argument.name() == wanted) {
      return &argument;
    }
  }
  return nullptr;
}

Result<NetDef> NetDef::Parse(std::string_view bytes, const std::string& path) {
  const auto refuse = [&path](const auto&... why) {
    return Error::InvalidArgument(StrCat("'", path, "' is not a Caffe2 NetDef: ", why...));
  };
  if (const std::string what = WhatElse(bytes); !what.empty()) {
    return refuse(what);
  }
  NetDef net;
  WireReader reader(bytes);
  WireField field;
  while (reader.Next(field)) {
    const bool is_ours = field.number == net_field::kName || field.number == net_field::kOperator ||
                         field.number == net_field::kExternalInput ||
                         field.number == net_field::kExternalOutput;
    if (is_ours && field.kind != Kind::kBytes) {
      return refuse("it is damaged, or something else");
    }
    if (field.number == net_field::kName) {
      net.name = field.bytes;
    } else if (field.number == net_field::kExternalInput) {
      net.external_inputs.push_back(field.bytes);
    } else if (field.number == net_field::kExternalOutput) {
      net.external_outputs.push_back(field.bytes);
    } else if (field.number == net_field::kOperator) {
      std::optional<Operator> parsed = ParseOperator(field.bytes);
      if (!parsed) {
        return refuse("its operator #", net.operators.size(),
                      " cannot be read; it is damaged, or something else");
      }
      net.operators.push_back(std::move(*parsed));
    }
  }
  if (reader.is_malformed()) {
    const std::string what = WhatItIs(bytes);
    return what.empty()
               ? refuse("it is cut off after ", bytes.size(), " bytes, damaged, or something else")
               : refuse(what);
  }
  return net;
}

}  // namespace nereid::caffe2
