# The rules for installation, and the packages that cpack builds (docs/packages.md):
#
#   component  package
#   agent      flamewire-agent-VERSION-linux-ARCH.tar.gz, from a build of only the agent, for the root of a target's file system
#   server     flamewire-server_VERSION_ARCH.deb: server, command line and the agent for this machine
#   portable   flamewire-server-VERSION-linux-ARCH.tar.gz: the same with all libraries, for any folder
include_guard(GLOBAL)
if(FLAMEWIRE_SANITIZE OR NOT (FLAMEWIRE_AGENT OR FLAMEWIRE_SERVER))
  return()
endif()
include(GNUInstallDirs)
# The name in the presets: armv7 for armv7l.
string(REGEX REPLACE "^(armv7).*" "\\1" FLAMEWIRE_ARCH ${CMAKE_SYSTEM_PROCESSOR})

set(package_files ${CMAKE_CURRENT_LIST_DIR}/package)
set(package_work ${CMAKE_BINARY_DIR}/package)
file(MAKE_DIRECTORY ${package_work})

# flamewire_install_page(NAME SECTION COMPONENT...): installs the compressed manual page docs/man/NAME.SECTION, or the
# output of `NAME manual` if that file does not exist.
find_program(FLAMEWIRE_GZIP gzip)
function(flamewire_install_page name section)
  set(page ${CMAKE_SOURCE_DIR}/docs/man/${name}.${section})
  if(NOT EXISTS ${page})
    set(page ${package_work}/${name}.${section})
    add_custom_command(OUTPUT ${page} COMMAND ${name} manual > ${page} DEPENDS ${name} VERBATIM)
  endif()
  set(packed ${package_work}/${name}.${section}.gz)
  if(NOT FLAMEWIRE_GZIP)
    set(packed ${page})
  else()
    add_custom_command(OUTPUT ${packed} COMMAND ${FLAMEWIRE_GZIP} -9nc ${page} > ${packed} DEPENDS ${page} VERBATIM)
    add_custom_target(page_${name} ALL DEPENDS ${packed})
  endif()
  foreach(component IN LISTS ARGN)
    install(FILES ${packed} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${component})
  endforeach()
endfunction()

# flamewire_install_licences(COMPONENT NAME PACKAGE...): installs Flamewire's license, and for each linked or bundled
# part the copyright file of Debian's PACKAGE, from the sysroot if it is there, or else from this machine. With an SDK
# from another source, this machine has the same parts in another version.
function(flamewire_install_licences component name)
  set(folder ${CMAKE_INSTALL_DATADIR}/doc/${name})
  install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${folder} COMPONENT ${component})
  set(missing "")
  foreach(package IN LISTS ARGN)
    foreach(root "${CMAKE_SYSROOT}" "")
      set(statement ${root}/usr/share/doc/${package}/copyright)
      if(EXISTS ${statement})
        break()
      endif()
    endforeach()
    if(EXISTS ${statement})
      file(REAL_PATH ${statement} statement)
      install(FILES ${statement} DESTINATION ${folder}/licences RENAME ${package} COMPONENT ${component})
    else()
      list(APPEND missing ${package})
    endif()
  endforeach()
  # mbed TLS is compiled from source. Debian's has the file copyright, other sources have LICENSE.
  foreach(statement copyright LICENSE)
    if(EXISTS ${FLAMEWIRE_MBEDTLS}/${statement})
      install(FILES ${FLAMEWIRE_MBEDTLS}/${statement} DESTINATION ${folder}/licences RENAME mbedtls COMPONENT ${component})
      break()
    endif()
  endforeach()
  # The copyright files refer to these texts.
  foreach(text Apache-2.0 LGPL-2.1 LGPL-3 GPL-2 GPL-3)
    if(EXISTS /usr/share/common-licenses/${text})
      install(FILES /usr/share/common-licenses/${text} DESTINATION ${folder}/licences COMPONENT ${component})
    endif()
  endforeach()
  # An error only if a package is built.
  if(missing)
    install(CODE "message(FATAL_ERROR \"The licenses of these parts are not on this machine: ${missing}. Install these Debian packages, or add the texts to the package yourself (cmake/Package.cmake).\")"
      COMPONENT ${component})
  endif()
