#include "agent/process/module_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "agent/process/proc_text.h"
#include "agent/process/vdso.h"
#include "base/file.h"
#include "base/system.h"
#include "process/mapping_name.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t max_modules = 65'536;
constexpr std::size_t max_notices = 16;  // more would hide each other
constexpr std::size_t max_kept_files = 4096;

const ModuleInfo unknown_module;

// 64-bit finalizer (MurmurHash3's constants).
std::uint64_t mix(std::uint64_t value) {
    value ^= value >> 33;
    value *= 0xff51afd7ed558ccdULL;
    return value ^ (value >> 33);
}

std::vector<elf::Segment> load_segments(const elf::Header& header, bool executable) {
    std::vector<elf::Segment> segments;
    for (const elf::Segment& segment : header.segments)
        if (segment.type == elf::segment_load && ((segment.flags & elf::segment_executable) != 0) == executable)
            segments.push_back(segment);
    return segments;
}

// A program can replace the file at a path that it has mapped (with a link, or a mount of its own). Files that only
// root can read must not reach the server, unless inode or build-id match the mapping. Files of /proc, which have no
// size, are not opened to compare build-ids: reading /proc/kmsg takes lines away from other readers.
bool may_open(const MappedFile& mapped, const FileStatus& facts) {
    const bool same_file = mapped.inode != 0 && mapped.inode == facts.inode && mapped.device == facts.device;
    const bool can_compare = !mapped.build_id.empty() && facts.size_bytes != 0;
    return facts.others_may_read || same_file || can_compare;
}

}  // namespace

// A file that may be the mapped one.
struct ModuleCache::Candidate {
    FileKey key;
    UniqueFd file;
    ModuleHandle known = 0;  // this very file was read before; then the fields below are empty
    bool is_elf = false;
    std::string build_id;
    std::vector<elf::Segment> executable, others;
};

ModuleCache::FileKey ModuleCache::key_of(const FileStatus& facts) {
    return {facts.device, facts.inode, facts.size_bytes, facts.modified_ns};
}

std::size_t ModuleCache::FileKeyHash::operator()(const FileKey& key) const {
    return static_cast<std::size_t>(
        mix(key.inode ^ mix(key.device ^ mix(key.size ^ mix(static_cast<std::uint64_t>(key.mtime_ns))))));
}

ModuleCache::ModuleCache(std::string proc_root, std::uint64_t page_size, bool keep_files)
    : proc_root_(std::move(proc_root)), page_size_(page_size), keep_files_(keep_files) {}

ModuleHandle ModuleCache::add(State state) {
    if (modules_.size() >= max_modules) return 0;
    modules_.push_back(std::move(state));
    return static_cast<ModuleHandle>(modules_.size());
}

Result<ModuleCache::Candidate> ModuleCache::inspect(const std::string& path, bool by_kernel,
                                                    const MappedFile& mapped) const {
    // Only regular files: opening a device can trigger actions, opening a FIFO waits for its other end.
    FileStatus facts;
    if (const int error = System::current().status(path, by_kernel, facts); error != 0)
        return fail_errno("open " + path, -error);
    if (!facts.regular) return fail(ErrorCode::invalid, path + " is not a regular file");
    if (!by_kernel && !may_open(mapped, facts))
        return fail(ErrorCode::not_found, path + " is a file that the program may not read");
    Candidate candidate;
    candidate.key = key_of(facts);
    if (const auto known = by_file_.find(candidate.key); known != by_file_.end()) {
        candidate.known = known->second;
        return candidate;
    }
    UniqueFd fd(System::current().open_same(path, O_NONBLOCK | O_NOCTTY | (by_kernel ? 0 : O_NOFOLLOW), facts));
    if (!fd) return fail_errno("open " + path, -fd.get());
    const elf::ByteSource source = elf::source_of_fd(fd.get());
    const auto header = elf::read_header(source);
    if (!header) return candidate;
    candidate.is_elf = true;
    if (auto build_id = elf::read_build_id(source, *header)) candidate.build_id = *std::move(build_id);
    candidate.executable = load_segments(*header, true);
    candidate.others = load_segments(*header, false);
    if (keep_files_ && kept_files_ < max_kept_files) candidate.file = std::move(fd);
    return candidate;
}

