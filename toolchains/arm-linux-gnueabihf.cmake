# The agent for 32-bit Arm: ARMv7-A with hardware floating point, in Thumb. See docs/cross-compiling.md.
set(triplet arm-linux-gnueabihf)
set(processor armv7l)
set(emulated arm)
set(machine_flags "-march=armv7-a+fp -mfloat-abi=hard -mthumb")
include(${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake)
