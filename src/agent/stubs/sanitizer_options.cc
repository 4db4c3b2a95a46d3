// Of builds with sanitizers alone: what their run times ask for at the start. The agent has given up the system calls by which they would
// look for leaks at its end, and stops threads of its own on purpose.
extern "C" {
const char* __asan_default_options();
const char* __asan_default_options() { return "detect_leaks=0"; }
}
