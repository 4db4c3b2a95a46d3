# Several sources as one translation unit: most of the compile time of each goes into the same headers.
#
# The agent gets 25 KB smaller by that, too.
#
# FLAMEWIRE_UNITS says which sources: OFF; ON: the agent's flavour of libraries that are not HOT, since the desk's shows that each
# source compiles by itself, and the unit tests; ALL.
#
# flamewire_units(TARGET)   compiles the sources of a target in units; to be called when it has all that it links. Without
#                           Python 3.9 each source stays by itself.
include_guard(GLOBAL)
set(FLAMEWIRE_UNITS ON CACHE STRING "Compile several sources as one: OFF, ON for the agent and the unit tests, ALL")
set_property(CACHE FLAMEWIRE_UNITS PROPERTY STRINGS OFF ON ALL)
if(FLAMEWIRE_UNITS)
  find_package(Python3 3.9 QUIET COMPONENTS Interpreter)
endif()
# A name of one source may hide one of another, and to g++ all sources of a unit are headers, which should not define what is local.
# What is linked last stands last on the command line.
add_library(flamewire_unit_options INTERFACE)
target_compile_options(flamewire_unit_options INTERFACE -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
# Longer units leave one processor idle, and compiling one changed source takes longer.
set(flamewire_unit_lines 1500)

function(flamewire_units target)
  if(NOT Python3_Interpreter_FOUND)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/checks/units.py ${flamewire_unit_lines} ${sources}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE units OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" units "${units}")
  foreach(unit IN LISTS units)
    string(REGEX MATCH "^([0-9]+) (.+)$" unit "${unit}")
    set_source_files_properties(${CMAKE_MATCH_2} PROPERTIES UNITY_GROUP unit_${CMAKE_MATCH_1})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_link_libraries(${target} PRIVATE flamewire_unit_options)
endfunction()
