// SPDX-License-Identifier: Apache-2.0
#include "access/rules.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>

#include <fmt/format.h>

#include "access/json_reader.h"
#include "base/nearest_name.h"

namespace nereid::access {
namespace {

using base::InvalidArgumentError;
using base::Status;
using rapidjson::Value;

constexpr size_t kMaxText = size_t{16} << 20;
constexpr size_t kMaxId = 128;
constexpr int64_t kMaxLeeway = 600;

// Errors name the place, such as "keys[2].scopes".
Status Wrong(std::string_view place, std::string_view expected) {
  return InvalidArgumentError(fmt::format("{}: expected {}", place, expected));
}

// One object of the file, all of whose members must be known.
class ObjectReader {
 public:
  ObjectReader(const Value& object, std::string place)
      : object_(object), place_(std::move(place)) {}

  std::string PlaceOf(std::string_view name) const {
    return place_.empty() ? std::string(name) : fmt::format("{}.{}", place_, name);
  }
  const std::string& place() const { return place_; }

  Status CheckNames(std::span<const std::string_view> known) const {
    if (!object_.IsObject()) return Wrong(place_, "an object");
    std::set<std::string_view> seen;
    for (const auto& member : object_.GetObject()) {
      const std::string_view name = ViewOf(member.name);
      if (std::ranges::find(known, name) == known.end()) {
        return InvalidArgumentError(fmt::format("{}: there is no such setting{}", PlaceOf(name),
                                                base::DidYouMean(name, known)));
      }
      if (!seen.insert(name).second) {
        return InvalidArgumentError(fmt::format("{} is given twice", PlaceOf(name)));
      }
    }
    return base::OkStatus();
  }

  const Value* Member(std::string_view name) const { return Find(object_, name); }

  // Returns "" if there is no such member.
  base::Result<std::string> Text(std::string_view name) const {
    const Value* const value = Member(name);
    if (value == nullptr) return std::string();
    if (!value->IsString() || value->GetStringLength() == 0) {
      return Wrong(PlaceOf(name), "a text");
    }
    return std::string(ViewOf(*value));
  }

  base::Result<std::string> RequiredText(std::string_view name) const {
    if (Member(name) == nullptr) return Wrong(PlaceOf(name), "a text, but it is missing");
    return Text(name);
  }

  // A list of texts, or one text. Empty if there is no such member.
  base::Result<std::vector<std::string>> Texts(std::string_view name) const {
    const Value* const value = Member(name);
    if (value == nullptr) return std::vector<std::string>();
    if (value->IsString()) {
      NEREID_ASSIGN_OR_RETURN(std::string text, Text(name));
      return std::vector<std::string>{std::move(text)};
    }
    if (!value->IsArray() || value->Empty()) return Wrong(PlaceOf(name), "a list of texts");
    std::vector<std::string> texts;
    for (const Value& element : value->GetArray()) {
      if (!element.IsString() || element.GetStringLength() == 0) {
        return Wrong(PlaceOf(name), "a list of texts");
      }
      texts.emplace_back(ViewOf(element));
    }
    return texts;
  }

  base::Result<double> Number(std::string_view name, double otherwise, double most) const {
    const Value* const value = Member(name);
    if (value == nullptr) return otherwise;
    if (!value->IsNumber() || !(value->GetDouble() >= 0) || value->GetDouble() > most) {
      return Wrong(PlaceOf(name), fmt::format("a number from 0 to {}", most));
    }
    return value->GetDouble();
  }

  base::Result<bool> Bool(std::string_view name) const {
    const Value* const value = Member(name);
    if (value != nullptr && !value->IsBool()) return Wrong(PlaceOf(name), "true or false");
    return value != nullptr && value->GetBool();
  }