Result<ModuleCache::Candidate> ModuleCache::find_candidate(const MappedFile& mapped) const {
    const auto is_mapped = [&](const Candidate& found, bool own_view) {
        const std::string& build_id = found.known != 0 ? info(found.known).build_id : found.build_id;
        if (!mapped.build_id.empty()) return build_id == mapped.build_id;
        const bool same_inode = mapped.inode == found.key.inode;
        // btrfs and overlayfs show other device numbers in maps than in stat, and the inode may differ as well.
        const bool replaced = mapped.inode != 0 && !same_inode && mapped.device == found.key.device;
        return !replaced && (own_view || same_inode);
    };
    // The kernel's own link to the mapped file is correct regardless of names, but refers to the current mapping.
    // Another library may have replaced the one in the record. Needs CAP_CHECKPOINT_RESTORE.
    auto direct = inspect(
        proc_path(proc_root_, mapped.pid, fmt::format("map_files/{:x}-{:x}", mapped.start, mapped.end)), true, mapped);
    if (direct && !is_mapped(*direct, true)) direct = fail(ErrorCode::not_found, mapped.path + " is no longer mapped");
    if (direct || mapped.deleted) return direct;

    // By name, as seen by the process, by its parent (the process may be gone), or by the agent. The name may now refer
    // to another file.
    struct Way {
        std::string path;
        bool own_view;  // from a process that certainly resolves this name as the target did
    };
    const Way ways[] = {{proc_path(proc_root_, mapped.pid, "root") + mapped.path, true},
                        {proc_path(proc_root_, mapped.parent_pid, "root") + mapped.path, true},
                        {mapped.path, false}};
    Error first_error;
    for (const Way& way : ways) {
        auto found = inspect(way.path, false, mapped);
        if (!found) {
            if (&way == &ways[0]) first_error = std::move(found).error();
            continue;
        }
        if (is_mapped(*found, way.own_view)) return found;
        first_error = {ErrorCode::not_found, 0, way.path + " was replaced by another file"};
    }
    if (direct.error().code == ErrorCode::permission) return direct;
    return std::unexpected(std::move(first_error));
}

ModuleHandle ModuleCache::of_mapping(const MappedFile& mapped) {
    switch (process::classify_mapping(mapped.path)) {
        case process::MappingName::file: return of_file(mapped);
        case process::MappingName::vdso: return of_vdso(mapped.pid, mapped.start, mapped.end);
        case process::MappingName::anonymous: break;
    }
    return 0;
}

ModuleHandle ModuleCache::of_file(const MappedFile& mapped) {
    if (!mapped.build_id.empty()) {
        const auto known = by_build_id_.find(mapped.build_id);
        if (known != by_build_id_.end()) {
            const State& state = modules_[known->second - 1];
            if (state.readable || state.offsets_given) return known->second;
        }
    }
    // An inode that is held open cannot be reused.
    if (mapped.build_id.empty() && mapped.inode != 0)
        if (const auto held = by_file_.find({mapped.device, mapped.inode}); held != by_file_.end()) {
            State& state = modules_[held->second - 1];
            FileStatus facts;
            if (!state.changed && System::current().status_of(state.file.get(), facts) == 0 &&
                key_of(facts) == state.file_key)
                return held->second;
        }
    auto candidate = find_candidate(mapped);
    return candidate ? of_candidate(mapped, *std::move(candidate)) : of_unreadable(mapped, candidate.error());
}

ModuleHandle ModuleCache::of_candidate(const MappedFile& mapped, Candidate candidate) {
    if (candidate.known != 0) return candidate.known;
    if (!candidate.is_elf && (mapped.deleted || mapped.path.starts_with("/memfd:"))) return 0;
    const std::string& build_id = mapped.build_id.empty() ? candidate.build_id : mapped.build_id;
    State state;
    state.info = {wire::ModuleKind::file, mapped.path,           build_id, candidate.key.device, candidate.key.inode,
                  candidate.key.size,     candidate.key.mtime_ns};
    state.executable = std::move(candidate.executable);
    state.others = std::move(candidate.others);
    state.readable = candidate.is_elf;
    state.file = std::move(candidate.file);
    state.file_key = candidate.key;
    if (state.file) ++kept_files_;

    ModuleHandle handle = 0;
    const auto known = build_id.empty() ? by_build_id_.end() : by_build_id_.find(build_id);
    if (known != by_build_id_.end()) {
        handle = known->second;
        State& old = modules_[handle - 1];
        if (!old.readable && !old.offsets_given) old = std::move(state);
    } else {
        handle = add(std::move(state));
        if (!build_id.empty() && handle != 0) by_build_id_.emplace(build_id, handle);
    }
    if (by_file_.size() > max_modules) by_file_.clear();
    by_file_.emplace(candidate.key, handle);
    if (handle != 0 && modules_[handle - 1].file && modules_[handle - 1].file_key == candidate.key)
        by_file_.emplace(FileKey{candidate.key.device, candidate.key.inode}, handle);
    return handle;
}

