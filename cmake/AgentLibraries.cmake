# The agent's libraries, and what to install if one is missing. This must also work with toolchain files and sysroots of
# others (docs/cross-compiling.md), so it uses neither pkg-config nor the CMake files of libraries.
include_guard(GLOBAL)

# Four header-only libraries. They are equal on all architectures, so the headers of this machine work for any target.
# The sysroot is searched first. Headers of this machine are used through a folder of links, because the rest of its
# /usr/include does not belong to the target.
add_library(flamewire_headers INTERFACE)
function(flamewire_headers variable header package)
  find_path(${variable} ${header})
  if(${variable})
    target_include_directories(flamewire_headers SYSTEM INTERFACE ${${variable}})
    return()
  endif()
  find_path(${variable}_ON_DESK ${header} NO_CMAKE_FIND_ROOT_PATH)
  if(NOT ${variable}_ON_DESK AND CMAKE_CROSSCOMPILING)
    find_path(${variable}_ON_DESK ${header} PATHS /usr/local/include /usr/include NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
  endif()
  if(NOT ${variable}_ON_DESK)
    message(FATAL_ERROR "${header} is missing: install ${package} (only headers are needed), or set the folder with -D${variable}=DIR")
  endif()
  set(links ${CMAKE_BINARY_DIR}/headers-of-the-desk)
  file(MAKE_DIRECTORY ${links})
  foreach(name IN LISTS ARGN)
    file(CREATE_LINK ${${variable}_ON_DESK}/${name} ${links}/${name} SYMBOLIC)
  endforeach()
  target_include_directories(flamewire_headers SYSTEM INTERFACE ${links})
endfunction()
flamewire_headers(FLAMEWIRE_ASIO_INCLUDE asio.hpp libasio-dev asio asio.hpp)
flamewire_headers(FLAMEWIRE_FMT_INCLUDE fmt/format.h libfmt-dev fmt)
flamewire_headers(FLAMEWIRE_PROTOZERO_INCLUDE protozero/pbf_reader.hpp libprotozero-dev protozero)
flamewire_headers(FLAMEWIRE_RAPIDJSON_INCLUDE rapidjson/document.h rapidjson-dev rapidjson)
# src/base/fmt_format.cc has the definitions of one version. Other versions are used header-only, which compiles more
# slowly.
if(FLAMEWIRE_FMT_INCLUDE)
  set(fmt_folder ${FLAMEWIRE_FMT_INCLUDE})
else()
  set(fmt_folder ${FLAMEWIRE_FMT_INCLUDE_ON_DESK})
endif()
file(STRINGS ${fmt_folder}/fmt/core.h fmt_version REGEX "^#define FMT_VERSION 9[0-9][0-9][0-9][0-9]$")
if(fmt_version)
  set(FLAMEWIRE_FMT_FORMAT ON)
else()
  set(FLAMEWIRE_FMT_FORMAT OFF)
endif()
if(FLAMEWIRE_RAPIDJSON_INCLUDE)
  set(RAPIDJSON_DIR ${FLAMEWIRE_RAPIDJSON_INCLUDE})
else()
  set(RAPIDJSON_DIR ${FLAMEWIRE_RAPIDJSON_INCLUDE_ON_DESK})
endif()

# flamewire_without_unwind_tables(ARCHIVE VARIABLE): sets VARIABLE to a copy of a C library without .eh_frame. No
# exception passes through it, and the unwind tables of such code are a tenth of a static file.
function(flamewire_without_unwind_tables archive variable)
  get_filename_component(name ${archive} NAME)
  set(copy ${CMAKE_BINARY_DIR}/without-unwind-tables/${name})
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/without-unwind-tables)
  execute_process(COMMAND ${CMAKE_OBJCOPY} --remove-section=.eh_frame ${archive} ${copy} COMMAND_ERROR_IS_FATAL ANY)
  set(${variable} ${copy} PARENT_SCOPE)
endfunction()

if(FLAMEWIRE_AGENT)
  # The agent is one static file, so it needs the target's libraries as archives.
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LINK_OPTIONS -static)
  check_cxx_source_compiles("#include <string>\nint main(int argc, char** argv) { return std::string(argv[0]).size() > 1u + argc; }"
    FLAMEWIRE_STATIC_PROGRAMS)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  if(NOT FLAMEWIRE_STATIC_PROGRAMS)
    message(FATAL_ERROR "A static C++ program cannot be linked, so libc.a or libstdc++.a is missing: install libc6-dev and libstdc++-12-dev "
      "(Debian's cross compilers bring libstdc++.a, toolchains/sysroot.sh libc.a; in a Yocto SDK: glibc-staticdev and libstdc++-staticdev), "
      "or configure with -DFLAMEWIRE_AGENT=OFF. The linker's output is in CMakeFiles/CMakeError.log.")
  endif()
  find_library(FLAMEWIRE_ZSTD_ARCHIVE NAMES libzstd.a)
  find_path(FLAMEWIRE_ZSTD_INCLUDE zstd.h)
  if(NOT FLAMEWIRE_ZSTD_ARCHIVE OR NOT FLAMEWIRE_ZSTD_INCLUDE)
    message(FATAL_ERROR "libzstd.a or zstd.h is missing, which the static agent needs: install libzstd-dev (in a Yocto SDK: zstd-dev and "
      "zstd-staticdev), name them with -DFLAMEWIRE_ZSTD_ARCHIVE=FILE -DFLAMEWIRE_ZSTD_INCLUDE=DIR, or configure with -DFLAMEWIRE_AGENT=OFF.")
  endif()
  flamewire_without_unwind_tables(${FLAMEWIRE_ZSTD_ARCHIVE} zstd_archive)
  # The compiler's glibc. The linker finds this copy first.
  separate_arguments(flags NATIVE_COMMAND "${CMAKE_CXX_FLAGS}")
  if(CMAKE_SYSROOT)
    list(APPEND flags --sysroot=${CMAKE_SYSROOT})
  endif()
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} ${flags} -print-file-name=libc.a OUTPUT_VARIABLE libc OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(EXISTS ${libc})
    flamewire_without_unwind_tables(${libc} libc_archive)
    get_filename_component(FLAMEWIRE_LIBC_FOLDER ${libc_archive} DIRECTORY)
  endif()
  add_library(flamewire_zstd_archive STATIC IMPORTED GLOBAL)
  set_target_properties(flamewire_zstd_archive PROPERTIES
    IMPORTED_LOCATION ${zstd_archive} INTERFACE_INCLUDE_DIRECTORIES ${FLAMEWIRE_ZSTD_INCLUDE})
endif()