 private:
  const Value& object_;
  const std::string place_;
};

base::Result<ScopeSet> ScopesOf(const ObjectReader& reader, std::string_view name) {
  NEREID_ASSIGN_OR_RETURN(const std::vector<std::string> names, reader.Texts(name));
  ScopeSet scopes;
  for (const std::string& each : names) {
    const std::optional<Scope> scope = FindScope(each);
    if (!scope) {
      return InvalidArgumentError(fmt::format(
          "{}: there is no scope '{}', expected {}{}", reader.PlaceOf(name), each,
          base::QuotedList(GrantableScopes()), base::DidYouMean(each, GrantableScopes())));
    }
    scopes.Add(*scope);
  }
  return scopes;
}

// Ids go into logs and metrics, and are told apart from those of tokens by their having no spaces.
Status CheckId(const ObjectReader& reader, const std::string& id, std::set<std::string>& ids) {
  const bool is_plain = std::ranges::all_of(id, [](char c) { return c > ' ' && c < 0x7f; });
  if (id.empty() || id.size() > kMaxId || !is_plain) {
    return Wrong(reader.PlaceOf("id"),
                 fmt::format("1 to {} printable ASCII characters without spaces", kMaxId));
  }
  if (!ids.insert(id).second) {
    return InvalidArgumentError(fmt::format("{}: '{}' is used twice", reader.PlaceOf("id"), id));
  }
  return base::OkStatus();
}

base::Result<core::CallerLimits> LimitsOf(const ObjectReader& parent) {
  core::CallerLimits limits;
  const Value* const value = parent.Member("limits");
  if (value == nullptr) return limits;
  static constexpr std::array<std::string_view, 4> kNames = {
      "requests_per_second", "bytes_per_second", "in_flight", "weight"};
  const ObjectReader reader(*value, parent.PlaceOf("limits"));
  NEREID_RETURN_IF_ERROR(reader.CheckNames(kNames));
  NEREID_ASSIGN_OR_RETURN(limits.requests_per_s, reader.Number("requests_per_second", 0, 1e9));
  NEREID_ASSIGN_OR_RETURN(limits.bytes_per_s, reader.Number("bytes_per_second", 0, 1e15));
  NEREID_ASSIGN_OR_RETURN(const double in_flight, reader.Number("in_flight", 0, 1e9));
  limits.in_flight = static_cast<uint32_t>(in_flight);
  NEREID_ASSIGN_OR_RETURN(const double weight, reader.Number("weight", 1, 1e6));
  if (weight < 1) return Wrong(reader.PlaceOf("weight"), "a number of at least 1");
  limits.weight = static_cast<uint32_t>(weight);
  return limits;
}

// Reads the members that keys and certificates have in common.
base::Result<GrantRef> GrantOf(const ObjectReader& reader, CallerTable& callers,
                               std::set<std::string>& ids) {
  auto grant = std::make_shared<Grant>();
  NEREID_ASSIGN_OR_RETURN(const std::string id, reader.RequiredText("id"));
  NEREID_RETURN_IF_ERROR(CheckId(reader, id, ids));
  NEREID_ASSIGN_OR_RETURN(grant->scopes, ScopesOf(reader, "scopes"));
  if (grant->scopes.empty()) {
    return Wrong(reader.PlaceOf("scopes"), "a list of scopes, but it is missing");
  }
  NEREID_ASSIGN_OR_RETURN(std::vector<std::string> models, reader.Texts("models"));
  grant->models = ModelPatterns(std::move(models));
  NEREID_ASSIGN_OR_RETURN(const std::string expires, reader.Text("expires"));
  if (!expires.empty()) {
    const std::optional<int64_t> time = ParseTime(expires);
    if (!time) return Wrong(reader.PlaceOf("expires"), "a time such as 2027-01-31T12:00:00Z");
    grant->expires_at_s = *time;
  }
  NEREID_ASSIGN_OR_RETURN(const core::CallerLimits limits, LimitsOf(reader));
  grant->caller = callers.Get(id, limits);
  return GrantRef(std::move(grant));
}

// Reads one section of the file, a list of objects.
template <typename Fn>
Status ForEach(const ObjectReader& file, std::string_view section, Fn&& fn) {
  const Value* const list = file.Member(section);
  if (list == nullptr) return base::OkStatus();
  if (!list->IsArray()) return Wrong(section, "a list");
  for (rapidjson::SizeType i = 0; i < list->Size(); ++i) {
    NEREID_RETURN_IF_ERROR(fn(ObjectReader((*list)[i], fmt::format("{}[{}]", section, i))));
  }
  return base::OkStatus();
}

// Reads a whole file.
class RulesReader {
 public:
  RulesReader(const ObjectReader& file, CallerTable& callers) : file_(file), callers_(callers) {}

