# Included by CMakeLists.txt of this folder. Everything of the program but main is a library, also for the desk: its tests and fuzz targets.
# Commands of the server are a library of their own: its fuzz target needs no sockets, no pipeline and no health.
flamewire_library(agent_commands AGENT DESK DECODES
  SOURCES command_arguments.cc commands.cc hello.cc list_events_command.cc option_values.cc options.cc
  LINK base wire agent_perf agent_process)
flamewire_library(agent_session AGENT DESK
  SOURCES
    recording/active_events.cc recording/adaptation.cc recording/batch_outbox.cc recording/batch_producer.cc
    recording/kernel_names_pass.cc recording/off_cpu_recording.cc recording/probe_setup.cc recording/open_batch.cc recording/reconfiguration.cc
    recording/recorder.cc recording/recorder_mailbox.cc recording/recorder_snapshot.cc recording/recording_description.cc
    recording/sampler.cc recording/stack_sampling.cc recording/target_counters.cc recording/target_members.cc
    recording/event_table.cc recording/recording_encode.cc recording/requested_events.cc recording/targets.cc
    counting.cc machine.cc version.cc
    control/agent_loop.cc control/command_queue.cc control/describe_events.cc control/doctor.cc control/help.cc control/launch.cc control/list_events.cc
    control/module_transfer.cc control/output.cc control/pairing.cc
    control/privileges.cc control/recording_capture.cc control/recording_controller.cc control/recording_log.cc
    control/sched_sink.cc control/server_control.cc control/worker.cc
  LINK base wire secure counters agent_commands agent_capture agent_perf agent_process agent_probes agent_pipeline agent_link agent_log agent_health)

# With sanitizers it is a program of the desk: nobody links their run times into a static one.
if(FLAMEWIRE_AGENT AND FLAMEWIRE_SANITIZE)
  add_executable(flamewire-agent main.cc stubs/sanitizer_options.cc)
  target_link_libraries(flamewire-agent PRIVATE flamewire_agent_session)
elseif(FLAMEWIRE_AGENT)
  find_package(Threads REQUIRED)
  add_executable(flamewire-agent main.cc stubs/libc_stubs.cc stubs/libunwind_stubs.cc stubs/zstd_stubs.cc)
  target_link_libraries(flamewire-agent PRIVATE flamewire_agent_session_agent Threads::Threads)
  # --eh-frame-hdr: g++ leaves it out of static programs, and then nobody can unwind this one (exceptions included) quickly.
  target_link_options(flamewire-agent PRIVATE -static -no-pie -Wl,--gc-sections -Wl,--eh-frame-hdr -Wl,--build-id)
  # Before the folders that a toolchain file names.
  if(FLAMEWIRE_LIBC_FOLDER)
    string(PREPEND CMAKE_EXE_LINKER_FLAGS "-L${FLAMEWIRE_LIBC_FOLDER} ")
  endif()
  # What people copy to a target is stripped; its symbols stay beside it under the same build-id.
  add_custom_command(TARGET flamewire-agent POST_BUILD
    COMMAND ${CMAKE_OBJCOPY} --only-keep-debug $<TARGET_FILE:flamewire-agent> $<TARGET_FILE:flamewire-agent>.debug
    COMMAND ${CMAKE_OBJCOPY} --strip-all --add-gnu-debuglink=$<TARGET_FILE:flamewire-agent>.debug $<TARGET_FILE:flamewire-agent>
    VERBATIM)
endif()
