// Removes code from the static agent that libunwind refers to but src/unwind/walk/libunwind_step.cc never reaches:
// resuming a frame of the agent's own process, and function names, for which libunwind reads ELF files and needs
// liblzma (80 KB). The stubs are weak. Calling one is a bug in the agent and aborts the program.
#ifdef FLAMEWIRE_LIBUNWIND

#include <cstdlib>

// libunwind's own names.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
#define FLAMEWIRE_NEVER_CALLED(name)      \
    extern "C" [[gnu::weak]] void name(); \
    void name() { std::abort(); }

#if defined(__x86_64__)
FLAMEWIRE_NEVER_CALLED(_Ux86_64_get_elf_image)
FLAMEWIRE_NEVER_CALLED(_Ux86_64_get_exe_image_path)
FLAMEWIRE_NEVER_CALLED(_Ux86_64_setcontext)
#elif defined(__aarch64__)
FLAMEWIRE_NEVER_CALLED(_Uaarch64_get_elf_image)
FLAMEWIRE_NEVER_CALLED(_Uaarch64_get_exe_image_path)
#endif
FLAMEWIRE_NEVER_CALLED(_Uelf64_find_section)
FLAMEWIRE_NEVER_CALLED(_Uelf64_get_proc_name)
FLAMEWIRE_NEVER_CALLED(_Uelf64_get_proc_name_in_image)
FLAMEWIRE_NEVER_CALLED(_Uelf64_load_debuglink)

// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
#endif
