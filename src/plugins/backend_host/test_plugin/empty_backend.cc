// SPDX-License-Identifier: Apache-2.0
// A library without the functions of a backend.
extern "C" int SomethingElse() { return 1; }
