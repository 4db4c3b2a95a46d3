// Arbitrary bytes as the text of perf script.
#include "import_fuzz.h"

FLAMEWIRE_FUZZ_IMPORT("perf-script")
