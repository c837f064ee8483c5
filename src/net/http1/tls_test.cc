// SPDX-License-Identifier: Apache-2.0
// TLS below the protocols; end-to-end tests cover it with real clients.
#include "net/tls_channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <numeric>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "http1/http_server.h"

namespace nereid::http1 {
namespace {

// A folder with a key and a self-signed certificate.
class Files {
 public:
  Files() {
    std::string name = testing::TempDir() + "/tls_XXXXXX";
    folder_ = ::mkdtemp(name.data());
    Write("one");
  }
  ~Files() { std::filesystem::remove_all(folder_); }

  net::TlsOptions options() const {
    net::TlsOptions options;
    options.certificate_file = folder_ + "/cert";
    options.key_file = folder_ + "/key";
    return options;
  }
  void Write(const char* name) const {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                  EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> cert(X509_new(), X509_free);
    ASN1_INTEGER_set(X509_get_serialNumber(cert.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert.get()), 0);
    X509_gmtime_adj(X509_getm_notAfter(cert.get()), 3600);
    X509_set_pubkey(cert.get(), key.get());
    X509_NAME* const subject = X509_get_subject_name(cert.get());
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
    X509_set_issuer_name(cert.get(), subject);
    X509_sign(cert.get(), key.get(), EVP_sha256());
    FILE* const cert_file = ::fopen((folder_ + "/cert").c_str(), "w");
    PEM_write_X509(cert_file, cert.get());
    ::fclose(cert_file);
    FILE* const key_file = ::fopen((folder_ + "/key").c_str(), "w");
    PEM_write_PrivateKey(key_file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    ::fclose(key_file);
  }

 private:
  std::string folder_;
};

// The client's side of a connection, with blocking calls.
class TlsClient {
 public:
  explicit TlsClient(int socket)
      : context_(SSL_CTX_new(TLS_client_method())), ssl_(SSL_new(context_)) {
    SSL_set_fd(ssl_, socket);
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  bool Connect() { return SSL_connect(ssl_) == 1; }
  std::string Read(size_t size) {
    std::string text(size, '\0');
    size_t got = 0;
    while (got < size) {
      size_t n = 0;
      if (SSL_read_ex(ssl_, text.data() + got, size - got, &n) != 1) break;
      got += n;
    }
    text.resize(got);
    return text;
  }
  bool Write(std::string_view text) {
    size_t n = 0;
    return SSL_write_ex(ssl_, text.data(), text.size(), &n) == 1 && n == text.size();
  }

 private:
  SSL_CTX* context_;
  SSL* ssl_;
};

// A channel whose handshake is done, over a pair of sockets with small buffers.
class Channel : public testing::Test {
 protected:
  void SetUp() override {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    server_.reset(new base::UniqueFd(pair[0]));
    client_socket_.reset(new base::UniqueFd(pair[1]));
    const int small = 8192;
    ::setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    auto context = net::TlsContext::Create(files_.options(), "http/1.1");
    ASSERT_TRUE(context.ok()) << context.status().message();
    context_ = std::move(context).value();
    channel_ = context_->NewChannel(pair[0]);
    client_ = std::make_unique<TlsClient>(pair[1]);
    auto connected = std::async(std::launch::async, [this] { return client_->Connect(); });
    net::TlsChannel::Step step;
    while ((step = channel_->Handshake()) != net::TlsChannel::Step::kDone) {
      ASSERT_NE(step, net::TlsChannel::Step::kFailed);
      std::this_thread::yield();
    }
    ASSERT_TRUE(connected.get());
  }