ModuleHandle ModuleCache::of_unreadable(const MappedFile& mapped, const Error& error) {
    auto& index = mapped.build_id.empty() ? unreadable_by_path_ : by_build_id_;
    const std::string key =
        mapped.build_id.empty() ? fmt::format("{}:{}:{}", mapped.device, mapped.inode, mapped.path) : mapped.build_id;
    if (const auto known = index.find(key); known != index.end()) return known->second;
    State state;
    state.info.path = mapped.path;
    state.info.build_id = mapped.build_id;
    state.info.device = mapped.device;
    state.info.inode = mapped.inode;
    const ModuleHandle handle = add(std::move(state));
    if (handle != 0) {
        index.emplace(key, handle);
        give_notice(mapped, error);
    }
    return handle;
}

void ModuleCache::give_notice(const MappedFile& mapped, const Error& error) {
    if (notices_given_ >= max_notices) return;
    ++notices_given_;
    std::string remedy;
    if (error.code == ErrorCode::permission)
        remedy = "setcap cap_perfmon,cap_sys_ptrace,cap_checkpoint_restore+ep flamewire-agent";
    notices_.push_back(
        {"module-unreadable",
         fmt::format("{} cannot be read ({}): its addresses are shown as file offsets", mapped.path, error.message),
         std::move(remedy)});
}

ModuleHandle ModuleCache::of_vdso(std::uint32_t pid, std::uint64_t start, std::uint64_t end) {
    if (!own_vdso_read_) {
        own_vdso_read_ = true;
        own_vdso_ = System::current().input(inputs::own_vdso, own_vdso_image().value_or(std::string()));
    }
    // There is one image per word size and kernel; the address reveals the word size.
    const bool same_word_size = (start >> 32 != 0) == (System::current().constant(Constant::word_bytes) == 8);
    std::string image;
    if (same_word_size && own_vdso_.size() == end - start)
        image = own_vdso_;
    else
        image = read_vdso_image(proc_root_, pid, start, end).value_or(std::string());

    State state;
    state.info.kind = wire::ModuleKind::vdso;
    state.info.path = "[vdso]";
    state.info.size = image.size();
    const elf::ByteSource source = elf::source_of_bytes(as_bytes_view(image));
    if (const auto header = elf::read_header(source)) {
        state.info.build_id = elf::read_build_id(source, *header).value_or(std::string());
        state.executable = load_segments(*header, true);
        state.readable = true;
    }
    state.image = std::move(image);
    const std::string key = fmt::format("[vdso]{}{}", state.image.size(), state.info.build_id);
    if (const auto known = by_build_id_.find(key); known != by_build_id_.end()) return known->second;
    const ModuleHandle handle = add(std::move(state));
    if (handle != 0) by_build_id_.emplace(key, handle);
    return handle;
}

ModuleHandle ModuleCache::jit_code(const ProcessInfo& process) {
    State state;
    state.info.kind = wire::ModuleKind::jit;
    state.info.path = fmt::format("[jit] {} {}", process.comm, process.pid);
    // The fields distinguish it from other processes and count the restarts.
    state.info.device = process.start_time_ns;
    state.info.inode = ++jit_modules_;
    return add(std::move(state));
}

ModuleHandle ModuleCache::kernel(const std::string& build_id) {
    if (kernel_ == 0) {
        State state;
        state.info.kind = wire::ModuleKind::kernel;
        state.info.path = "[kernel]";
        state.info.build_id = build_id;
        kernel_ = add(std::move(state));
    }
    return kernel_;
}

std::uint64_t ModuleCache::address_of(ModuleHandle module, std::uint64_t file_offset) {
    if (module == 0 || module > modules_.size()) return file_offset;
    State& state = modules_[module - 1];
    if (state.readable) {
        if (const auto address = elf::vaddr_of_offset(state.executable, file_offset, page_size_)) return *address;
        if (const auto address = elf::vaddr_of_offset(state.others, file_offset, page_size_)) return *address;
    } else {
        state.offsets_given = true;
    }
    return file_offset;
}

