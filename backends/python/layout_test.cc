// SPDX-License-Identifier: Apache-2.0
// Compares layout.def as C++ sees it with what the worker's C and Python code see.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "python_backend/protocol.h"

namespace nereid::python {
namespace {

// Prints one line, NAME=VALUE, for each constant that a worker has.
constexpr const char* kScript = R"(
import sys
sys.path.insert(0, sys.argv[1])
from nereid_python import native, protocol as p
def show(name, value):
    print(name + '=' + str(value))
for name in dir(native):
    if isinstance(getattr(native, name), int):
        show('C ' + name, getattr(native, name))
for name in dir(p):
    if name.isupper() and isinstance(getattr(p, name), int):
        show('Python ' + name, getattr(p, name))
for record, (size, fields) in native.LAYOUT.items():
    show('C ' + record, size)
    for name, (offset, length, code) in fields.items():
        show('C %s.%s' % (record, name), '%d %d' % (offset, length))
for name in dir(p):
    packer = getattr(p, name)
    if isinstance(packer, p.struct.Struct):
        count = len(packer.unpack(bytes(packer.size)))
        show('Python packs ' + name, packer.pack(*range(1, count + 1)).hex())
)";

// Returns the values in the worker's code, by name.
std::map<std::string, std::string> WorkersView() {
  const std::string command =
      std::string("'" NEREID_TEST_PYTHON "' -c \"") + kScript + "\" '" NEREID_TEST_WORKER "' 2>&1";
  std::map<std::string, std::string> view;
  FILE* const output = popen(command.c_str(), "r");
  if (output == nullptr) return view;
  char buffer[4096];
  while (std::fgets(buffer, sizeof(buffer), output) != nullptr) {
    const std::string line(buffer, std::strcspn(buffer, "\n"));
    const size_t at = line.find('=');
    if (at == std::string::npos) {
      ADD_FAILURE() << line;
    } else {
      view[line.substr(0, at)] = line.substr(at + 1);
    }
  }
  EXPECT_EQ(pclose(output), 0);
  return view;
}

// Returns the bytes of a record from a field on.
template <typename Record>
std::string Hex(const Record& record, size_t from, size_t size) {
  std::string bytes(sizeof(record), '\0');
  std::memcpy(bytes.data(), &record, sizeof(record));
  std::string hex;
  for (const char byte : bytes.substr(from, size)) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(byte));
    hex += digits;
  }
  return hex;
}
template <typename Record>
std::string Hex(const Record& record) {
  return Hex(record, 0, sizeof(record));
}

class Layout : public testing::Test {
 protected:
  static void SetUpTestSuite() { view_ = new std::map<std::string, std::string>(WorkersView()); }
  static void TearDownTestSuite() { delete view_; }

  static std::string Get(const std::string& name) {
    const auto found = view_->find(name);
    return found == view_->end() ? "nothing" : found->second;
  }

  static std::map<std::string, std::string>* view_;
};
std::map<std::string, std::string>* Layout::view_ = nullptr;

TEST_F(Layout, HasTheSameNumbersInAllLanguages) {
  int count = 0;
  const auto expect = [&](const std::string& name, uint64_t value) {
    ++count;
    EXPECT_EQ(Get("C " + name), std::to_string(value)) << name;
    // Python defines only those that it needs.
    const std::string python = Get("Python " + name);
    if (python != "nothing") {
      EXPECT_EQ(python, std::to_string(value)) << name;
    }
  };
#define NEREID_CONSTANT(name, python, value) expect(#python, name);
#define NEREID_VALUE(type, name, python, value) expect(#python, static_cast<uint32_t>(type::name));
#include "python_backend/layout.def"
  EXPECT_GT(count, 30);
}

