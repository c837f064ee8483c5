// SPDX-License-Identifier: Apache-2.0
// A library without the functions of a cache.
extern "C" int TestCacheNothing() { return 0; }
