# The agent for 64-bit Arm: see docs/cross-compiling.md.
set(triplet aarch64-linux-gnu)
set(processor aarch64)
set(emulated aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake)
