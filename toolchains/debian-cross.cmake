# Shared by the toolchain files of this folder. Each sets `triplet`, `processor`, `emulated` (qemu's name of the
# processor) and, if the compiler needs more options, `machine_flags`, and includes this file. The compiler is Debian's
# cross compiler, and the sysroot is that of toolchains/sysroot.sh. CMake rereads this file for each try_compile, so it
# must not depend on the order.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${processor})
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})

set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_CXX_COMPILER ${triplet}-g++)

if(NOT CMAKE_SYSROOT)
  if(FLAMEWIRE_SYSROOT)
    set(CMAKE_SYSROOT ${FLAMEWIRE_SYSROOT})
  else()
    # The same default as in toolchains/sysroot.sh.
    if(DEFINED ENV{FLAMEWIRE_SYSROOTS})
      set(sysroots $ENV{FLAMEWIRE_SYSROOTS})
    elseif(DEFINED ENV{XDG_CACHE_HOME})
      set(sysroots $ENV{XDG_CACHE_HOME}/flamewire/sysroots)
    else()
      set(sysroots $ENV{HOME}/.cache/flamewire/sysroots)
    endif()
    set(CMAKE_SYSROOT ${sysroots}/${triplet})
  endif()
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES FLAMEWIRE_SYSROOT)
if(NOT EXISTS ${CMAKE_SYSROOT}/usr/include)
  message(FATAL_ERROR "There is no sysroot in ${CMAKE_SYSROOT}: run  toolchains/sysroot.sh ${triplet}  "
    "(or  ./dev agents , which does everything), or set its folder with -DFLAMEWIRE_SYSROOT=DIR.")
endif()

set(FLAMEWIRE_SYSROOT_IN_USE ${CMAKE_SYSROOT} CACHE INTERNAL "for running the programs under an emulator")

# Debian's cross compilers search the folder of their own libc package before the sysroot.
set(libraries ${CMAKE_SYSROOT}/usr/lib/${triplet})
set(CMAKE_C_FLAGS_INIT "-B${libraries} ${machine_flags}")
set(CMAKE_CXX_FLAGS_INIT "-B${libraries} ${machine_flags}")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-L${libraries}")

set(CMAKE_FIND_ROOT_PATH ${CMAKE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${libraries}/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})

# Tests for another processor run in qemu's user mode, with the shared libraries of the sysroot.
find_program(FLAMEWIRE_EMULATOR qemu-${emulated}-static)
if(FLAMEWIRE_EMULATOR)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${FLAMEWIRE_EMULATOR} -L ${CMAKE_SYSROOT})
endif()
