# SPDX-License-Identifier: Apache-2.0
"""`python -m nereid` is the command `nereid`."""

from nereid._program import main

main()
