// SPDX-License-Identifier: Apache-2.0
// Fuzzes cached responses as they come back from a cache that may have changed them. The checksum
// is not looked at, because it would hide what is behind it. What is accepted can be unpacked and
// is then the same when it is packed again.
#include "cache_host/packed_response.h"

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "core/testing/fakes.h"
#include "fuzz/fuzz.h"

namespace {

namespace core = nereid::core;
using nereid::cache_host::CheckPackedResponse;
using nereid::cache_host::Integrity;
using nereid::cache_host::PackedSize;
using nereid::cache_host::PackResponse;
using nereid::cache_host::UnpackResponse;

struct Fixture {
  Fixture() {
    key.text.fill('k');
    key.text.back() = '\0';
  }
  std::string Pack(const core::Response& response) const {
    std::string bytes(PackedSize(key, response).value(), '\0');
    PackResponse(key, response, std::as_writable_bytes(std::span(bytes)), Integrity::kTrusted);
    return bytes;
  }

  const std::unique_ptr<core::Model> model = core::MakeFakeModel(0, {-1});
  core::FakeSink sink;
  const core::RequestPtr request = core::MakeFakeRequest(*model, sink, {2});
  core::CacheKey key;
};

Fixture& TheFixture() {
  static Fixture* const fixture = new Fixture;
  return *fixture;
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  std::vector<std::string> seeds;
  for (const int64_t count : {0, 1, 5}) {
    core::ResponsePtr response = core::Response::Create(*TheFixture().request);
    core::ResponseOutput& output =
        *response->AddOutput("OUTPUT0", nereid::tensor::DataType::kFp32, std::span(&count, 1));
    NEREID_CHECK(response->AllocateBuffer(output, static_cast<size_t>(count) * 4, {}, true).ok());
    response->AddParameter({"text", std::string_view("value")});
    response->AddParameter({"number", int64_t{7}});
    response->AddParameter({"truth", true});
    seeds.push_back(TheFixture().Pack(*response));
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Fixture& fixture = TheFixture();
  // A copy of exactly this size, for AddressSanitizer.
  const auto copy = std::make_unique<std::byte[]>(size);
  std::copy_n(reinterpret_cast<const std::byte*>(data), size, copy.get());
  const std::span<const std::byte> packed(copy.get(), size);
  const auto checked =
      CheckPackedResponse(fixture.key, packed, *fixture.model, Integrity::kTrusted);
  if (!checked.ok()) {
    NEREID_CHECK(!checked.message().empty());
    return 0;
  }
  core::ResponsePtr response = core::Response::Create(*fixture.request);
  NEREID_CHECK(UnpackResponse(packed, *response).ok());
  const std::string again = fixture.Pack(*response);
  NEREID_CHECK(CheckPackedResponse(fixture.key, std::as_bytes(std::span(again)), *fixture.model,
                                   Integrity::kTrusted)
                   .ok());
  return 0;
}