endfunction()

# flamewire_install_completions(NAME COMPONENT...): installs the completions of each shell in its folder.
function(flamewire_install_completions name)
  foreach(shell_file bash=bash-completion/completions/${name} zsh=zsh/vendor-completions/_${name} fish=fish/vendor_completions.d/${name}.fish)
    string(REGEX MATCH "^([a-z]+)=(.*)/([^/]+)$" _ ${shell_file})
    set(made ${package_work}/completion-${CMAKE_MATCH_1}/${CMAKE_MATCH_3})
    set(folder ${CMAKE_MATCH_2})
    file(MAKE_DIRECTORY ${package_work}/completion-${CMAKE_MATCH_1})
    add_custom_command(OUTPUT ${made} COMMAND ${name} completion ${CMAKE_MATCH_1} > ${made} DEPENDS ${name} VERBATIM)
    list(APPEND all ${made})
    foreach(component IN LISTS ARGN)
      install(FILES ${made} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} COMPONENT ${component})
    endforeach()
  endforeach()
  add_custom_target(completions_${name} ALL DEPENDS ${all})
endfunction()

# Installs a unit of systemd for the program, and its settings.
function(flamewire_install_service name component)
  set(FLAMEWIRE_BINDIR /usr/bin)
  configure_file(${package_files}/${name}.service.in ${package_work}/${name}.service @ONLY)
  install(FILES ${package_work}/${name}.service DESTINATION lib/systemd/system COMPONENT ${component})
  install(FILES ${package_files}/${name}.default DESTINATION /etc/default RENAME ${name} COMPONENT ${component})
endfunction()

if(FLAMEWIRE_AGENT)
  install(TARGETS flamewire-agent RUNTIME COMPONENT agent)
  flamewire_install_page(flamewire-agent 1 agent server portable)
  flamewire_install_service(flamewire-agent agent)
  install(PROGRAMS ${package_files}/flamewire-agent.init DESTINATION /etc/init.d RENAME flamewire-agent COMPONENT agent)
  install(FILES ${package_files}/README.agent DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/flamewire-agent RENAME README COMPONENT agent)
  string(REGEX MATCH "^[0-9]+" major ${CMAKE_CXX_COMPILER_VERSION})
  set(parts libc6-dev libgcc-${major}-dev libzstd-dev libasio-dev libfmt-dev libprotozero-dev rapidjson-dev)
  if(FLAMEWIRE_LIBUNWIND)
    list(APPEND parts libunwind-dev)
  endif()
  flamewire_install_licences(agent flamewire-agent ${parts})
endif()

