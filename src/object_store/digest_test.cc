// SPDX-License-Identifier: Apache-2.0
// Against the examples of the standards: FIPS 180-2, RFC 4231 and RFC 1321.
#include "object_store/digest.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "base/text_encodings.h"
#include "base/unique_fd.h"

namespace nereid::object_store {
namespace {

TEST(Digests, AreThoseOfTheStandards) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(base::ToHex(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Base64, IsThatOfTheStandardBothWays) {
  for (const auto& [bytes, text] : std::map<std::string, std::string>{
           {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}}) {
    EXPECT_EQ(Base64(bytes), text);
    EXPECT_EQ(DecodeBase64(text), bytes);
  }
  EXPECT_EQ(Base64("\xfb\xff"), "+/8=");
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zg===", "Z===", "====", "Zg==Zg==", " Zg==", "Zg-_"}) {
    EXPECT_EQ(DecodeBase64(text), std::nullopt) << text;
  }
}

TEST(SignRs256, NeedsAPrivateKeyAndDoesNotQuoteIt) {
  for (const char* pem :
       {"", "my secret", "-----BEGIN PRIVATE KEY-----\nTUlJ\n-----END PRIVATE KEY-----"}) {
    const auto signature = SignRs256(pem, "text");
    ASSERT_FALSE(signature.ok());
    EXPECT_EQ(signature.status().message(), "the private key is not an RSA key in the format PEM");
  }
}

TEST(Md5OfFile, IsThatOfItsBeginning) {
  const base::TemporaryFolder folder = std::move(*base::MakeTemporaryFolder("test"));
  const std::string path = folder.path + "/file";
  std::ofstream(path) << "message digest and more";
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY));
  EXPECT_EQ(Md5OfFile(file.get(), 14), "f96b697d7cb7938d525a2f31aaf161d0");
  // The place in the file does not matter, nor does it move.
  EXPECT_EQ(Md5OfFile(file.get(), 14), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(Md5OfFile(file.get(), 0), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(Md5OfFile(file.get(), 1000), "");
  EXPECT_EQ(Md5OfFile(-1, 1), "");
  std::filesystem::remove_all(folder.path);
}

}  // namespace
}  // namespace nereid::object_store