TEST_F(Layout, HasTheSameFieldsInCAndInCxx) {
  int count = 0;
  const auto expect = [&](const std::string& name, size_t offset, size_t size) {
    ++count;
    EXPECT_EQ(Get("C " + name), std::to_string(offset) + " " + std::to_string(size)) << name;
  };
#define NEREID_FIELD(record, offset, type, name) \
  expect(#record "." #name, offsetof(record, name), sizeof(record::name));
#define NEREID_ARRAY(record, offset, type, name, count) \
  expect(#record "." #name, offsetof(record, name), sizeof(record::name));
#define NEREID_RECORD_END(record, size) \
  EXPECT_EQ(Get("C " #record), std::to_string(sizeof(record)));
#include "python_backend/layout.def"
  EXPECT_GT(count, 60);
}

TEST_F(Layout, HasItsPlacesWherePythonLooksForThem) {
  const std::map<std::string, size_t> places = {
      {"WORK", offsetof(Control, work)},
      {"DONE", offsetof(Control, done)},
      {"QUESTION", offsetof(Control, question)},
      {"REPLY", offsetof(Control, reply)},
      {"RING_TAIL", offsetof(Control, ring_tail)},
      {"RING_WAITING", offsetof(Control, ring_waiting)},
      {"AREA_OWNERS", offsetof(Control, area_owners)},
      {"SLEEPING_AT", offsetof(Mailbox, sleeping)},
      {"MAIL_AT", offsetof(Mailbox, kind)},
      {"HEADER_SIZE", sizeof(BlockHeader)},
      {"BLOCK_SLEEPING_AT", offsetof(BlockHeader, sleeping)},
      {"OUTCOME_AT", offsetof(BlockHeader, outcome)},
      {"REPLY_AT", offsetof(BlockHeader, reply_offset)},
      {"IS_RELEASED_AT", offsetof(BlockHeader, is_released)},
  };
  for (const auto& [name, offset] : places) {
    EXPECT_EQ(Get("Python " + name), std::to_string(offset)) << name;
  }
}

// Python writes 1, 2, 3 and so on into the fields of a record.
TEST_F(Layout, IsWhatPythonPacks) {
  const Mailbox mail{.word = 0, .sleeping = 0, .kind = 1, .ticket = 2, .offset = 3, .size = 4};
  EXPECT_EQ(Get("Python packs MAIL"), Hex(mail, offsetof(Mailbox, kind), 24));
  const BlockHeader block{.state = 1,
                          .sleeping = 2,
                          .kind = 3,
                          .outcome = 4,
                          .size = 5,
                          .reply_offset = 6,
                          .reply_size = 7,
                          .is_released = 8,
                          .reserved = 9};
  EXPECT_EQ(Get("Python packs HEADER"), Hex(block, 0, 48));
  const BlockHeader reply{.reply_offset = 1, .reply_size = 2};
  EXPECT_EQ(Get("Python packs REPLY_PART"), Hex(reply, offsetof(BlockHeader, reply_offset), 16));
  EXPECT_EQ(Get("Python packs FORM"), Hex(FormHeader{.inputs = 1, .outputs = 2}));
  const TensorRecord tensor{
      .datatype = 1, .dims = 2, .name_size = 3, .reserved = 4, .data = 5, .byte_size = 6};
  EXPECT_EQ(Get("Python packs TENSOR"), Hex(tensor));
  EXPECT_EQ(Get("Python packs TENSOR_HEAD"), Hex(tensor, 0, 16));
  EXPECT_EQ(Get("Python packs TENSOR_DATA"), Hex(TensorRecord{.data = 1, .byte_size = 2}, 16, 16));
  EXPECT_EQ(Get("Python packs RESPONSE"),
            Hex(ResponseRecord{.kind = 1, .release_flags = 2, .tensors = 3, .text_size = 4}));
  EXPECT_EQ(Get("Python packs SEND_HEAD"),
            Hex(SendRecord{.handle = 1, .is_final = 2, .has_response = 3}));
  EXPECT_EQ(Get("Python packs INFER_HEAD"), Hex(InferRecord{.parent = 1,
                                                            .model_version = 2,
                                                            .correlation_id = 3,
                                                            .timeout_us = 4,
                                                            .flags = 5,
                                                            .has_correlation_text = 6,
                                                            .is_stream = 7,
                                                            .inputs = 8,
                                                            .outputs = 9}));
  EXPECT_EQ(Get("Python packs REPLY_HEAD"),
            Hex(ReplyRecord{.kind = 1, .is_last = 2, .tensors = 3, .text_size = 4}));
}

}  // namespace
}  // namespace nereid::python
