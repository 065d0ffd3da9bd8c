"""Loaded by `-p` where notebooks run: saves each process of pytest a second.

jsonschema imports `rfc3987_syntax` to check addresses, and its grammar is built at import; no
notebook has a field of that format. What is None in `sys.modules` counts as not installed.
"""

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
