// The meaning of other tools' module names: perf, pprof and similar tools write the kernel, its modules, JIT code and
// the vDSO as file names.
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
    std::string_view path;           // as in a module of the recording; a view into the argument, or a literal
    std::string_view kernel_module;  // "ext4": its functions become "NAME [ext4]" of the kernel; else empty
    bool operator==(const ImportedModule&) const = default;
};
// "[kernel.kallsyms]", "/lib/modules/6.1/kernel/fs/ext4.ko", "[ext4]", "/tmp/perf-12.map", "[vdso]", "/usr/bin/app", …
ImportedModule module_of_name(std::string_view name);
// The module for addresses without a name: "ext4.ko" for a kernel module. 0: none.
wire::Id module_of_addresses(RecordingBuilder& builder, const ImportedModule& module, std::string_view build_id = {});

// A frame as Flamewire's exports write it, which becomes a location again. `module` is as in Function::module:
// "[kernel]" or "ext4.ko" for functions of the kernel.
struct ExportedName {
    std::string_view name, module;
    FrameKind kind = FrameKind::user;
    std::string_view file;
    std::uint32_t line = 0;
    // For kind unknown, if the file has them. build_id: raw bytes.
    std::string_view module_path{}, build_id{};
    bool returns = false;  // the address is a return address
};
wire::Id location_of(RecordingBuilder& builder, const ExportedName& frame);

// The address in "[libc.so.6+0x26060]" or "[0x26060]", as Flamewire shows addresses without a name.
std::optional<std::uint64_t> unnamed_address(std::string_view name);

// Converts the hexadecimal digits of a build-id to bytes. Empty: they are not hexadecimal digits.
std::string build_id_of(std::string_view digits);

}  // namespace flamewire::profile
