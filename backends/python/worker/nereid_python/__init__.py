# SPDX-License-Identifier: Apache-2.0
"""The process that runs a Python model, and what its models see of it. Any Python from 3.8 on."""
