# The agent for x86-64 Linux with Debian's compiler of that name, also from another kind of host:
#   cmake -S . -B build-agent -G Ninja -DCMAKE_TOOLCHAIN_FILE=toolchains/x86_64-linux-gnu.cmake -DFLAMEWIRE_SERVER=OFF -DFLAMEWIRE_TESTS=OFF
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER x86_64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE x86_64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
