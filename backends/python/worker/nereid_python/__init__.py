# SPDX-License-Identifier: Apache-2.0
"""The process that runs a Python model, and its API for models. Any Python from 3.8 on."""
