// Arbitrary bytes as a CPU profile or a trace of Chrome.
#include "import_fuzz.h"

FLAMEWIRE_FUZZ_IMPORT("chrome")
