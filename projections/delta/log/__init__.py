"""The files of one `_delta_log`: what they are called, what stands in them, and writing them.

Others may import:
    `names`       what files are called
    `actions`     the lines of a commit file, and what they add up to
    `commits`     who did what and why, as a commit says it
    `checkpoint`  classic checkpoints
    `delta_log`   a log that a run goes on with
    `versions`    which version a snapshot is

Source: the Delta transaction protocol.
"""