  base::Result<Rules> Read() {
    static constexpr std::array<std::string_view, 5> kSections = {"keys", "certificates", "tokens",
                                                                  "anonymous", "protect_health"};
    NEREID_RETURN_IF_ERROR(file_.CheckNames(kSections));
    NEREID_RETURN_IF_ERROR(
        ForEach(file_, "keys", [this](const ObjectReader& reader) { return AddKey(reader); }));
    NEREID_RETURN_IF_ERROR(ForEach(file_, "certificates", [this](const ObjectReader& reader) {
      return AddCertificate(reader);
    }));
    NEREID_RETURN_IF_ERROR(
        ForEach(file_, "tokens", [this](const ObjectReader& reader) { return AddToken(reader); }));
    NEREID_RETURN_IF_ERROR(ReadAnonymous());
    NEREID_ASSIGN_OR_RETURN(rules_.protects_health, file_.Bool("protect_health"));
    return std::move(rules_);
  }

 private:
  Status AddKey(const ObjectReader& reader) {
    static constexpr std::array<std::string_view, 7> kNames = {
        "id", "sha256", "scopes", "models", "expires", "created", "limits"};
    NEREID_RETURN_IF_ERROR(reader.CheckNames(kNames));
    NEREID_ASSIGN_OR_RETURN(const std::string hex, reader.RequiredText("sha256"));
    const std::optional<Digest> digest = DigestFromHex(hex);
    if (!digest) return Wrong(reader.PlaceOf("sha256"), "64 hexadecimal digits");
    if (!digests_.insert(*digest).second) {
      return InvalidArgumentError(reader.PlaceOf("sha256") + ": two ids have the same key");
    }
    NEREID_ASSIGN_OR_RETURN(GrantRef grant, GrantOf(reader, callers_, ids_));
    rules_.keys.push_back({*digest, std::move(grant)});
    return base::OkStatus();
  }

  Status AddCertificate(const ObjectReader& reader) {
    static constexpr std::array<std::string_view, 7> kNames = {
        "id", "subject", "name", "scopes", "models", "expires", "limits"};
    NEREID_RETURN_IF_ERROR(reader.CheckNames(kNames));
    CertificateRule rule;
    NEREID_ASSIGN_OR_RETURN(rule.subject, reader.Text("subject"));
    NEREID_ASSIGN_OR_RETURN(rule.name, reader.Text("name"));
    if (rule.subject.empty() == rule.name.empty()) {
      return Wrong(reader.place(), "either 'subject' or 'name'");
    }
    NEREID_ASSIGN_OR_RETURN(rule.grant, GrantOf(reader, callers_, ids_));
    rules_.certificates.push_back(std::move(rule));
    return base::OkStatus();
  }

  Status AddToken(const ObjectReader& reader) {
    static constexpr std::array<std::string_view, 9> kNames = {
        "issuer", "audience",     "keys",           "scope_claim", "scopes",
        "models", "models_claim", "leeway_seconds", "limits"};
    NEREID_RETURN_IF_ERROR(reader.CheckNames(kNames));
    TokenRule rule;
    NEREID_ASSIGN_OR_RETURN(rule.issuer, reader.RequiredText("issuer"));
    for (const TokenRule& other : rules_.tokens) {
      if (other.issuer == rule.issuer) {
        return InvalidArgumentError(reader.PlaceOf("issuer") + ": it is there already");
      }
    }
    NEREID_ASSIGN_OR_RETURN(rule.audiences, reader.Texts("audience"));
    if (rule.audiences.empty()) {
      return Wrong(reader.PlaceOf("audience"), "the name by which the issuer knows this server");
    }
    NEREID_ASSIGN_OR_RETURN(rule.keys, reader.RequiredText("keys"));
    if (rule.keys.starts_with("http://") && !IsOnThisMachine(rule.keys)) {
      return Wrong(reader.PlaceOf("keys"), "a file, or a URL that begins with https://");
    }
    NEREID_RETURN_IF_ERROR(ReadClaims(reader, rule));
    NEREID_ASSIGN_OR_RETURN(const double leeway, reader.Number("leeway_seconds", 60, kMaxLeeway));
    rule.leeway_s = static_cast<int64_t>(leeway);
    NEREID_ASSIGN_OR_RETURN(rule.limits, LimitsOf(reader));
    rules_.tokens.push_back(std::move(rule));
    return base::OkStatus();
  }

  static bool IsOnThisMachine(std::string_view url) {
    url.remove_prefix(std::string_view("http://").size());
    const std::string_view authority = url.substr(0, url.find_first_of("/?#\\"));
    // A name in front of the host would look like one.
    if (authority.find('@') != std::string_view::npos) return false;
    const std::string_view host = authority.substr(0, authority.find(':'));
    return host == "localhost" || host == "127.0.0.1";
  }

