// Arbitrary bytes as a speedscope profile.
#include "import_fuzz.h"

FLAMEWIRE_FUZZ_IMPORT("speedscope")
