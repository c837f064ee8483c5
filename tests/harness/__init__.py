# SPDX-License-Identifier: Apache-2.0
"""What the tests of the running server share: starting it, models for it, raw sockets to it."""
