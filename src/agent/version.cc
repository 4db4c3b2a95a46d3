#include "agent/version.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/auxv.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>

#include "agent/machine.h"
#include "agent/perf/capabilities.h"
#include "base/hex.h"
#include "elf/elf_file.h"
#include "secure/channel.h"
#include "unwind/walk/libunwind_step.h"
#include "wire/control.h"
#include "wire/session_file.h"

namespace flamewire::agent {

namespace {

const char* name_of(unwind::Arch arch) {
    switch (arch) {
        case unwind::Arch::x86_64: return "x86_64";
        case unwind::Arch::x86: return "x86";
        case unwind::Arch::aarch64: return "aarch64";
        case unwind::Arch::arm: return "arm";
    }
    return "unknown";
}

// Lists the unwind methods.
std::string unwinders() {
    std::string text = "frame pointers";
    bool libunwind = false;
    const std::vector<unwind::Arch> known = sampled_architectures();
    for (const unwind::Arch arch : known) {
        text += fmt::format("{} {}", arch == known.front() ? ", tables of" : " and", name_of(arch));
        libunwind = libunwind || unwind::LibunwindStep::available(arch);
    }
    if (std::ranges::find(known, unwind::Arch::x86_64) != known.end()) text += ", branch stacks";
    if (libunwind) text += ", libunwind";
    return text;
}

}  // namespace

std::string own_build_id() {
    // The kernel passes the address of the program headers, which contain the address of the notes.
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    const auto* const headers = reinterpret_cast<const ElfW(Phdr)*>(::getauxval(AT_PHDR));
    const std::size_t count = ::getauxval(AT_PHNUM);
    if (headers == nullptr) return {};
    const std::span all(headers, count);
    // Position-independent programs (the tests, not the agent) run at an offset. PT_PHDR shows it.
    std::uintptr_t bias = 0;
    for (const ElfW(Phdr) & header : all)
        if (header.p_type == PT_PHDR) bias = reinterpret_cast<std::uintptr_t>(headers) - header.p_vaddr;
    for (const ElfW(Phdr) & header : all) {
        if (header.p_type != PT_NOTE) continue;
        // NOLINTNEXTLINE(performance-no-int-to-ptr)
        const auto* const notes = reinterpret_cast<const std::byte*>(bias + header.p_vaddr);
        const std::string id = elf::build_id_of_notes({notes, header.p_memsz}, std::endian::native == std::endian::big);
        if (!id.empty()) return to_hex(id);
    }
    return {};
}

std::string version_text() {
    const std::string id = own_build_id();
    return fmt::format(
        "flamewire-agent {} {}\nbuild-id: {}\nunwinding: {}\ncompression: zstd {}\nencryption: {}\nwire protocol: "
        "{}\nsession file: "
        "{}\n",
        FLAMEWIRE_VERSION, build_architecture(), id.empty() ? "none" : id, unwinders(), ZSTD_VERSION_STRING,
        secure::tls_library(), wire::protocol_version, wire::session_version);
}

}  // namespace flamewire::agent
