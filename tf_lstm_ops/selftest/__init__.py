"""``tf-lstm-ops selftest``: compares the kernels of a GPU with the CPU's, those with an oracle.

A check is one comparison. `checks` lists them. The expected results of the CPU are those of
`oracle`. A child process runs the checks (`worker`), because a failing GPU library may end the
process or never return. `runner` starts the child and limits the time of each check. The
command is in cli/selftest.py.
"""
