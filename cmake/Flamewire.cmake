# The two flavors of each library, and the function that declares a library.
#
#   desk    for the server, the command line and tests: -O2 from the build type, RTTI, fmt as a library
#   agent   for the static agent: -Os, no RTTI, no exceptions (an exception of a library would end the program anyway),
#           fmt compiled in without locales
#
# flamewire_library(NAME [AGENT] [DESK] [HOT] [DECODES] SOURCES ... [LINK ...] [DESK_LINK ...] [AGENT_LINK ...])
#   declares flamewire_NAME (desk) and/or flamewire_NAME_agent. LINK lists other libraries of this tree without prefix;
#   each flavor links the same flavor. A library is only built if a program links it. DESK_LINK and AGENT_LINK list
#   other targets.
#   HOT: the library runs for each sample. In a unity build -Os inlines less of it, and a sample costs 6 % more CPU time.
#   DECODES: the library decodes data of a peer, a file or a process (Hardening.cmake).
include_guard(GLOBAL)
include(AgentLibraries)
include(Hardening)
include(UnityBuild)

# The desk flavor is for the server and tests. A build of only the agent needs neither it nor its libraries.
if(FLAMEWIRE_SERVER OR FLAMEWIRE_TESTS OR FLAMEWIRE_FUZZ)
  set(FLAMEWIRE_DESK ON)
else()
  set(FLAMEWIRE_DESK OFF)
endif()

add_library(flamewire_options INTERFACE)
target_include_directories(flamewire_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(flamewire_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wold-style-cast -Wcast-align -Wformat=2 -Wnull-dereference
  $<$<BOOL:${FLAMEWIRE_WERROR}>:-Werror>
  # g++ 12 reports impossible paths inside its own headers with these three (std::string, std::expected).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-maybe-uninitialized;-Wno-null-dereference>
  # On 32-bit Arm it also reports for each vector that g++ 7 changed how some arguments are passed.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-psabi>)
# Files beyond 2 GiB and times beyond 2038, also in 32-bit programs.
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  target_compile_definitions(flamewire_options INTERFACE _FILE_OFFSET_BITS=64 _TIME_BITS=64)
endif()
# Asio checks for aligned_alloc() before it includes any header of libstdc++. So the order of includes would decide that
# one source allocates with it and another one frees with operator delete.
target_compile_definitions(flamewire_options INTERFACE
  FLAMEWIRE_VERSION="${FLAMEWIRE_VERSION}" ASIO_STANDALONE ASIO_NO_DEPRECATED ASIO_DISABLE_STD_ALIGNED_ALLOC)

# RapidJSON 1.1.0 assigns to a const member in a template without instances, which clang 19 (fuzzing, clang-tidy)
# rejects, and adds to a null pointer, which the sanitizer reports. A copy with these two lines corrected precedes the
# system's headers.
set(rapidjson_copy ${CMAKE_BINARY_DIR}/rapidjson-corrected)
function(flamewire_correct_rapidjson file wrong right)
  file(READ ${RAPIDJSON_DIR}/rapidjson/${file} text)
  string(REPLACE "${wrong}" "${right}" text "${text}")
  file(CONFIGURE OUTPUT ${rapidjson_copy}/rapidjson/${file} CONTENT "${text}" @ONLY)
endfunction()
file(COPY ${RAPIDJSON_DIR}/rapidjson DESTINATION ${rapidjson_copy} PATTERN document.h EXCLUDE PATTERN stack.h EXCLUDE)
flamewire_correct_rapidjson(document.h "operator=(const GenericStringRef& rhs) { s = rhs.s; length = rhs.length; }"
  "operator=(const GenericStringRef&) = delete;")
flamewire_correct_rapidjson(internal/stack.h "(stackTop_ + sizeof(T) * count > stackEnd_)"
  "(sizeof(T) * count > static_cast<size_t>(stackEnd_ - stackTop_))")
target_include_directories(flamewire_options SYSTEM BEFORE INTERFACE ${rapidjson_copy})
target_link_libraries(flamewire_options INTERFACE flamewire_headers)

add_library(flamewire_desk_options INTERFACE)
target_link_libraries(flamewire_desk_options INTERFACE flamewire_options flamewire_hardening)
if(FLAMEWIRE_SANITIZE)
  target_compile_options(flamewire_desk_options INTERFACE -fsanitize=${FLAMEWIRE_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_compile_definitions(flamewire_desk_options INTERFACE FLAMEWIRE_SANITIZED)
  target_link_options(flamewire_desk_options INTERFACE -fsanitize=${FLAMEWIRE_SANITIZE})
endif()

add_library(flamewire_agent_options INTERFACE)
target_link_libraries(flamewire_agent_options INTERFACE flamewire_options flamewire_agent_hardening)
target_compile_options(flamewire_agent_options INTERFACE
  -Os -ffunction-sections -fdata-sections -fno-pie -fno-rtti -fno-asynchronous-unwind-tables -fno-exceptions -funwind-tables)
target_compile_definitions(flamewire_agent_options INTERFACE
  ASIO_NO_EXCEPTIONS FMT_EXCEPTIONS=0
  FMT_USE_FLOAT=0 FMT_USE_DOUBLE=0 FMT_USE_LONG_DOUBLE=0 FMT_USE_INT128=0 "FMT_STATIC_THOUSANDS_SEPARATOR=','" ASIO_NO_TYPEID)
if(NOT FLAMEWIRE_FMT_FORMAT)
  target_compile_definitions(flamewire_agent_options INTERFACE FMT_HEADER_ONLY=1)
endif()

function(flamewire_library name)
  cmake_parse_arguments(ARG "AGENT;DESK;HOT;DECODES" "" "SOURCES;LINK;DESK_LINK;AGENT_LINK" ${ARGN})
  if(ARG_DESK AND FLAMEWIRE_DESK)
    add_library(flamewire_${name} STATIC EXCLUDE_FROM_ALL ${ARG_SOURCES})
    target_link_libraries(flamewire_${name} PUBLIC flamewire_desk_options ${ARG_DESK_LINK})
    foreach(other IN LISTS ARG_LINK)
      target_link_libraries(flamewire_${name} PUBLIC flamewire_${other})
    endforeach()
    if(FLAMEWIRE_UNITY_BUILD STREQUAL ALL)
      flamewire_unity_build(flamewire_${name})
    endif()
  endif()
  if(ARG_AGENT AND FLAMEWIRE_AGENT AND NOT FLAMEWIRE_SANITIZE)
    add_library(flamewire_${name}_agent STATIC EXCLUDE_FROM_ALL ${ARG_SOURCES})
    target_link_libraries(flamewire_${name}_agent PUBLIC flamewire_agent_options ${ARG_AGENT_LINK})
    if(ARG_DECODES)
      target_link_libraries(flamewire_${name}_agent PRIVATE flamewire_decoder_hardening)
    endif()
    foreach(other IN LISTS ARG_LINK)
      target_link_libraries(flamewire_${name}_agent PUBLIC flamewire_${other}_agent)
    endforeach()
    if(FLAMEWIRE_UNITY_BUILD STREQUAL ALL OR (FLAMEWIRE_UNITY_BUILD AND NOT ARG_HOT))
      flamewire_unity_build(flamewire_${name}_agent)
    endif()
  endif()
endfunction()
