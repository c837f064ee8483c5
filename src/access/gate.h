// SPDX-License-Identifier: Apache-2.0
// Decides who may do what: finds out who sends a request, by an API key, a token or a client's
// certificate, and whether that sender has the scope and the model that the request needs. The
// rules come from the file of --api-keys, which is read again when it changes.
//
// Frontends call Admit once for every request, before anything else looks at it. A sender whose
// credentials this thread has seen before costs a comparison of them; no lock, no allocation.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "access/callers.h"
#include "access/failure_limits.h"
#include "access/grant.h"
#include "access/grant_cache.h"
#include "access/key_sources.h"
#include "access/rules.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "net/peer_identity.h"
#include "observe/metrics_page.h"

namespace nereid::access {

// A request as far as it tells who sent it. Frontends implement it; nothing is asked that is not
// needed.
class Sender {
 public:
  virtual std::string_view Authorization() const = 0;        // the field's value; empty if absent
  virtual std::string_view ApiKey() const = 0;               // that of X-API-Key
  virtual const net::PeerIdentity* certificate() const = 0;  // null if there is none
  virtual std::string Address() const = 0;

 protected:
  ~Sender() = default;
};

// Why a request is refused.
enum class Denial : uint8_t {
  kMissing,   // it needs credentials and has none
  kInvalid,   // its credentials are wrong
  kExpired,   // they were right once
  kScope,     // its sender lacks a scope
  kModel,     // its sender may not use the model
  kTooMany,   // too many wrong credentials came from the same address
  kNotReady,  // the keys of the token's issuer are not known yet
};
inline constexpr size_t kDenialCount = 7;

// What Admit decided.
struct Admission {
  std::optional<Denial> denial;  // nothing: the request may proceed
  GrantRef grant;                // who it is, if that is known; null if nobody needed to ask
  std::string text;              // for the client, if denied
  uint64_t retry_after_s = 0;    // with kTooMany and kNotReady
};

// Thread-safe.
class Gate {
 public:
  // Reads the file and starts the thread that watches it. The error says what is wrong in the file.
  static base::Result<std::unique_ptr<Gate>> Create(const std::string& file);
  // Like Create, but starts no thread; LookForTest does what the thread does once a second.
  static base::Result<std::unique_ptr<Gate>> CreateForTest(const std::string& file);
  void LookForTest() { Look(/*asks_urls=*/true); }
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // `model` is empty for requests that name no model, or not yet (AdmitModel).
  Admission Admit(const Sender& sender, Scope scope, std::string_view model);
  // What Admit will say, as far as the head of the request tells; counts nothing.
  enum class Outlook : uint8_t { kAdmitted, kDenied, kUnclear };
  Outlook Foresee(const Sender& sender, Scope scope, std::string_view model);
  // Returns whether the sender may do this with every model; counts nothing.
  bool SeesAll(const Sender& sender, Scope scope);
  // Returns whether a sender who was admitted may use the model; `text` is then for the client.
  bool AllowsModel(const Grant& grant, std::string_view model);
  static std::string ModelText(const Grant& grant, std::string_view model);

  // Whether a grant that was given when generation() was `generation` is still good. A stream asks
  // this for each of its requests, and Admit if it is not.
  bool IsCurrent(const Grant& grant, uint64_t generation) const;
  uint64_t generation() const { return generation_.load(); }

  void AddMetrics(observe::MetricsPage& page) const;

 private:
  struct State;
  // The client that sent a request, or why it is not known.
  struct Identified {
    GrantRef grant;
    Denial denial = Denial::kMissing;
    std::string_view reason;
  };

  explicit Gate(std::string file) : file_(std::move(file)) {}
  Admission Deny(Denial denial, GrantRef grant, std::string text, uint64_t retry_after_s = 0);
  Admission DenyUnknown(const Sender& sender, const Identified& found);
  Identified Identify(const Sender& sender);
  Identified IdentifyText(const Sender& sender, std::string_view credential, const State& state);
  Identified IdentifyToken(const Sender& sender, std::string_view token, const State& state);
  static Identified IdentifyCertificate(const net::PeerIdentity& identity, const State& state);
  std::shared_ptr<const State> Share() const;

  base::Status Load(std::string_view text);
  void Publish(std::shared_ptr<const Rules> rules);
  void Look(bool asks_urls);
  void Watch();

  const std::string file_;
  CallerTable callers_;
  FailureLimits failures_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<bool> protects_health_{false};
  std::array<std::atomic<uint64_t>, kDenialCount> denials_{};
  std::atomic<uint64_t> reloads_{0};
  std::atomic<uint64_t> failed_reloads_{0};
  std::atomic<bool> is_file_good_{true};

  // -- Confined to Create, and then to the thread that watches. --
  FileStamp stamp_{};
  std::shared_ptr<const Rules> rules_;
  KeySources sources_;

  mutable base::Mutex mutex_;
  std::shared_ptr<const State> state_ NEREID_GUARDED_BY(mutex_);
  bool wants_keys_ NEREID_GUARDED_BY(mutex_) = false;
  bool stops_ NEREID_GUARDED_BY(mutex_) = false;
  base::CondVar changed_;
  base::Thread watcher_;
};

}  // namespace nereid::access