  static Status ReadClaims(const ObjectReader& reader, TokenRule& rule) {
    NEREID_ASSIGN_OR_RETURN(std::string claim, reader.Text("scope_claim"));
    if (!claim.empty()) rule.scope_claim = std::move(claim);
    const Value* const scopes = reader.Member("scopes");
    if (scopes == nullptr || !scopes->IsObject() || scopes->ObjectEmpty()) {
      return Wrong(reader.PlaceOf("scopes"),
                   "an object such as {\"<value of the claim>\": [\"infer\"]}");
    }
    const ObjectReader each(*scopes, reader.PlaceOf("scopes"));
    for (const auto& member : scopes->GetObject()) {
      const std::string_view value = ViewOf(member.name);
      NEREID_ASSIGN_OR_RETURN(const ScopeSet set, ScopesOf(each, value));
      rule.scopes[std::string(value)].Add(set);
    }
    NEREID_ASSIGN_OR_RETURN(rule.models_claim, reader.Text("models_claim"));
    NEREID_ASSIGN_OR_RETURN(std::vector<std::string> models, reader.Texts("models"));
    if (!models.empty() && !rule.models_claim.empty()) {
      return Wrong(reader.place(), "either 'models' or 'models_claim'");
    }
    rule.models = ModelPatterns(std::move(models));
    return base::OkStatus();
  }

  Status ReadAnonymous() {
    auto grant = std::make_shared<Grant>();
    grant->is_anonymous = true;
    core::CallerLimits limits;
    if (const Value* const value = file_.Member("anonymous")) {
      static constexpr std::array<std::string_view, 3> kNames = {"scopes", "models", "limits"};
      const ObjectReader reader(*value, "anonymous");
      NEREID_RETURN_IF_ERROR(reader.CheckNames(kNames));
      NEREID_ASSIGN_OR_RETURN(grant->scopes, ScopesOf(reader, "scopes"));
      NEREID_ASSIGN_OR_RETURN(std::vector<std::string> models, reader.Texts("models"));
      grant->models = ModelPatterns(std::move(models));
      NEREID_ASSIGN_OR_RETURN(limits, LimitsOf(reader));
    }
    grant->caller = callers_.Get("anonymous", limits);
    rules_.anonymous = std::move(grant);
    return base::OkStatus();
  }

  const ObjectReader& file_;
  CallerTable& callers_;
  Rules rules_;
  std::set<std::string> ids_{"anonymous"};
  std::set<Digest> digests_;
};

}  // namespace

bool IsUrl(std::string_view keys) {
  return keys.starts_with("https://") || keys.starts_with("http://");
}

base::Result<Rules> ParseRules(std::string_view text, CallerTable& callers) {
  if (text.size() > kMaxText) {
    return InvalidArgumentError(fmt::format("the file has more than {} bytes", kMaxText));
  }
  const std::optional<rapidjson::Document> document = ParseObject(text);
  if (!document) return InvalidArgumentError("expected a JSON object");
  const ObjectReader file(*document, "");
  return RulesReader(file, callers).Read();
}

std::optional<int64_t> ParseTime(std::string_view text) {
  // A digit stands for any digit.
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  constexpr size_t kDateSize = 10;
  if (text.size() != kDateSize && text.size() != kForm.size()) return std::nullopt;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !is_digit : text[i] != kForm[i]) return std::nullopt;
  }
  const auto number = [text](size_t at, size_t size) {
    unsigned value = 0;
    for (const char c : text.substr(std::min(at, text.size()), size)) {
      value = value * 10 + static_cast<unsigned>(c - '0');
    }
    return value;
  };
  const unsigned hour = number(11, 2);
  const unsigned minute = number(14, 2);
  const unsigned second = number(17, 2);
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(number(0, 4))),
                                         std::chrono::month(number(5, 2)),
                                         std::chrono::day(number(8, 2))};
  if (!date.ok() || number(0, 4) < 1970 || hour > 23 || minute > 59 || second > 59) {
    return std::nullopt;
  }
  const std::chrono::seconds since_1970 = std::chrono::sys_days(date).time_since_epoch() +
                                          std::chrono::hours(hour) + std::chrono::minutes(minute) +
                                          std::chrono::seconds(second);
  return since_1970.count();
}

}  // namespace nereid::access
