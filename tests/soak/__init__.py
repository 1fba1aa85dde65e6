"""Loops that try to break things: kills, full disks, damaged files, strange frames.

`make test` runs each of them a few times, `make soak` for as long as you like.
"""
