# The agent for s390x, whose byte order is big-endian: for tests of ours, nobody profiles there. See docs/cross-compiling.md.
set(triplet s390x-linux-gnu)
set(processor s390x)
set(emulated s390x)
include(${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake)
