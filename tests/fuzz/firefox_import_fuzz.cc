// Arbitrary bytes as a profile of the Firefox Profiler.
#include "import_fuzz.h"

FLAMEWIRE_FUZZ_IMPORT("firefox")
