# libunwind behind our own unwind rules (src/unwind/libunwind_step.h): the part of it that knows this target's
# architecture. Sets FLAMEWIRE_LIBUNWIND to OFF where there is none of ours, else declares
#
#   flamewire_libunwind          for the desk: the shared library (Debian's archive cannot go into a PIE)
#   flamewire_libunwind_archive  for the static agent
#
# Only ever -lunwind-ARCH, never -lunwind beside it: both define _Unwind_Resume, which libgcc has.
include_guard(GLOBAL)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(libunwind_arch x86_64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(libunwind_arch aarch64)
else()
  set(libunwind_arch "")
endif()
if(libunwind_arch)
  option(FLAMEWIRE_LIBUNWIND "Put libunwind behind our own unwind rules" ON)
else()
  set(FLAMEWIRE_LIBUNWIND OFF)
endif()

if(FLAMEWIRE_LIBUNWIND)
  find_path(FLAMEWIRE_LIBUNWIND_INCLUDE libunwind-${libunwind_arch}.h)
  find_library(FLAMEWIRE_LIBUNWIND_LIBRARY NAMES libunwind-${libunwind_arch}.so libunwind-${libunwind_arch}.a)
  if(FLAMEWIRE_AGENT)
    find_library(FLAMEWIRE_LIBUNWIND_ARCHIVE NAMES libunwind-${libunwind_arch}.a)
  else()
    set(FLAMEWIRE_LIBUNWIND_ARCHIVE "not needed")
  endif()
  if(NOT FLAMEWIRE_LIBUNWIND_INCLUDE OR NOT FLAMEWIRE_LIBUNWIND_LIBRARY OR NOT FLAMEWIRE_LIBUNWIND_ARCHIVE)
    message(FATAL_ERROR "libunwind-${libunwind_arch} is missing: install libunwind-dev (or configure with -DFLAMEWIRE_LIBUNWIND=OFF)")
  endif()
  foreach(flavour libunwind:${FLAMEWIRE_LIBUNWIND_LIBRARY} libunwind_archive:${FLAMEWIRE_LIBUNWIND_ARCHIVE})
    string(REGEX MATCH "^([^:]+):(.*)$" matched ${flavour})
    add_library(flamewire_${CMAKE_MATCH_1} INTERFACE)
    target_include_directories(flamewire_${CMAKE_MATCH_1} SYSTEM INTERFACE ${FLAMEWIRE_LIBUNWIND_INCLUDE})
    target_compile_definitions(flamewire_${CMAKE_MATCH_1} INTERFACE FLAMEWIRE_LIBUNWIND=1)
    if(NOT CMAKE_MATCH_2 STREQUAL "not needed")
      target_link_libraries(flamewire_${CMAKE_MATCH_1} INTERFACE ${CMAKE_MATCH_2})
    endif()
  endforeach()
endif()
