#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profile/formats/firefox.h"
#include "profile/formats/firefox_profile.h"
#include "profile/formats/json_slabs.h"
#include "profile/formats/timed_frames.h"
#include "symbol/files/object_file.h"

namespace flamewire::profile {
namespace {

using firefox_format::at;
using firefox_format::Library;
using firefox_format::none;
using firefox_format::Profile;
using firefox_format::Tables;
using firefox_format::ThreadColumns;

// "0x1f40": writers name functions like this before symbolization.
bool is_address(std::string_view name) {
    if (!name.starts_with("0x") || name.size() < 3) return false;
    std::uint64_t address = 0;
    const auto [end, error] = std::from_chars(name.data() + 2, name.data() + name.size(), address, 16);
    return error == std::errc{} && end == name.data() + name.size();
}

// The first 16 bytes of the build-id in a debug id ("5C0A0D51EA1980DF43F203B4525BE9BE0"). A debug id is a GUID with
// three little-endian fields at its start, followed by an age. Empty: there is none.
std::string start_of_build_id(std::string_view debug_id) {
    constexpr std::size_t guid_digits = 32;
    std::string id = debug_id.size() <= guid_digits ? std::string() : build_id_of(debug_id.substr(0, guid_digits));
    if (id.find_first_not_of('\0') == std::string::npos) return {};
    std::reverse(id.begin(), id.begin() + 4);
    std::reverse(id.begin() + 4, id.begin() + 6);
    std::reverse(id.begin() + 6, id.begin() + 8);
    return id;
}

struct ElfFile {
    std::string build_id;
    std::uint64_t base = 0;  // address of the first segment; addresses in a profile are relative to it
};
std::optional<ElfFile> read_elf(const std::string& path) {
    if (path.empty()) return std::nullopt;
    const auto object = symbol::ObjectFile::open(path);
    if (!object) return std::nullopt;
    ElfFile file;
    file.build_id = object->build_id().value_or(std::string());
    const auto& segments = object->header().segments;
    const auto first = std::ranges::find_if(segments, [](const auto& segment) { return segment.type == PT_LOAD; });
    if (first != segments.end()) file.base = first->vaddr;
    return file;
}

// Converts the libraries of a list to modules.
class Modules {
public:
    struct Module {
        wire::Id id = 0;  // 0: no module
        wire::ModuleKind kind = wire::ModuleKind::file;
        std::string kernel_module;  // "ext4", for functions of the kernel
        wire::Id kernel_module_id = 0;
        std::uint64_t base = 0;
    };

    Modules(ImportJob& job, RecordingBuilder& builder, bool symbolicated)
        : job_(job), builder_(builder), symbolicated_(symbolicated) {}

    void begin(const std::vector<Library>& libraries) {
        if (libraries_ == &libraries) return;
        libraries_ = &libraries;
        of_library_.assign(libraries.size(), std::nullopt);
        by_name_.clear();
        for (std::uint32_t i = 0; i < libraries.size(); ++i)
            for (const std::string& name : {libraries[i].name, libraries[i].debug_name}) {
                const auto [entry, added] = by_name_.try_emplace(key(name), i);
                if (!added && entry->second != i) entry->second = none;  // ambiguous name
            }
    }
    // nullptr: there is no such library.
    const Module* find(std::uint32_t library) {
        if (library >= of_library_.size()) return nullptr;
        std::optional<Module>& module = of_library_[library];
        if (!module) module = make((*libraries_)[library]);
        return &*module;
    }
    Module named(const std::string& name) {
        const auto known = by_name_.find(key(name));
        if (known != by_name_.end() && known->second != none) return *find(known->second);
        return make({.path = {}, .name = name, .debug_name = {}, .code_id = {}, .debug_id = {}});
    }

private:
    // Maps the kernel's many names to one key.
    static std::string key(std::string_view name) {
        const ImportedModule of = module_of_name(name);
        return std::string(of.kind == wire::ModuleKind::kernel && of.kernel_module.empty() ? of.path : name);
    }

    Module make(const Library& library) {
        const ImportedModule of = module_of_name(library.path.empty() ? library.name : library.path);
        Module module;
        module.kind = of.kind;
        module.kernel_module = of.kernel_module;
        if (of.path.empty()) return module;
        std::string build_id = build_id_of(library.code_id);
        // Only addresses need the file.
        if (!symbolicated_ && of.kind == wire::ModuleKind::file) {
            const std::string start = build_id.empty() ? start_of_build_id(library.debug_id) : std::string();
            symbol::ModuleIdentity identity;
            identity.path = of.path;
            identity.build_id = build_id;
            const auto file = read_elf(job_.module_file(identity));
            if (file && file->build_id.starts_with(start)) {
                if (build_id.empty()) build_id = file->build_id;
                module.base = file->base;
            }
            if (build_id.empty()) build_id = start;  // so that the module does not match another build
        }
        module.id = builder_.module(of.kind, of.path, build_id);
        // As in imports of perf.data: names of the kernel image do not apply to addresses in a kernel module.
        if (!symbolicated_ && !of.kernel_module.empty()) module.kernel_module_id = module_of_addresses(builder_, of);
        return module;
    }

