# Where a program looks for its shared libraries: an empty or relative element of RPATH stands for the
# current folder, so whoever can write there would run code as the user who starts the program.
#   cmake -DPROGRAM=FILE -DREADELF=... -P check_rpath.cmake
if(NOT READELF)
  message(FATAL_ERROR "readelf is missing (package binutils)")
endif()
execute_process(COMMAND ${READELF} -dW ${PROGRAM} OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
if(NOT dynamic MATCHES "\\(NEEDED\\)")
  message(FATAL_ERROR "${PROGRAM} has no shared libraries, so this check means nothing")
endif()
string(REGEX MATCHALL "\\((RPATH|RUNPATH)\\)[^\n]*" entries "${dynamic}")
foreach(entry IN LISTS entries)
  string(REGEX MATCH "\\[(.*)\\]" path "${entry}")
  if(NOT ":${CMAKE_MATCH_1}:" MATCHES "^:((/|\\$ORIGIN/)[^:]*:)+$")
    message(FATAL_ERROR "${PROGRAM} has an empty or relative element in ${entry}")
  endif()
endforeach()
