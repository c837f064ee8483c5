# SPDX-License-Identifier: Apache-2.0
"""Python functions as models: `nereid.model`, `nereid.serve`. See docs/python_functions.md."""
