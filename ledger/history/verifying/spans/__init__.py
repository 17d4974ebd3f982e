"""The commits of a log, span by span: what they say against what they may say.

Others may import:

- `span`: all that is looked at in one span of commits, on its own.
- `workers`: spans of a long log verified by several processes.
- `chain`: the commits of a stream along their hashes, and which of two is to blame.
- `repeats`: ids, snapshots' keys and live files that a log names twice.

Inside: `facts` is what events say, against what they may say.
"""
