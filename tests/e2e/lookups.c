// SPDX-License-Identifier: Apache-2.0
// Preloaded into the server by test_telemetry.py: records the host names that the process looks up
// in the file that NEREID_LOOKUPS_FILE names, and fails each look-up, so that nothing is sent while
// the test checks that nothing is.
#define _GNU_SOURCE
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int getaddrinfo(const char* node, const char* service, const struct addrinfo* hints,
                struct addrinfo** result) {
  (void)service, (void)hints, (void)result;
  const char* path = getenv("NEREID_LOOKUPS_FILE");
  const int fd = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) {
    const char* name = node == NULL ? "?" : node;
    if (write(fd, name, strlen(name)) < 0 || write(fd, "\n", 1) < 0) abort();
    close(fd);
  }
  return EAI_NONAME;
}