unwind::CodePiece ModuleCache::piece_at(const process::Mapping& mapping, std::uint64_t address) {
    unwind::CodePiece piece{mapping.start, mapping.end, mapping.module, 0};
    if (mapping.module == 0 || mapping.module > modules_.size()) return piece;
    const std::uint64_t offset = mapping.file_offset + (address - mapping.start);
    piece.bias = address - address_of(mapping.module, offset);
    // Usually one segment covers the whole mapping.
    const std::vector<elf::Segment>& code = modules_[mapping.module - 1].executable;
    const std::uint64_t mask = ~(page_size_ - 1);
    const std::uint64_t end_offset = mapping.file_offset + (mapping.end - mapping.start);
    if (code.size() == 1 && mapping.file_offset >= (code[0].offset & mask) &&
        end_offset <= ((code[0].offset + code[0].file_size + page_size_ - 1) & mask))
        return piece;
    // Linkers also place several segments into one mapping, even into one page. Then only the segment's own bytes are
    // certain.
    piece.start = address;
    piece.end = address + 1;
    for (const elf::Segment& segment : code) {
        if (offset < segment.offset || offset - segment.offset >= segment.file_size) continue;
        piece.start = address - std::min(offset - segment.offset, address - mapping.start);
        piece.end = std::min(mapping.end, address + (segment.file_size - (offset - segment.offset)));
        break;
    }
    return piece;
}

Result<elf::ByteSource> ModuleCache::open_file(ModuleHandle module) {
    if (module == 0 || module > modules_.size()) return fail(ErrorCode::not_found, "no such module");
    const State& state = modules_[module - 1];
    if (!state.image.empty())
        return [image = std::make_shared<const std::string>(state.image)](std::uint64_t offset,
                                                                          std::size_t size) -> Result<std::string> {
            return elf::source_of_bytes(as_bytes_view(*image))(offset, size);
        };
    if (!state.file || state.changed) return fail(ErrorCode::not_found, state.info.path + " is not open");
    return [this, module](std::uint64_t offset, std::size_t size) { return read_kept(module, offset, size); };
}

Result<UniqueFd> ModuleCache::duplicate_file(const FileIdentity& identity) {
    const auto same = [&](const State& state) {
        const ModuleInfo& info = state.info;
        if (info.kind != wire::ModuleKind::file) return false;
        if (!identity.build_id.empty()) return info.build_id == identity.build_id;
        return info.build_id.empty() && info.path == identity.path && info.size == identity.size &&
               info.mtime_ns == identity.mtime_ns;
    };
    const auto found = std::find_if(modules_.begin(), modules_.end(), same);
    if (found == modules_.end()) return fail(ErrorCode::not_found, "this recording has no such module");
    if (!found->file) return fail(ErrorCode::not_found, found->info.path + " cannot be opened on the target");
    if (found->changed || !unchanged(*found))
        return fail(ErrorCode::closed, found->info.path + " was changed since it was mapped: restart the program");
    UniqueFd copy(::fcntl(found->file.get(), F_DUPFD_CLOEXEC, 0));
    if (!copy) return fail_errno("dup", errno);
    return copy;
}

// Overwriting a mapped file in place changes its bytes: data from before and after do not match. If the new content has
// the same build-id, the module is still the same.
bool ModuleCache::unchanged(State& state) {
    FileStatus facts;
    if (System::current().status_of(state.file.get(), facts) != 0) return false;
    const FileKey now = key_of(facts);
    if (now == state.file_key) return true;
    const elf::ByteSource source = elf::source_of_fd(state.file.get());
    const auto header = elf::read_header(source);
    const auto build_id = header ? elf::read_build_id(source, *header) : Result<std::string>(std::string());
    if (state.info.build_id.empty() || !build_id || *build_id != state.info.build_id) return false;
    state.file_key = now;
    return true;
}

Result<std::string> ModuleCache::read_kept(ModuleHandle module, std::uint64_t offset, std::size_t size) {
    State& state = modules_[module - 1];
    if (!state.changed && !unchanged(state)) {
        state.changed = true;
        notices_.push_back(
            {"module-changed",
             fmt::format("{} was overwritten while it runs: its unwind tables are no longer used", state.info.path),
             "replace files by renaming a new one over the old, then restart the program"});
    }
    if (state.changed) return fail(ErrorCode::closed, state.info.path + " was changed in place");
    return read_range(state.file.get(), offset, size);
}

const ModuleInfo& ModuleCache::info(ModuleHandle module) const {
    return module == 0 || module > modules_.size() ? unknown_module : modules_[module - 1].info;
}

Bytes ModuleCache::vdso_image(ModuleHandle module) const {
    if (module == 0 || module > modules_.size()) return {};
    return as_bytes_view(modules_[module - 1].image);
}

std::vector<wire::Notice> ModuleCache::take_notices() { return std::exchange(notices_, {}); }

}  // namespace flamewire::agent
