// Arbitrary bytes as a pprof profile.
#include "import_fuzz.h"

FLAMEWIRE_FUZZ_IMPORT("pprof")
