// SPDX-License-Identifier: Apache-2.0
// A library that is no backend.
extern "C" int SomethingElse() { return 1; }
