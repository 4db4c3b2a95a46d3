// Arbitrary bytes as a perf.data file.
#include "import_fuzz.h"

FLAMEWIRE_FUZZ_IMPORT("perf.data")