  Files files_;
  std::unique_ptr<base::UniqueFd> server_;
  std::unique_ptr<base::UniqueFd> client_socket_;
  std::unique_ptr<net::TlsContext> context_;
  std::unique_ptr<net::TlsChannel> channel_;
  std::unique_ptr<TlsClient> client_;
};

iovec Part(std::string_view text) { return {const_cast<char*>(text.data()), text.size()}; }

TEST_F(Channel, WritesPartsInOrderHoweverLittleTheSocketTakes) {
  std::string text(1 << 20, '\0');
  std::iota(text.begin(), text.end(), '\0');
  auto received = std::async(std::launch::async, [&] { return client_->Read(text.size()); });
  size_t sent = 0;
  size_t cut = 1;
  while (sent < text.size()) {
    // Split differently at every call, and sometimes copied elsewhere, as a retry may be.
    const std::string_view left = std::string_view(text).substr(sent);
    cut = cut * 7 % 30011;
    const std::string first(left.substr(0, cut % 700));
    const std::string_view second = left.substr(first.size()).substr(0, cut);
    const std::string_view third = left.substr(first.size() + second.size());
    const iovec parts[] = {Part(first), Part({}), Part(second), Part(third)};
    const ssize_t n = channel_->Write(parts, 4);
    ASSERT_GE(n, 0);
    sent += static_cast<size_t>(n);
    if (n == 0) std::this_thread::yield();
  }
  EXPECT_EQ(received.get(), text);
}

TEST_F(Channel, ReadsBytesAndDistinguishesNothingFromTheEnd) {
  std::byte buffer[100'000];
  EXPECT_EQ(channel_->Read(buffer, sizeof buffer), 0);
  EXPECT_FALSE(channel_->HasBuffered());
  auto written =
      std::async(std::launch::async, [&] { return client_->Write(std::string(40'000, 'x')); });
  size_t got = 0;
  while (got < 40'000) {
    const ssize_t n = channel_->Read(buffer, 7'000);
    ASSERT_GE(n, 0);
    got += static_cast<size_t>(n);
    if (n == 7'000) {
      EXPECT_TRUE(channel_->HasBuffered());
    }
  }
  EXPECT_TRUE(written.get());
  EXPECT_EQ(channel_->Read(buffer, sizeof buffer), 0);
  ::shutdown(client_socket_->get(), SHUT_WR);
  EXPECT_EQ(channel_->Read(buffer, sizeof buffer), net::TlsChannel::kEnd);
  // The client may still read.
  const iovec part = Part("bye");
  EXPECT_EQ(channel_->Write(&part, 1), 3);
  EXPECT_EQ(client_->Read(3), "bye");
  channel_->Finish();
  EXPECT_EQ(client_->Read(1), "");
}

TEST_F(Channel, IsBrokenByAnInvalidRecord) {
  ASSERT_EQ(::send(client_socket_->get(), "nonsense", 8, 0), 8);
  std::byte buffer[100];
  EXPECT_EQ(channel_->Read(buffer, sizeof buffer), net::TlsChannel::kBroken);
  const iovec part = Part("x");
  EXPECT_EQ(channel_->Write(&part, 1), net::TlsChannel::kBroken);
}

TEST_F(Channel, DoesNotTakeOtherBytesForTheRestOfARecord) {
  const std::string text(1 << 20, 'x');
  iovec part = Part(text);
  ASSERT_LT(channel_->Write(&part, 1), static_cast<ssize_t>(text.size()));
  part = Part("short");
  EXPECT_EQ(channel_->Write(&part, 1), net::TlsChannel::kBroken);
}

class Hello : public HttpHandler {
 public:
  void Handle(HttpExchangePtr exchange) override {
    HttpExchange::Respond(std::move(exchange), {.status = 200, .text = "hello"});
  }
};

base::UniqueFd ConnectTo(uint16_t port) {
  base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return socket;
}

TEST(TlsServer, DropsClientsThatDoNotFinishTheHandshake) {
  Files files;
  net::ReactorPool pool(1);
  Hello handler;
  HttpServerOptions options;
  options.listener.address = "127.0.0.1";
  options.tls = files.options();
  options.tls.handshake_timeout = std::chrono::milliseconds(1);
  auto server = HttpServer::Start(options, pool, handler);
  ASSERT_TRUE(server.ok()) << server.status().message();
  const base::UniqueFd idle = ConnectTo((*server)->port());
  char byte;
  EXPECT_EQ(::recv(idle.get(), &byte, 1, 0), 0);  // the server closes
  const base::UniqueFd socket = ConnectTo((*server)->port());
  TlsClient client(socket.get());
  ASSERT_TRUE(client.Connect());
  ASSERT_TRUE(client.Write("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_EQ(client.Read(15), "HTTP/1.1 200 OK");
}

// Replies from its own threads, while the reactor reads what the client sends next.
class Elsewhere : public HttpHandler {
 public:
  explicit Elsewhere(std::string text) : text_(std::move(text)) {}
  ~Elsewhere() override {
    for (std::thread& thread : threads_) thread.join();
  }
  void Handle(HttpExchangePtr exchange) override {
    base::MutexLock lock(mutex_);
    threads_.emplace_back([this, exchange = std::move(exchange)]() mutable {
      HttpExchange::Respond(std::move(exchange), {.status = 200, .text = text_});
    });
  }

 private:
  const std::string text_;
  base::Mutex mutex_;
  std::vector<std::thread> threads_ NEREID_GUARDED_BY(mutex_);
};

TEST(TlsServer, ServesPipelinedRequestsFromOtherThreads) {
  constexpr int kRequests = 40;
  const std::string text(100'000, 'x');
  Files files;
  net::ReactorPool pool(2);
  Elsewhere handler(text);
  HttpServerOptions options;
  options.listener.address = "127.0.0.1";
  options.tls = files.options();
  auto server = HttpServer::Start(options, pool, handler);
  ASSERT_TRUE(server.ok());
  std::vector<std::future<bool>> clients;
  for (int c = 0; c < 4; ++c) {
    clients.push_back(std::async(std::launch::async, [&] {
      const base::UniqueFd socket = ConnectTo((*server)->port());
      TlsClient client(socket.get());
      if (!client.Connect()) return false;
      for (int i = 0; i < kRequests; ++i) {
        if (!client.Write("GET / HTTP/1.1\r\nHost: x\r\n\r\n")) return false;
      }
      const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
      for (int i = 0; i < kRequests; ++i) {
        if (client.Read(head.size()) != head || client.Read(text.size()) != text) return false;
      }
      return true;
    }));
  }
  for (std::future<bool>& client : clients) EXPECT_TRUE(client.get());
  server->reset();  // destroyed before the handler
}

TEST(TlsServer, EndsWithHandshakesUnderWay) {
  Files files;
  net::ReactorPool pool(2);
  Hello handler;
  HttpServerOptions options;
  options.listener.address = "127.0.0.1";
  options.tls = files.options();
  auto server = HttpServer::Start(options, pool, handler);
  ASSERT_TRUE(server.ok());
  const base::UniqueFd idle = ConnectTo((*server)->port());
  while ((*server)->connections() == 0) std::this_thread::yield();
  EXPECT_TRUE((*server)->Drain(std::chrono::steady_clock::now() + std::chrono::seconds(30)));
}

}  // namespace
}  // namespace nereid::http1
