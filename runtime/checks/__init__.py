"""Judging: pure functions of the evidence, one file a rule.

A check file has ``RULE`` (its name, shared with ``trainlint check`` where the bug is the same), its
thresholds with their reasons, and ``check(evidence)``, which yields findings or ``NotChecked``.
Nothing yielded means: looked, found nothing.
"""
