// A variable of a shared library, for breakpoints.
extern "C" {
volatile int library_written = 0;
static volatile int beside_in_library = 0;

__attribute__((noinline)) void library_write(int value) {
    library_written = value;  // line of the store in the library
    beside_in_library = value + 1;
}
}
