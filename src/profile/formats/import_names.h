// What other tools' words for modules mean: perf, pprof and their like write the kernel, its modules, JIT code and the
// vDSO as names of files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "profile/formats/recording_builder.h"
#include "profile/store/model.h"
#include "wire/batch.h"

namespace flamewire::profile {

struct ImportedModule {
    wire::ModuleKind kind = wire::ModuleKind::file;
    std::string_view path;           // as a module of the recording has it; a view of what was asked, or a literal
    std::string_view kernel_module;  // "ext4": its functions are "NAME [ext4]" of the kernel; else empty
    bool operator==(const ImportedModule&) const = default;
};
// "[kernel.kallsyms]", "/lib/modules/6.1/kernel/fs/ext4.ko", "[ext4]", "/tmp/perf-12.map", "[vdso]", "/usr/bin/app", …
ImportedModule module_of_name(std::string_view name);
// The module of its addresses without a name: "ext4.ko" if it is one of the kernel's. 0: none.
wire::Id module_of_addresses(RecordingBuilder& builder, const ImportedModule& module, std::string_view build_id = {});

// A frame as an export of ours tells it, made a location again. `module`: as Function::module, of the kernel's functions
// "[kernel]" or "ext4.ko".
struct ExportedName {
    std::string_view name, module;
    FrameKind kind = FrameKind::user;
    std::string_view file;
    std::uint32_t line = 0;
    // Of kind unknown, as far as that is known; build_id: its bytes.
    std::string_view module_path{}, build_id{};
    bool returns = false;  // a call returns there
};
wire::Id location_of(RecordingBuilder& builder, const ExportedName& frame);

// Of "[libc.so.6+0x26060]" or "[0x26060]": the address of what has no name, as Flamewire shows it.
std::optional<std::uint64_t> unnamed_address(std::string_view name);

// The hexadecimal digits of a build-id as bytes; empty when they are none.
std::string build_id_of(std::string_view digits);

}  // namespace flamewire::profile
