// SPDX-License-Identifier: Apache-2.0
#include "access/token.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "access/crypto.h"
#include "access/json_reader.h"
#include "base/text_encodings.h"

namespace nereid::access {
namespace {

using rapidjson::Value;

// Longer tokens do not fit into a head of a request anyway.
constexpr size_t kMaxToken = size_t{64} << 10;
constexpr size_t kMaxSubject = 256;
constexpr size_t kMaxModelPatterns = 256;

// Returns the values of a claim: a list of texts, or one text with spaces between values.
std::vector<std::string_view> ValuesOf(const Value* claim) {
  std::vector<std::string_view> values;
  if (claim == nullptr) return values;
  if (claim->IsArray()) {
    for (const Value& element : claim->GetArray()) {
      if (element.IsString()) values.push_back(ViewOf(element));
    }
    return values;
  }
  if (!claim->IsString()) return values;
  std::string_view text = ViewOf(*claim);
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) values.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return values;
}

// Returns a time in seconds; nothing if the claim is there but is no time.
std::optional<int64_t> TimeOf(const Value& claims, std::string_view name, int64_t otherwise) {
  const Value* const value = Find(claims, name);
  if (value == nullptr) return otherwise;
  if (!value->IsNumber()) return std::nullopt;
  const double time = value->GetDouble();
  if (!(time >= 0 && time < 1e12)) return std::nullopt;
  return static_cast<int64_t>(std::floor(time));
}

bool IsForUs(const Value& claims, const TokenRule& rule) {
  const Value* const audience = Find(claims, "aud");
  if (audience == nullptr) return false;
  const auto is_ours = [&rule](const Value& value) {
    return value.IsString() &&
           std::ranges::find(rule.audiences, ViewOf(value)) != rule.audiences.end();
  };
  if (!audience->IsArray()) return is_ours(*audience);
  return std::any_of(audience->Begin(), audience->End(), is_ours);
}

ScopeSet ScopesOf(const Value& claims, const TokenRule& rule) {
  ScopeSet scopes;
  for (const std::string_view value : ValuesOf(Find(claims, rule.scope_claim))) {
    const auto found = rule.scopes.find(value);
    if (found != rule.scopes.end()) scopes.Add(found->second);
  }
  return scopes;
}

// Returns nothing if the token should name models and does not.
std::optional<ModelPatterns> ModelsOf(const Value& claims, const TokenRule& rule) {
  if (rule.models_claim.empty()) return rule.models;
  std::vector<std::string> patterns;
  for (const std::string_view value : ValuesOf(Find(claims, rule.models_claim))) {
    patterns.emplace_back(value);
  }
  if (patterns.empty() || patterns.size() > kMaxModelPatterns) return std::nullopt;
  return ModelPatterns(std::move(patterns));
}

CheckedToken Invalid(std::string_view reason) { return {TokenVerdict::kInvalid, reason, nullptr}; }

// The claims of a token whose signature is good.
CheckedToken CheckClaims(const Value& claims, const TokenRule& rule, int64_t now_s,
                         CallerTable& callers) {
  if (FindText(claims, "iss") != rule.issuer) return Invalid("the issuer is unknown");
  if (!IsForUs(claims, rule)) return Invalid("the token is for another audience");
  const std::optional<int64_t> expires = TimeOf(claims, "exp", kNever);
  if (!expires || *expires == kNever) return Invalid("the token does not say when it expires");
  const std::optional<int64_t> begins = TimeOf(claims, "nbf", 0);
  if (!begins || *begins > now_s + rule.leeway_s) return Invalid("the token is not valid yet");
  if (*expires + rule.leeway_s <= now_s) {
    return {TokenVerdict::kExpired, "the token has expired", nullptr};
  }
  const auto subject = FindText(claims, "sub");
  if (!subject || subject->empty() || subject->size() > kMaxSubject) {
    return Invalid("the token has no subject");
  }
  std::optional<ModelPatterns> models = ModelsOf(claims, rule);
  if (!models) return Invalid("the token does not say for which models it is");
  auto grant = std::make_shared<Grant>();
  grant->caller = callers.Get(rule.issuer + ' ' + std::string(*subject), rule.limits);
  grant->scopes = ScopesOf(claims, rule);
  grant->models = *std::move(models);
  grant->expires_at_s = *expires + rule.leeway_s;
  return {TokenVerdict::kGood, {}, std::move(grant)};
}

}  // namespace

bool LooksLikeToken(std::string_view credential) {
  return std::ranges::count(credential, '.') == 2;
}

std::optional<UnverifiedToken> ReadToken(std::string_view token) {
  if (token.size() > kMaxToken || !LooksLikeToken(token)) return std::nullopt;
  const size_t first = token.find('.');
  const size_t second = token.find('.', first + 1);
  const auto head_text = base::DecodeBase64Url(token.substr(0, first));
  auto payload = base::DecodeBase64Url(token.substr(first + 1, second - first - 1));
  auto signature = base::DecodeBase64Url(token.substr(second + 1));
  if (!head_text || !payload || !signature || signature->empty()) return std::nullopt;
  const auto head = ParseObject(*head_text);
  const auto claims = ParseObject(*payload);
  if (!head || !claims || Find(*head, "crit") != nullptr) return std::nullopt;
  const auto algorithm = FindAlgorithm(FindText(*head, "alg").value_or(""));
  const auto issuer = FindText(*claims, "iss");
  if (!algorithm || !issuer) return std::nullopt;
  UnverifiedToken read;
  read.algorithm = *algorithm;
  if (const auto id = FindText(*head, "kid")) read.key_id = std::string(*id);
  read.issuer = std::string(*issuer);
  read.signed_text = token.substr(0, second);
  read.signature = *std::move(signature);
  read.payload = *std::move(payload);
  return read;
}

CheckedToken CheckToken(const UnverifiedToken& token, const TokenRule& rule, const TokenKeys& keys,
                        int64_t now_s, CallerTable& callers) {
  switch (keys.Verify(token.algorithm, token.key_id, token.signed_text, token.signature)) {
    case TokenKeys::Verdict::kUnknownKey:
      return {TokenVerdict::kUnknownKey, "the issuer has no such key", nullptr};
    case TokenKeys::Verdict::kBad:
      return Invalid("the signature is wrong");
    case TokenKeys::Verdict::kGood:
      break;
  }
  const auto claims = ParseObject(token.payload);
  if (!claims) return Invalid("the token is malformed");
  return CheckClaims(*claims, rule, now_s, callers);
}

}  // namespace nereid::access