    ImportJob& job_;
    RecordingBuilder& builder_;
    bool symbolicated_;
    const std::vector<Library>* libraries_ = nullptr;
    std::vector<std::optional<Module>> of_library_;
    std::map<std::string, std::uint32_t, std::less<>> by_name_;
};

class Rows {
public:
    Rows(ImportJob& job, RecordingBuilder& builder, const Profile& read, double origin_ms)
        : builder_(builder), read_(read), origin_ms_(origin_ms), modules_(job, builder, read.symbolicated) {}

    Result<bool> add(const ThreadColumns& thread) {
        const bool own = !thread.own_event.empty(), time = thread.weight_type == "tracing-ms",
                   bytes = thread.weight_type == "bytes";
        const Tables* const tables = thread.tables.stack_frame.empty() ? &read_.shared : &thread.tables;
        const std::vector<std::string>* const texts =
            thread.tables.texts.empty() ? &read_.shared.texts : &thread.tables.texts;
        // Resolve shared tables only once.
        if (tables != tables_ || texts != texts_) {
            tables_ = tables;
            texts_ = texts;
            own_ = own ? &thread : nullptr;
            modules_.begin(thread.libraries.empty() ? read_.libraries : thread.libraries);
            resolve_stacks();
        }

        wire::Row row;
        row.event = own     ? builder_.event(thread.own_event, thread.own_unit)
                    : time  ? builder_.event("time", "ns")
                    : bytes ? builder_.event("bytes", "bytes")
                            : builder_.event("samples", "samples");
        row.thread = builder_.thread(thread.pid, thread.tid, own ? thread.own_comm : thread.name);
        double now_ms = 0;
        for (std::size_t i = 0; i < thread.stacks.size(); ++i) {
            if (i < thread.deltas_ms.size()) now_ms += thread.deltas_ms[i];
            const double weight = i < thread.weights.size() ? thread.weights[i] : 1;
            const double time_ms = i < thread.times_ms.size() ? thread.times_ms[i] : now_ms;
            row.stack = thread.stacks[i] < stacks_.size() ? stacks_[thread.stacks[i]] : 0;
            row.bucket = bucket_of(clamped_ns((time_ms - origin_ms_) * 1e6));
            const double shown = own && i < thread.own_weights.size() ? thread.own_weights[i]
                                 : time                               ? weight * 1e6
                                                                      : weight;
            if (!(shown > 0) && !own) {
                negative += shown < 0 ? 1U : 0U;
                continue;
            }
            row.weight = static_cast<std::uint64_t>(std::llround(std::clamp(shown, 0.0, 9e18)));
            row.count = own               ? narrow_count(i < thread.own_samples.size() ? thread.own_samples[i] : 1)
                        : (time || bytes) ? 1
                                          : narrow_count(weight);
            TRY(builder_.add(row));
        }
        return true;
    }

    std::uint64_t negative = 0;

private:
    // A prefix must precede the stacks that continue it. If a damaged table violates this, the stack starts at its own
    // frame.
    void resolve_stacks() {
        stacks_.assign(tables_->stack_frame.size(), 0);
        frames_.assign(tables_->frame_func.size(), 0);
        callers_.assign(frames_.size(), false);
        if (read_.version < firefox_format::call_addresses_version)
            for (std::uint32_t i = 0; i < stacks_.size(); ++i)
                if (const std::uint32_t caller = at(tables_->stack_frame, tables_->prefix(i)); caller < callers_.size())
                    callers_[caller] = true;
        for (std::uint32_t i = 0; i < stacks_.size(); ++i) {
            const std::uint32_t before = tables_->prefix(i);
            stacks_[i] = builder_.stack(before < i ? stacks_[before] : 0, frame(tables_->stack_frame[i]));
        }
    }

    wire::Id frame(std::uint32_t index) {
        if (index >= frames_.size()) return builder_.location({.function = "(unknown)"});
        if (frames_[index] == 0) frames_[index] = make_frame(index);
        return frames_[index];
    }

    [[nodiscard]] std::string_view text(std::uint32_t id) const {
        return id < texts_->size() ? std::string_view((*texts_)[id]) : std::string_view{};
    }

