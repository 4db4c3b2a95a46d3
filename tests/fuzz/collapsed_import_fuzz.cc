// Arbitrary bytes as folded stacks.
#include "import_fuzz.h"

FLAMEWIRE_FUZZ_IMPORT("collapsed")
