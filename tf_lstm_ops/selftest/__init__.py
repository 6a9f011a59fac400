"""``tf-lstm-ops selftest``: compares the kernels of a GPU with the CPU's.

The kernels of the CPU are compared with `oracle`. A check is one comparison. `checks` lists them. A child process runs them (`worker`), because a
failing GPU library may end the process or never return. `runner` starts the child and limits the
time of each check. The command is in cli/selftest.py.
"""
