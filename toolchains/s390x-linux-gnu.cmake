# The agent for s390x, which is big-endian. Only for tests. See docs/cross-compiling.md.
set(triplet s390x-linux-gnu)
set(processor s390x)
set(emulated s390x)
include(${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake)
