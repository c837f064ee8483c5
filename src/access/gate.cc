// SPDX-License-Identifier: Apache-2.0
#include "access/gate.h"

#include <sys/stat.h>

#include <cstring>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "access/token.h"
#include "base/log.h"
#include "base/per_thread.h"
#include "base/trim.h"
#include "net/ascii.h"

namespace nereid::access {
namespace {

constexpr std::chrono::seconds kLookEvery{1};
constexpr uint64_t kRetryNotReadyS = 5;
// The labels of the metric, in the order of the enumeration.
constexpr std::array<std::string_view, kDenialCount> kDenialNames = {
    "missing", "invalid", "expired", "scope", "model", "too-many-failures", "not-ready"};

int64_t NowS() { return std::time(nullptr); }
uint64_t MonotonicS() { return base::NowNs() / 1'000'000'000; }

// A number that is unique among all gates of the process, so that what a thread has cached is never
// attributed to another gate.
uint64_t NextGeneration() {
  static std::atomic<uint64_t> next{0};
  return next.fetch_add(1) + 1;
}

// The key or token that a request presents; empty if there is none of a form that is known here.
std::string_view CredentialOf(const Sender& sender) {
  constexpr std::string_view kBearer = "Bearer ";
  constexpr std::string_view kBlanks = " \t";
  const std::string_view authorization = sender.Authorization();
  if (authorization.size() > kBearer.size() &&
      net::EqualsIgnoringCase(authorization.substr(0, kBearer.size()), kBearer)) {
    return base::Trim(authorization.substr(kBearer.size()), kBlanks);
  }
  return base::Trim(sender.ApiKey(), kBlanks);
}

// A hash is as good as random, so its first bytes are a hash for a table.
struct HashOfDigest {
  size_t operator()(const Digest& digest) const {
    size_t value = 0;
    std::memcpy(&value, digest.data(), sizeof value);
    return value;
  }
};

void WarnIfWritable(const std::string& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0 || (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return;
  NEREID_LOG(kWarning,
             "--api-keys '{}': users other than its owner can write it and give themselves any "
             "rights",
             file);
}

}  // namespace

// The rules in the form in which they are asked. Immutable.
struct Gate::State {
  std::shared_ptr<const Rules> rules;
  std::unordered_map<Digest, GrantRef, HashOfDigest> keys;
  std::vector<KeySources::Keys> token_keys;  // as rules->tokens; null: not known yet
  uint64_t generation = 0;
};

base::Result<std::unique_ptr<Gate>> Gate::Create(const std::string& file) {
  NEREID_ASSIGN_OR_RETURN(std::unique_ptr<Gate> gate, CreateForTest(file));
  WarnIfWritable(file);
  gate->watcher_ = base::Thread("nereid-access", [gate = gate.get()] { gate->Watch(); });
  return gate;
}

base::Result<std::unique_ptr<Gate>> Gate::CreateForTest(const std::string& file) {
  std::unique_ptr<Gate> gate(new Gate(file));
  gate->stamp_ = StampOf(file);
  NEREID_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(file, kMaxKeyFile));
  NEREID_RETURN_IF_ERROR(gate->Load(text).WithPrefix(fmt::format("'{}': ", file)));
  return gate;
}

Gate::~Gate() {
  {
    base::MutexLock lock(mutex_);
    stops_ = true;
    changed_.NotifyAll();
  }
  sources_.Cancel();
  watcher_.Join();
}

base::Status Gate::Load(std::string_view text) {
  NEREID_ASSIGN_OR_RETURN(Rules rules, ParseRules(text, callers_));
  auto shared = std::make_shared<const Rules>(std::move(rules));
  sources_.Refresh(*shared, std::chrono::steady_clock::now(), /*asks_urls=*/false);
  Publish(std::move(shared));
  return base::OkStatus();
}

void Gate::Publish(std::shared_ptr<const Rules> rules) {
  auto state = std::make_shared<State>();
  state->rules = rules;
  for (const ApiKey& key : rules->keys) state->keys.emplace(key.sha256, key.grant);
  for (const TokenRule& rule : rules->tokens) state->token_keys.push_back(sources_.Find(rule.keys));
  state->generation = NextGeneration();
  const uint64_t generation = state->generation;
  protects_health_.store(rules->protects_health);
  rules_ = std::move(rules);
  std::shared_ptr<const State> next = std::move(state);
  base::MutexLock lock(mutex_);
  state_.swap(next);  // the old one is destroyed after the lock is released
  generation_.store(generation);
}

std::shared_ptr<const Gate::State> Gate::Share() const {
  base::MutexLock lock(mutex_);
  return state_;
}

// --- the thread that watches files and key sets ---

void Gate::Watch() {
  for (;;) {
    Look(/*asks_urls=*/true);
    base::MutexLock lock(mutex_);
    const base::TimePoint deadline = std::chrono::steady_clock::now() + kLookEvery;
    while (!stops_ && !wants_keys_) {
      if (!changed_.WaitUntil(mutex_, deadline)) break;
    }
    if (stops_) return;
  }
}

void Gate::Look(bool asks_urls) {
  const FileStamp stamp = StampOf(file_);
  if (stamp != stamp_) {
    stamp_ = stamp;
    const base::Result<std::string> text = ReadSmallFile(file_, kMaxKeyFile);
    const base::Status status =
        text.ok() ? Load(*text).WithPrefix(fmt::format("'{}': ", file_)) : text.status();
    is_file_good_.store(status.ok());
    (status.ok() ? reloads_ : failed_reloads_).fetch_add(1);
    if (status.ok()) {
      NEREID_LOG(kInfo, "--api-keys '{}' was read again", file_);
      WarnIfWritable(file_);
    } else {
      NEREID_LOG(kError, "the changed file of --api-keys cannot be used, the old rules stay: {}",
                 status.message());
    }
  }
  const base::TimePoint now = std::chrono::steady_clock::now();
  bool wants_keys = false;
  {
    base::MutexLock lock(mutex_);
    wants_keys = std::exchange(wants_keys_, false);
  }
  if (wants_keys) sources_.Expedite(now);
  if (sources_.Refresh(*rules_, now, asks_urls)) Publish(rules_);
}

// --- requests ---

bool Gate::IsCurrent(const Grant& grant, uint64_t generation) const {
  return generation == generation_.load() &&
         (grant.expires_at_s == kNever || NowS() < grant.expires_at_s);
}

Gate::Identified Gate::Identify(const Sender& sender) {
  GrantCache& cache = base::PerThread<GrantCache>::Get();
  const std::string_view credential = CredentialOf(sender);
  const net::PeerIdentity* const certificate = credential.empty() ? sender.certificate() : nullptr;
  const auto kind =
      certificate == nullptr ? GrantCache::Kind::kText : GrantCache::Kind::kCertificate;
  // A request without credentials is one with the empty text.
  const std::string_view name = certificate == nullptr ? credential : certificate->fingerprint;
  const GrantRef* const known = cache.Find(kind, name, generation_.load());
  if (known != nullptr && ((*known)->expires_at_s == kNever || NowS() < (*known)->expires_at_s))
      [[likely]] {
    return {.grant = *known, .reason = {}};
  }
  const std::shared_ptr<const State> state = Share();
  Identified found;
  if (!credential.empty()) {
    found = IdentifyText(sender, credential, *state);
  } else if (certificate != nullptr) {
    found = IdentifyCertificate(*certificate, *state);
  }
  if (found.grant == nullptr && found.reason.empty()) found.grant = state->rules->anonymous;
  if (found.grant != nullptr && found.grant->expires_at_s <= NowS()) {
    return {nullptr, Denial::kExpired, "the credentials have expired"};
  }
  if (found.grant != nullptr) cache.Keep(kind, name, state->generation, found.grant);
  return found;
}

Gate::Identified Gate::IdentifyText(const Sender& sender, std::string_view credential,
                                    const State& state) {
  const auto key = state.keys.find(HashOf(credential));
  if (key != state.keys.end()) return {.grant = key->second, .reason = {}};
  if (LooksLikeToken(credential)) return IdentifyToken(sender, credential, state);
  return {nullptr, Denial::kInvalid, "the API key is not valid"};
}

// Verifying a signature takes a thousand times as long as finding an API key, so an address from
// which too much has failed cannot have it done. Its API keys, and tokens that are known already,
// go on working: nobody can shut out a neighbour behind the same proxy.
Gate::Identified Gate::IdentifyToken(const Sender& sender, std::string_view token,
                                     const State& state) {
  if (failures_.Blocks(NetworkOf(sender.Address()), MonotonicS())) {
    return {nullptr, Denial::kTooMany, "too many attempts with wrong credentials"};
  }
  const std::optional<UnverifiedToken> read = ReadToken(token);
  if (!read) return {nullptr, Denial::kInvalid, "the token is malformed"};
  for (size_t i = 0; i < state.rules->tokens.size(); ++i) {
    const TokenRule& rule = state.rules->tokens[i];
    if (rule.issuer != read->issuer) continue;
    if (state.token_keys[i] == nullptr) {
      return {nullptr, Denial::kNotReady, "the keys of the token's issuer are not known yet"};
    }
    CheckedToken checked = CheckToken(*read, rule, *state.token_keys[i], NowS(), callers_);
    if (checked.verdict == TokenVerdict::kUnknownKey) {
      base::MutexLock lock(mutex_);
      wants_keys_ = true;
      changed_.NotifyAll();
    }
    const bool has_expired = checked.verdict == TokenVerdict::kExpired;
    return {std::move(checked.grant), has_expired ? Denial::kExpired : Denial::kInvalid,
            checked.reason};
  }
  return {nullptr, Denial::kInvalid, "the token's issuer is unknown"};
}

Gate::Identified Gate::IdentifyCertificate(const net::PeerIdentity& identity, const State& state) {
  for (const CertificateRule& rule : state.rules->certificates) {
    bool fits = !rule.subject.empty() && MatchesPattern(rule.subject, identity.subject);
    for (const std::string& name : identity.names) {
      fits = fits || (!rule.name.empty() && MatchesPattern(rule.name, name));
    }
    if (fits) return {.grant = rule.grant, .reason = {}};
  }
  return {};
}

Admission Gate::Deny(Denial denial, GrantRef grant, std::string text, uint64_t retry_after_s) {
  denials_[static_cast<size_t>(denial)].fetch_add(1);
  return {denial, std::move(grant), std::move(text), retry_after_s};
}

Admission Gate::DenyUnknown(const Sender& sender, const Identified& found) {
  const std::string address = sender.Address();
  NEREID_VLOG(1, "refused a request from {}: {}", address, found.reason);
  if (found.denial == Denial::kNotReady) {
    return Deny(found.denial, nullptr, std::string(found.reason), kRetryNotReadyS);
  }
  const std::string network = NetworkOf(address);
  const uint64_t now_s = MonotonicS();
  if (const auto left_s = failures_.Blocks(network, now_s)) {
    return Deny(Denial::kTooMany, nullptr, "too many attempts with wrong credentials", *left_s);
  }
  if (failures_.Note(network, now_s)) {
    NEREID_LOG(kWarning,
               "{} requests with wrong credentials came from {} within {} s; the rest of them are "
               "refused with status 429 (the last: {})",
               FailureLimits::kMaxFailures, network, FailureLimits::kWindowS, found.reason);
  }
  return Deny(found.denial, nullptr, std::string(found.reason));
}

Admission Gate::Admit(const Sender& sender, Scope scope, std::string_view model) {
  if (scope == Scope::kHealth && !protects_health_.load()) return {};
  Identified found = Identify(sender);
  if (found.grant == nullptr) [[unlikely]]
    return DenyUnknown(sender, found);
  const Grant& grant = *found.grant;
  const bool is_allowed =
      scope == Scope::kHealth ? !grant.is_anonymous : grant.scopes.Allows(scope);
  if (!is_allowed) [[unlikely]] {
    if (grant.is_anonymous) {
      return Deny(Denial::kMissing, std::move(found.grant),
                  "this request needs an API key or a token, in a header 'Authorization: Bearer "
                  "...' or 'X-API-Key: ...'");
    }
    std::string text = fmt::format("'{}' does not have the scope '{}', which this request needs",
                                   grant.caller->id, ScopeName(scope));
    return Deny(Denial::kScope, std::move(found.grant), std::move(text));
  }
  if (!model.empty() && scope != Scope::kHealth && !AllowsModel(grant, model)) [[unlikely]] {
    std::string text = ModelText(grant, model);
    return {Denial::kModel, std::move(found.grant), std::move(text)};
  }
  return {.denial = {}, .grant = std::move(found.grant), .text = {}};
}

Gate::Outlook Gate::Foresee(const Sender& sender, Scope scope, std::string_view model) {
  if (CredentialOf(sender).empty() && !Share()->rules->certificates.empty()) {
    return Outlook::kUnclear;
  }
  const Identified found = Identify(sender);
  const bool is_allowed = found.grant != nullptr && found.grant->scopes.Allows(scope) &&
                          (model.empty() || found.grant->models.Allows(model));
  return is_allowed ? Outlook::kAdmitted : Outlook::kDenied;
}

bool Gate::SeesAll(const Sender& sender, Scope scope) {
  const Identified found = Identify(sender);
  return found.grant != nullptr && found.grant->scopes.Allows(scope) &&
         found.grant->models.allows_all();
}

bool Gate::AllowsModel(const Grant& grant, std::string_view model) {
  if (grant.models.Allows(model)) [[likely]]
    return true;
  denials_[static_cast<size_t>(Denial::kModel)].fetch_add(1);
  return false;
}

std::string Gate::ModelText(const Grant& grant, std::string_view model) {
  return fmt::format("'{}' may not use the model '{}'", grant.caller->id, model);
}

void Gate::AddMetrics(observe::MetricsPage& page) const {
  using Kind = observe::MetricsPage::Kind;
  const auto number = [](const std::atomic<uint64_t>& count) {
    return static_cast<double>(count.load());
  };
  page.StartFamily("nereid_access_denied_total",
                   "Number of requests that were refused because of who sent them, by reason",
                   Kind::kCounter);
  for (size_t i = 0; i < kDenialCount; ++i) {
    page.Add(observe::RenderLabels({{"reason", std::string(kDenialNames[i])}}),
             number(denials_[i]));
  }
  page.StartFamily("nereid_access_reloads_total",
                   "Number of times the changed file of API keys was read, by result",
                   Kind::kCounter);
  page.Add(observe::RenderLabels({{"result", "success"}}), number(reloads_));
  page.Add(observe::RenderLabels({{"result", "failure"}}), number(failed_reloads_));
  page.StartFamily("nereid_access_file_good",
                   "Whether the file of API keys as it is now is the one in use", Kind::kGauge);
  page.Add("", is_file_good_.load() ? 1 : 0);
}

}  // namespace nereid::access
