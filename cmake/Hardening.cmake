# Options of compiler and linker that make memory bugs harder to exploit (docs/security.md). tests/checks/programs.py
# checks the programs.
#
#   flamewire_hardening            compile options of the desk flavor
#   flamewire_hardened_program     link options of its programs
#   flamewire_agent_hardening      compile and link options of the static agent
#   flamewire_decoder_hardening    compile options of the parts of the agent that decode data of a peer, a file or a process
#
# An option is used if the compiler or linker supports it: an SDK may be older, or its machine may lack it.
include_guard(GLOBAL)
include(CheckCXXCompilerFlag)
include(CheckCXXSourceCompiles)
include(CheckLinkerFlag)

# flamewire_compiler_has(VARIABLE FLAG...) and flamewire_linker_has(VARIABLE FLAG...): set VARIABLE to the supported
# flags.
function(flamewire_compiler_has variable)
  set(accepted "")
  foreach(flag IN LISTS ARGN)
    string(MAKE_C_IDENTIFIER "FLAMEWIRE_COMPILES${flag}" known)
    check_cxx_compiler_flag(${flag} ${known})
    if(${known})
      list(APPEND accepted ${flag})
    endif()
  endforeach()
  set(${variable} ${accepted} PARENT_SCOPE)
endfunction()
function(flamewire_linker_has variable)
  set(accepted "")
  foreach(flag IN LISTS ARGN)
    string(MAKE_C_IDENTIFIER "FLAMEWIRE_LINKS${flag}" known)
    check_linker_flag(CXX ${flag} ${known})
    if(${known})
      list(APPEND accepted ${flag})
    endif()
  endforeach()
  set(${variable} ${accepted} PARENT_SCOPE)
endfunction()

flamewire_compiler_has(stack_protection -fstack-protector-strong)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  flamewire_compiler_has(branch_protection -fcf-protection=full)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  flamewire_compiler_has(branch_protection -mbranch-protection=standard)
else()
  set(branch_protection "")
endif()
flamewire_compiler_has(stack_clash -fstack-clash-protection)

# glibc's checks need optimization, and sanitizers have their own checks. Some compilers define the level themselves.
set(fortify "")
if(NOT FLAMEWIRE_SANITIZE)
  set(CMAKE_TRY_COMPILE_CONFIGURATION ${CMAKE_BUILD_TYPE})
  check_cxx_source_compiles("#ifndef __OPTIMIZE__\n#error not optimized\n#endif\nint main() {}" FLAMEWIRE_OPTIMIZES)
  unset(CMAKE_TRY_COMPILE_CONFIGURATION)
  if(FLAMEWIRE_OPTIMIZES)
    set(fortify "SHELL:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2")
  endif()
endif()

flamewire_linker_has(read_only_data -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)

add_library(flamewire_hardening INTERFACE)
target_compile_options(flamewire_hardening INTERFACE -fPIE ${stack_protection} ${stack_clash} ${branch_protection} ${fortify})
add_library(flamewire_hardened_program INTERFACE)
target_link_options(flamewire_hardened_program INTERFACE -pie ${read_only_data})
add_library(flamewire_agent_hardening INTERFACE)
target_compile_options(flamewire_agent_hardening INTERFACE ${fortify})
target_link_options(flamewire_agent_hardening INTERFACE ${read_only_data})
add_library(flamewire_decoder_hardening INTERFACE)
target_compile_options(flamewire_decoder_hardening INTERFACE ${stack_protection})
# On x86-64 a protected function is 41 bytes longer. For all functions that is 61 KB.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  target_link_libraries(flamewire_agent_hardening INTERFACE flamewire_decoder_hardening)
endif()
