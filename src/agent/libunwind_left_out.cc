// Leaves out of the static agent what libunwind refers to and src/unwind/libunwind_step.cc never reaches: resuming a
// frame of our own process, and liblzma (80 KB), which only looks for function names in compressed symbol tables. The
// stand-ins are weak; one that is called is a bug of ours and ends the program.
#ifdef FLAMEWIRE_LIBUNWIND

#include <cstdlib>

#define FLAMEWIRE_NEVER_CALLED(name)      \
    extern "C" [[gnu::weak]] void name(); \
    void name() { std::abort(); }

#ifdef __x86_64__
FLAMEWIRE_NEVER_CALLED(_Ux86_64_setcontext)
#endif
FLAMEWIRE_NEVER_CALLED(lzma_index_buffer_decode)
FLAMEWIRE_NEVER_CALLED(lzma_index_end)
FLAMEWIRE_NEVER_CALLED(lzma_index_size)
FLAMEWIRE_NEVER_CALLED(lzma_index_uncompressed_size)
FLAMEWIRE_NEVER_CALLED(lzma_stream_buffer_decode)
FLAMEWIRE_NEVER_CALLED(lzma_stream_footer_decode)

#endif
