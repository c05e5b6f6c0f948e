"""What a command ends with, where it is not 0; `record` has the program's own besides."""

CHECK_FAILED = 1
WRONG_INPUT = 2
# Of a worker of a sweep: another Fencepost, or a record that is missing here.
CANNOT_WORK_HERE = 4
# A fault of the simulator, in a run or in a whole command: what failures of ours are in `record`.
FAULT = 125
INTERRUPTED = 130
