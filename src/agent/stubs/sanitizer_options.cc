// Only in builds with sanitizers: options that their runtimes request at startup. Leak detection is disabled: at exit
// the agent can no longer make the system calls that it needs, and the agent stops its own threads on purpose.
extern "C" {
const char* __asan_default_options();
const char* __asan_default_options() { return "detect_leaks=0"; }
}