    Modules::Module module_of(std::uint32_t index) {
        if (const Modules::Module* module = modules_.find(tables_->library(index)); module != nullptr) return *module;
        const std::string_view name = text(tables_->library_name(index));
        return name.empty() ? Modules::Module{} : modules_.named(std::string(name));
    }

    wire::Id make_frame(std::uint32_t index) {
        const std::uint32_t func = tables_->frame_func[index], line = tables_->line(index);
        RecordingBuilder::Name name{.function = text(at(tables_->func_name, func)),
                                    .file = text(tables_->file(func, read_.shared)),
                                    .line = line == none ? 0 : line,
                                    .flags = tables_->inlined(index) ? wire::location_flag::inlined : 0};
        if (name.function.empty()) name.function = "(anonymous)";
        const Modules::Module module = module_of(index);
        name.module = module.id;
        if (!read_.symbolicated && is_address(name.function))
            if (const auto location = addressed(module, tables_->address(index), callers_[index])) return *location;
        std::string with_module;
        if (!module.kernel_module.empty())
            name.function = with_module = fmt::format("{} [{}]", name.function, module.kernel_module);
        if (const auto address = unnamed_address(name.function); own_ != nullptr && address) {
            // Indices refer to the tables that Flamewire wrote: an upgrade to a newer version renumbers frames.
            const bool returns = tables_ == &own_->tables && std::ranges::binary_search(own_->own_returns, index);
            return builder_.location(name.module, *address, returns ? wire::location_flag::return_address : 0);
        }
        return builder_.location(name);
    }

    std::optional<wire::Id> addressed(const Modules::Module& module, std::uint32_t address, bool returns) {
        if (module.id == 0 || module.kind == wire::ModuleKind::jit || address == none) return std::nullopt;
        return builder_.location(module.kernel_module_id != 0 ? module.kernel_module_id : module.id,
                                 module.base + address, returns ? wire::location_flag::return_address : 0);
    }

    RecordingBuilder& builder_;
    const Profile& read_;
    double origin_ms_;
    Modules modules_;
    const Tables* tables_ = nullptr;
    const std::vector<std::string>* texts_ = nullptr;
    const ThreadColumns* own_ = nullptr;  // thread written by Flamewire, else nullptr
    std::vector<wire::Id> stacks_, frames_;
    std::vector<bool> callers_;  // frames that are return addresses
};

// The start of a recording in ms, relative to meta.startTime. Samples can begin long after meta.startTime, which is the
// start of the browser. A few samples precede the profiling start that the file states.
double origin_of(const Profile& read) {
    constexpr double far_ms = max_span_ns / 1e6;
    const double stated = read.profiling_start_ms;
    double origin = stated > 0 && stated < far_ms ? stated : 0;
    const auto see = [&](double time) {
        if (time < origin && time > -far_ms) origin = time;
    };
    for (const ThreadColumns& thread : read.threads) {
        double now = 0;
        for (std::size_t i = 0; i < thread.stacks.size(); ++i) {
            if (i < thread.deltas_ms.size()) now += thread.deltas_ms[i];
            see(i < thread.times_ms.size() ? thread.times_ms[i] : now);
        }
    }
    return origin;
}

}  // namespace

bool recognises_firefox(std::string_view beginning) {
    return JsonSlabs::recognises(beginning) ||
           begins_as_json(beginning, '{', {"\"meta\"", "\"preprocessedProfileVersion\""});
}

Result<bool> import_firefox(ImportJob& job) {
    const Profile read = TRY(firefox_format::read(job));
    wire::Recording about;
    about.target = read.product;
    about.start_ns = import_moment_ns;
    constexpr double far_ms = 4e12;
    const double origin_ms = origin_of(read);
    // Convert separately: a double of the sum would lose the nanoseconds.
    const std::int64_t realtime_ns =
        read.start_ms > 0 && read.start_ms < far_ms
            ? static_cast<std::int64_t>(read.start_ms * 1e6) + std::llround(origin_ms * 1e6)
            : 0;
    RecordingBuilder& builder = job.begin(std::move(about), realtime_ns);
    Rows rows(job, builder, read, origin_ms);
    for (const ThreadColumns& thread : read.threads) TRY(rows.add(thread));
    if (read.version > firefox_format::newest_version)
        builder.note(
            "import-newer-version",
            fmt::format("The profile is in version {} of the Firefox Profiler's format. Flamewire reads it as version "
                        "{}, the newest that it supports, so parts of it may be missing.",
                        read.version, firefox_format::newest_version),
            "Compare it with the Firefox Profiler, or import it with a newer Flamewire.");
    if (rows.negative != 0)
        builder.note(
            "import-negative",
            fmt::format("{} samples have a negative weight (memory that was freed) and were left out.", rows.negative));
    return true;
}

}  // namespace flamewire::profile
