# Unity builds: several sources as one translation unit. Headers take most of the compile time of a source, and the
# sources of a unit share them. This also makes the agent 25 KB smaller.
#
# FLAMEWIRE_UNITY_BUILD selects the sources:
#   OFF   none
#   ON    the unit tests, and the agent flavor of libraries that are not HOT. The desk flavor checks that each source compiles alone.
#   ALL   also all libraries
#
# flamewire_unity_build(TARGET)   call it after all target_link_libraries(). Without Python 3.9 it has no effect.
include_guard(GLOBAL)
set(FLAMEWIRE_UNITY_BUILD ON CACHE STRING "Compile several sources as one: OFF, ON for the agent and the unit tests, ALL")
set_property(CACHE FLAMEWIRE_UNITY_BUILD PROPERTY STRINGS OFF ON ALL)
if(NOT FLAMEWIRE_UNITY_BUILD MATCHES "^(OFF|ON|ALL)$")
  message(FATAL_ERROR "FLAMEWIRE_UNITY_BUILD must be OFF, ON or ALL, not ${FLAMEWIRE_UNITY_BUILD}")
endif()
set(flamewire_unity_script ${CMAKE_SOURCE_DIR}/tests/checks/unity.py)
if(FLAMEWIRE_UNITY_BUILD)
  find_package(Python3 3.9 QUIET COMPONENTS Interpreter)
  if(NOT Python3_Interpreter_FOUND)
    message(STATUS "No Python 3.9 for unity builds: compiling takes longer, and the agent is 25 KB larger")
  endif()
endif()

# A name of one source may hide one of another source. g++ treats the sources of a unit as headers, and warns about
# local types in them. These options must be linked last, so that they are last on the command line.
add_library(flamewire_unity_options INTERFACE)
target_compile_options(flamewire_unity_options INTERFACE -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
# Longer units leave one processor idle, and make compiling one changed source slower. That does not matter if every
# library has units.
set(flamewire_unity_lines 1500)
if(FLAMEWIRE_UNITY_BUILD STREQUAL ALL)
  set(flamewire_unity_lines 5000)
endif()

function(flamewire_unity_build target)
  if(NOT Python3_Interpreter_FOUND)
    return()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${flamewire_unity_script})
  get_target_property(sources ${target} SOURCES)
  execute_process(COMMAND ${Python3_EXECUTABLE} -B ${flamewire_unity_script} ${flamewire_unity_lines} ${sources}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE units OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" units "${units}")
  foreach(unit IN LISTS units)
    string(REGEX MATCH "^([0-9]+) (.+)$" unit "${unit}")
    set_source_files_properties(${CMAKE_MATCH_2} PROPERTIES UNITY_GROUP unit_${CMAKE_MATCH_1})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_link_libraries(${target} PRIVATE flamewire_unity_options)
endfunction()
