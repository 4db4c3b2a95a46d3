# Configures and builds a preset: cmake -DPRESET=... -DSOURCE=... [-DLAUNCHER=...] -P build_preset.cmake
set(options)
if(LAUNCHER)
  set(options -DCMAKE_C_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
endif()
cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
foreach(command "--preset;${PRESET};--no-warn-unused-cli;${options}" "--build;--preset;${PRESET};-j${processors}")
  # Other tests run at the same time and should not wait for compilers.
  execute_process(COMMAND nice -n 5 ${CMAKE_COMMAND} ${command} WORKING_DIRECTORY ${SOURCE} RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "preset ${PRESET} does not build; ./dev test installs the compilers and makes the sysroots that it needs")
  endif()
endforeach()
