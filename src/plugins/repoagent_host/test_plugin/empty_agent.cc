// SPDX-License-Identifier: Apache-2.0
// A library without the one function that an agent must have.
extern "C" int SomethingElse() { return 1; }
