#include "profile/formats/import_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace flamewire::profile {
namespace {

constexpr std::string_view kernel_path = "[kernel.kallsyms]";

// In brackets, but not a module of the kernel.
constexpr std::array bracketed{"[vsyscall]", "[heap]", "[stack]", "[unknown]", "[anon]", "[uprobes]", "[inlined]"};

bool is_jit(std::string_view name) {
    return name == "[jit]" || name == "//anon" || name == "[anon]" || name.starts_with("[anon:") ||
           name.starts_with("[jit-") || (name.starts_with("/tmp/perf-") && name.ends_with(".map")) ||
           name.starts_with("jitted-") || name.find("/jitted-") != std::string_view::npos;
}

// "ext4" from "…/ext4.ko" and its compressed forms.
std::string_view kernel_module_of_file(std::string_view name) {
    for (const std::string_view end : {".ko", ".ko.xz", ".ko.gz", ".ko.zst", ".ko.debug"}) {
        if (!name.ends_with(end)) continue;
        name.remove_suffix(end.size());
        return name.substr(name.rfind('/') + 1);
    }
    return {};
}

int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

ImportedModule module_of_name(std::string_view name) {
    using wire::ModuleKind;
    if (name.empty() || name == "[unknown]") return {};
    if (name == "[vdso]" || name == "[vdso32]" || name == "linux-vdso.so.1") return {ModuleKind::vdso, "[vdso]", {}};
    if (is_jit(name)) return {ModuleKind::jit, name, {}};
    const std::string_view last = name.substr(name.rfind('/') + 1);
    if (name.starts_with("[kernel") || name.starts_with("[guest.kernel") || last == "vmlinux" ||
        last.starts_with("vmlinux-") || last == "kallsyms" || name.starts_with("[bpf") || last.starts_with("bpf_prog_"))
        return {ModuleKind::kernel, kernel_path, {}};
    if (const std::string_view module = kernel_module_of_file(name); !module.empty())
        return {ModuleKind::kernel, kernel_path, module};
    if (name.size() > 2 && name.front() == '[' && name.back() == ']' &&
        std::ranges::find(bracketed, name) == bracketed.end())
        return {ModuleKind::kernel, kernel_path, name.substr(1, name.size() - 2)};
    return {ModuleKind::file, name, {}};
}

wire::Id module_of_addresses(RecordingBuilder& builder, const ImportedModule& module, std::string_view build_id) {
    if (module.path.empty()) return 0;
    // Kind jit: the addresses are not the kernel's, and no file is searched for them.
    if (!module.kernel_module.empty())
        return builder.module(wire::ModuleKind::jit, fmt::format("{}.ko", module.kernel_module));
    return builder.module(module.kind, module.path, build_id);
}

std::optional<std::uint64_t> unnamed_address(std::string_view name) {
    if (name.size() < 2 || name.front() != '[' || name.back() != ']') return std::nullopt;
    name = name.substr(1, name.size() - 2);
    if (const std::size_t plus = name.rfind('+'); plus != std::string_view::npos) name.remove_prefix(plus + 1);
    if (!name.starts_with("0x")) return std::nullopt;
    name.remove_prefix(2);
    std::uint64_t address = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), address, 16);
    return error == std::errc{} && end == name.data() + name.size() ? std::optional(address) : std::nullopt;
}

wire::Id location_of(RecordingBuilder& builder, const ExportedName& frame) {
    if (const auto address = unnamed_address(frame.name); address && frame.kind == FrameKind::unknown) {
        const ImportedModule of = module_of_name(frame.module_path.empty() ? frame.module : frame.module_path);
        return builder.location(module_of_addresses(builder, of, frame.build_id), *address,
                                frame.returns ? wire::location_flag::return_address : 0);
    }
    const bool kernel = frame.kind == FrameKind::kernel;
    const ImportedModule module = module_of_name(kernel ? kernel_path : frame.module);
    RecordingBuilder::Name name{.function = frame.name, .file = frame.file, .line = frame.line};
    std::string with_module;
    if (kernel && frame.module.ends_with(".ko")) {
        with_module = fmt::format("{} [{}]", frame.name, frame.module.substr(0, frame.module.size() - 3));
        name.function = with_module;
    }
    if (frame.name.empty()) name.function = "(anonymous)";
    if (!module.path.empty())
        name.module = builder.module(frame.kind == FrameKind::jit ? wire::ModuleKind::jit : module.kind, module.path);
    if (frame.kind == FrameKind::inlined) name.flags = wire::location_flag::inlined;
    return builder.location(name);
}

std::string build_id_of(std::string_view digits) {
    std::string bytes;
    if (digits.size() % 2 != 0) return bytes;
    for (std::size_t at = 0; at < digits.size(); at += 2) {
        const int high = digit(digits[at]), low = digit(digits[at + 1]);
        if (high < 0 || low < 0) return {};
        bytes += static_cast<char>(high * 16 + low);
    }
    return bytes;
}

}  // namespace flamewire::profile