if(FLAMEWIRE_SERVER)
  set(compiled_in libasio-dev rapidjson-dev libprotozero-dev librestinio-dev libcli11-dev libiberty-dev)
  set(beside libcapstone4 libdw1 libelf1 libfmt9 libspdlog1.10 libhttp-parser2.9 libzstd1 zlib1g libunwind8 liblzma5 libbz2-1.0 libstdc++6 libarchive13 libnettle8 libacl1 liblz4-1 libxml2 libicu72 libssl3 libsqlite3-0 libgcc-s1)
  foreach(component server portable)
    install(TARGETS flamewire-server flamewire RUNTIME_DEPENDENCY_SET server_libraries RUNTIME COMPONENT ${component})
    # The agent that records on this machine.
    if(FLAMEWIRE_AGENT)
      install(TARGETS flamewire-agent RUNTIME COMPONENT ${component})
    endif()
    install(FILES ${CMAKE_SOURCE_DIR}/docs/getting-started.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/flamewire-server COMPONENT ${component})
    # The licenses of the packages in the page's bundle.
    install(FILES $<TARGET_PROPERTY:flamewire_web_assets,FLAMEWIRE_LICENCES> DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/flamewire-server/licences RENAME page
      COMPONENT ${component})
  endforeach()
  flamewire_install_page(flamewire-server 1 server portable)
  flamewire_install_page(flamewire 1 server portable)
  flamewire_install_completions(flamewire server portable)
  flamewire_install_licences(server flamewire-server ${compiled_in} ${parts})
  flamewire_install_licences(portable flamewire-server ${compiled_in} ${parts} ${beside})
  flamewire_install_service(flamewire-server server)
  install(FILES ${package_files}/server.copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/flamewire-server RENAME copyright COMPONENT server)

  # The portable programs find their libraries by a relative path. It is RPATH, not RUNPATH, because that also applies
  # to libraries of libraries. Debian's package uses Debian's libraries.
  foreach(program flamewire-server flamewire)
    # Also in the build folder: CMake would pad a shorter RPATH with colons, which refer to the current folder.
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/flamewire" BUILD_WITH_INSTALL_RPATH ON)
    target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
    install(CODE "file(RPATH_REMOVE FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/${program}\")" COMPONENT server)
  endforeach()
  # The C library is that of the user's machine.
  install(RUNTIME_DEPENDENCY_SET server_libraries
    PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|pthread|dl|rt|resolv)\\.so"
    LIBRARY DESTINATION lib/flamewire COMPONENT portable
    FRAMEWORK DESTINATION lib/flamewire COMPONENT portable)
endif()

set(CPACK_PACKAGE_VENDOR "The Flamewire authors")
set(CPACK_PACKAGE_CONTACT "The Flamewire authors <flamewire@localhost>")
set(CPACK_PACKAGE_VERSION ${FLAMEWIRE_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Remote Linux profiler: receives profiles of agents and shows them live in the browser")
set(CPACK_PACKAGE_DESCRIPTION "flamewire-server receives recordings of flamewire-agent, a single static file that runs on a board or a server.\nIt symbolizes and stores them, and shows a live flame graph, functions, sources, threads and counters.")
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_GENERATOR TGZ)
if(FLAMEWIRE_SERVER)
  set(CPACK_GENERATOR "DEB;TGZ")
endif()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_NAME flamewire-server)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Only loaded with --debuginfod, so nothing links it.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS libdebuginfod1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${package_files}/conffiles ${package_files}/postinst ${package_files}/prerm)

# The generator of cpack decides which components it packs.
set(CPACK_PROJECT_CONFIG_FILE ${package_work}/of-generator.cmake)
if(FLAMEWIRE_SERVER)
  set(default_package server)
else()
  set(default_package agent)
endif()
file(CONFIGURE OUTPUT ${CPACK_PROJECT_CONFIG_FILE} CONTENT [[
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_COMPONENTS_ALL server)
  set(CPACK_SET_DESTDIR ON)
else()
  # A build with both packs the agent with `cpack -G TGZ -D FLAMEWIRE_PACKAGE=agent`.
  if(NOT FLAMEWIRE_PACKAGE)
    set(FLAMEWIRE_PACKAGE @default_package@)
  endif()
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
  set(CPACK_PACKAGE_FILE_NAME flamewire-${FLAMEWIRE_PACKAGE}-@FLAMEWIRE_VERSION@-linux-@FLAMEWIRE_ARCH@)
  # The server can be unpacked anywhere. The agent has files in /etc.
  if(FLAMEWIRE_PACKAGE STREQUAL "agent")
    set(CPACK_COMPONENTS_ALL agent)
    set(CPACK_SET_DESTDIR ON)
  else()
    set(CPACK_COMPONENTS_ALL portable)
    set(CPACK_PACKAGING_INSTALL_PREFIX "/")
  endif()
endif()
]] @ONLY)
include(CPack)
