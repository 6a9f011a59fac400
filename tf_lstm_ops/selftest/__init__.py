"""``tf-lstm-ops selftest``: compares the kernels of a device with those of the CPU.

A check is one comparison. `checks` lists them. A child process runs them (`worker`), because a
failing GPU library may end the process or never return. `runner` starts the child and limits the
time of each check. The command is in cli/selftest.py.
"""
