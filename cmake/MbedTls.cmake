# mbed TLS with the one cipher suite of the link between agent and server (src/secure/mbedtls_config.h), compiled from
# its source:
#
#   flamewire_mbedtls           for the desk flavor
#   flamewire_mbedtls_archive   for the static agent
#
# The source is Debian's. toolchains/mbedtls.sh fetches it if it is missing. Any version 2.28 works.
include_guard(GLOBAL)

if(DEFINED ENV{FLAMEWIRE_MBEDTLS})
  set(mbedtls_default $ENV{FLAMEWIRE_MBEDTLS})
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(mbedtls_default $ENV{XDG_CACHE_HOME}/flamewire/mbedtls)
else()
  set(mbedtls_default $ENV{HOME}/.cache/flamewire/mbedtls)
endif()
set(FLAMEWIRE_MBEDTLS ${mbedtls_default} CACHE PATH "Source of mbed TLS 2.28")
if(NOT EXISTS ${FLAMEWIRE_MBEDTLS}/library/ssl_tls.c)
  execute_process(COMMAND ${CMAKE_SOURCE_DIR}/toolchains/mbedtls.sh ${FLAMEWIRE_MBEDTLS} OUTPUT_QUIET RESULT_VARIABLE mbedtls_result)
  if(NOT mbedtls_result EQUAL 0)
    message(FATAL_ERROR "The source of mbed TLS 2.28 is not in ${FLAMEWIRE_MBEDTLS} and cannot be fetched from Debian's mirrors: unpack it yourself and "
      "configure with -DFLAMEWIRE_MBEDTLS=DIR.")
  endif()
endif()

file(STRINGS ${FLAMEWIRE_MBEDTLS}/include/mbedtls/version.h mbedtls_version REGEX "define MBEDTLS_VERSION_STRING +\"2\\.28\\.")
if(NOT mbedtls_version)
  message(FATAL_ERROR "${FLAMEWIRE_MBEDTLS} is not mbed TLS 2.28: set its folder with -DFLAMEWIRE_MBEDTLS=DIR.")
endif()

set(mbedtls_sources bignum chacha20 chachapoly cipher cipher_wrap constant_time ecdh ecp ecp_curves md platform platform_util poly1305 sha256
  ssl_ciphersuites ssl_cli ssl_msg ssl_srv ssl_tls)
list(TRANSFORM mbedtls_sources PREPEND ${FLAMEWIRE_MBEDTLS}/library/)
list(TRANSFORM mbedtls_sources APPEND .c)
function(flamewire_add_mbedtls name hardening)
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${mbedtls_sources})
  target_include_directories(${name} SYSTEM PUBLIC ${FLAMEWIRE_MBEDTLS}/include)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_definitions(${name} PUBLIC MBEDTLS_CONFIG_FILE="secure/mbedtls_config.h")
  target_compile_options(${name} PRIVATE -w ${ARGN})
  target_link_libraries(${name} PRIVATE ${hardening})
endfunction()
if(FLAMEWIRE_DESK)
  flamewire_add_mbedtls(flamewire_mbedtls flamewire_hardening)
endif()
if(FLAMEWIRE_AGENT)
  # Without unwind tables, like the other C libraries: no exception passes through it.
  flamewire_add_mbedtls(flamewire_mbedtls_archive "flamewire_agent_hardening;flamewire_decoder_hardening" -Os -ffunction-sections -fdata-sections -fno-pie -fno-asynchronous-unwind-tables -fno-unwind-tables)
endif()
