# SPDX-License-Identifier: Apache-2.0
"""The parts of the package; what is public is in `nereid` itself."""
