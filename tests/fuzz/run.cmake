# One bounded run: -DFUZZER= -DSEEDS= -DWORK=. As a test it is the same run every time (one seed, a number of inputs), so that it
# judges the change and not the day's luck; FLAMEWIRE_FUZZ_SECONDS=N searches on, from a random seed, for N seconds.
file(REMOVE_RECURSE ${WORK}/corpus)
file(MAKE_DIRECTORY ${WORK}/corpus)
file(GLOB seeds ${SEEDS}/*)
if(seeds)
  file(COPY ${seeds} DESTINATION ${WORK}/corpus)
endif()
if(DEFINED ENV{FLAMEWIRE_FUZZ_SECONDS})
  set(bound -max_total_time=$ENV{FLAMEWIRE_FUZZ_SECONDS})
else()
  set(bound -seed=1 -runs=100000 -max_total_time=20)
endif()
execute_process(
  COMMAND ${FUZZER} ${bound} -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 -artifact_prefix=${WORK}/ ${WORK}/corpus
  RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the input that failed is in ${WORK}")
endif()
