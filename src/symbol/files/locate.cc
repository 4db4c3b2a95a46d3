#include "symbol/files/locate.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <algorithm>

#include "base/file.h"
#include "base/hex.h"
#include "base/path.h"
#include "base/rooted_path.h"
#include "symbol/files/debug_link.h"
#include "symbol/files/debuginfod.h"
#include "symbol/files/fetched_file.h"

namespace flamewire::symbol {
namespace {

std::string short_id(const std::string& build_id) { return build_id.empty() ? "none" : to_hex(build_id).substr(0, 16); }

struct Candidate {
    std::string build_id;
    std::uint64_t size = 0;
};

// Identifies the ELF file at `path`; nullopt if there is none.
std::optional<Candidate> identify(const std::string& path) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    const auto fd = open_read(path);
    if (!fd) return std::nullopt;
    const elf::ByteSource source = elf::source_of_fd(fd->get());
    const auto header = elf::read_header(source);
    if (!header) return std::nullopt;
    return Candidate{elf::read_build_id(source, *header).value_or(std::string()),
                     static_cast<std::uint64_t>(status.st_size)};
}

class Search {
public:
    Search(const ModuleIdentity& module, const Config& config)
        : module_(module), config_(config), path_(without_deleted_mark(module.path)) {}

    ModuleFiles run() {
        try_uploaded();
        try_given_binaries();
        if (module_.kind == ModuleKind::kernel)
            try_kernel_places();
        else
            try_paths();
        try_fetched();
        if (!satisfied()) try_build_id_tree();
        if (!satisfied()) try_debug_link();
        if (!satisfied()) try_debug_names();
        if (!satisfied()) try_debuginfod();
        add_alternate();
        find_code();
        describe();
        return std::move(files_);
    }

private:
    [[nodiscard]] bool satisfied() const { return files_.report.quality == Quality::debug_info; }

    // The file that a person uploaded for this module.
    void try_uploaded() {
        if (config_.upload_directory.empty()) return;
        place_ = FoundBy::uploaded;
        const std::string path = config_.upload_directory + "/" + fetched_name(module_);
        // If there is no upload, do not list it among the tried places.
        if (const auto found = identify(path)) offer(path, *found, true);
    }

    void try_given_binaries() {
        place_ = FoundBy::given;
        for (const std::string& path : config_.binaries) {
            if (satisfied()) return;
            const bool same_name = file_name(path) == file_name(path_);
            const auto found = identify(path);
            if (!found && same_name) note(path);
            if (!found) continue;
            const bool same_build = !module_.build_id.empty() && found->build_id == module_.build_id;
            if (same_build || (same_name && module_.kind == ModuleKind::file)) offer(path, *found, true);
        }
    }

    // Configured places come before the plain path: without a build-id, what a person configured is better evidence.
    void try_paths() {
        for (const auto& [place, path] : paths()) {
            place_ = place;
            try_path(path);
        }
    }

    [[nodiscard]] std::vector<std::pair<FoundBy, std::string>> paths() const {
        std::vector<std::pair<FoundBy, std::string>> paths;
        if (path_.empty() || path_[0] != '/') return paths;
        for (const PathMap& map : config_.path_maps)
            if (std::string mapped = apply_path_map(map, path_); !mapped.empty())
                paths.emplace_back(FoundBy::path_map, std::move(mapped));
        if (!config_.sysroot.empty()) {
            paths.emplace_back(FoundBy::sysroot, config_.sysroot + path_);
            // With merged and with unmerged /usr.
            paths.emplace_back(FoundBy::sysroot,
                               config_.sysroot + (path_.starts_with("/usr/") ? path_.substr(4) : "/usr" + path_));
            for (const char* place : {"/lib/", "/usr/lib/", "/bin/", "/usr/bin/", "/"})
                paths.emplace_back(FoundBy::sysroot, config_.sysroot + place + file_name(path_));
        }
        paths.emplace_back(FoundBy::target_path, path_);
        return paths;
    }

    // The file with the best names may have no code: pure debug info, or a file from an agent. The code is then in the
    // file that the target runs, stripped or not. Without a build-id nothing proves that it is the same build.
    void find_code() {
        if (files_.main && !files_.fetched && files_.main->holds_code()) {
            files_.code_file = files_.report.file;
            return;
        }
        const std::string& id = module_.build_id.empty() ? main_build_id_ : module_.build_id;
        if (id.empty()) return;
        std::vector<std::string> places = config_.binaries;
        for (auto& [place, path] : paths()) places.push_back(std::move(path));
        if (!config_.debuginfod_directory.empty())
            places.push_back(debuginfod_executable(config_.debuginfod_directory, id));
        for (const std::string& place : places) {
            const std::string path = on_disk(place);
            const auto found = identify(path);
            if (!found || found->build_id != id) continue;
            auto file = ObjectFile::open(path);
            if (!file || !file->holds_code()) continue;
            files_.code.emplace(std::move(*file));
            files_.code_file = path;
            return;
        }
    }

    // The file from the agent, used only if there are no names or only exported ones.
    void try_fetched() {
        if (config_.module_directory.empty() || files_.report.quality >= Quality::symbols) return;
        if (module_.kind != ModuleKind::file) return;
        place_ = FoundBy::agent;
        const std::string path = fetched_path(config_.module_directory, module_);
        if (path.empty()) return;
        try_path(path);
        files_.fetched = files_.report.file == path;
        // Marks the file as recently used, so that it is deleted last.
        if (files_.fetched) (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
    }

    void try_kernel_places() {
        place_ = FoundBy::kernel_place;
        struct utsname name{};
        if (::uname(&name) != 0 || module_.build_id.empty()) return;
        for (const std::string& root : {config_.sysroot, std::string()}) {
            for (const std::string& debug : config_.debug_directories) {
                try_path(fmt::format("{}{}/boot/vmlinux-{}", root, debug, name.release));
                try_path(fmt::format("{}{}/lib/modules/{}/vmlinux", root, debug, name.release));
            }
            try_path(fmt::format("{}/boot/vmlinux-{}", root, name.release));
            if (root.empty()) break;
        }
    }

    void try_path(const std::string& path) {
        if (satisfied() || !note(path)) return;
        const std::string file = on_disk(path);
        if (const auto found = identify(file)) offer(file, *found, false);
    }

    // Symbolic links in the sysroot are resolved against the target's root, not this machine's.
    [[nodiscard]] std::string on_disk(const std::string& path) const {
        const std::string& root = config_.sysroot;
        if (root.empty() || !path.starts_with(root)) return path;
        return path_in_root(root, std::string_view(path).substr(root.size()));
    }

    // Debug files named by build-id: DIR/.build-id/ab/cdef….debug; without .debug it is the module itself.
    void try_build_id_tree() {
        const std::string& id = module_.build_id.empty() ? main_build_id_ : module_.build_id;
        if (id.size() < 2) return;
        place_ = FoundBy::debug_tree;
        const std::string hex = to_hex(id);
        for (const std::string& place : debug_places())
            for (const char* suffix : {".debug", ""}) {
                const std::string path =
                    fmt::format("{}/.build-id/{}/{}{}", place, hex.substr(0, 2), hex.substr(2), suffix);
                if (satisfied() || !note(path)) continue;
                offer_debug(on_disk(path), id);
            }
    }

    // Like gdb: beside the module, in its .debug subdirectory, and in the debug directories under the module's own
    // directory.
    void try_debug_link() {
        if (!files_.main) return;
        const auto link = debug_link(*files_.main);
        if (!link) return;
        place_ = FoundBy::debug_link;
        const std::string beside = folder_of(files_.report.file);
        std::vector<std::string> places = {beside, beside + "/.debug"};
        // For a file of the sysroot, use its directory on the target.
        const bool of_sysroot = !config_.sysroot.empty() && beside.starts_with(config_.sysroot);
        for (const std::string& place : debug_places()) {
            places.push_back(place + (of_sysroot ? beside.substr(config_.sysroot.size()) : beside));
            if (path_.starts_with('/')) places.push_back(place + folder_of(path_));
        }
        for (const std::string& place : places) {
            const std::string path = on_disk(place + "/" + link->name);
            if (satisfied() || path == files_.report.file || !note(path)) continue;
            const auto found = identify(path);
            if (!found) continue;
            const bool same_build = !main_build_id_.empty() && found->build_id == main_build_id_;
            if (same_build || checksum_of(path) == link->checksum)
                use_debug(path);
            else
                refuse(fmt::format("{} is not the debug info of {}: its checksum differs", path, files_.report.file));
        }
    }

    // Where SDKs store debug files if there is no module with a link to them (a root file system with only debug
    // files). Only the build-id shows that it is the right file.
    void try_debug_names() {
        if (module_.build_id.empty() || module_.kind != ModuleKind::file || !path_.starts_with('/')) return;
        place_ = FoundBy::debug_name;
        const std::string name = file_name(path_);
        std::vector<std::string> places = {folder_of(path_) + "/.debug/" + name};
        if (!config_.sysroot.empty()) places.push_back(config_.sysroot + places.front());
        for (const std::string& place : debug_places()) {
            places.push_back(place + path_ + ".debug");
            places.push_back(place + path_);
        }
        for (const std::string& place : places)
            if (!satisfied() && note(place)) offer_debug(on_disk(place), module_.build_id);
    }

    // A file that a server sent earlier. Requests to servers are made elsewhere, because they take time.
    void try_debuginfod() {
        const std::string& id = module_.build_id.empty() ? main_build_id_ : module_.build_id;
        if (config_.debuginfod_directory.empty() || id.empty()) return;
        place_ = FoundBy::debuginfod;
        // If there are no such files, do not list them among the tried places.
        const std::string program = debuginfod_executable(config_.debuginfod_directory, id);
        if (const auto found = identify(program)) offer(program, *found, false);
        if (files_.report.file == program) files_.fetched = false;
        const std::string path = debuginfod_file(config_.debuginfod_directory, id);
        if (identify(path)) {
            (void)note(path);
            offer_debug(path, id);
        }
        // Marks the files as recently used, so that they are deleted last.
        for (const std::string& used : {program, path})
            if (files_.report.file == used || files_.report.debug_file == used)
                (void)::utimensat(AT_FDCWD, used.c_str(), nullptr, 0);
    }

    // The common debug info of several files, if that also came from a server.
    void add_alternate() {
        ObjectFile* const file = files_.debug ? &*files_.debug : files_.main ? &*files_.main : nullptr;
        if (config_.debuginfod_directory.empty() || file == nullptr || !satisfied()) return;
        const std::string id = file->alternate_build_id();
        if (id.empty()) return;
        const std::string path = debuginfod_file(config_.debuginfod_directory, id);
        const auto found = identify(path);
        if (!found || found->build_id != id) return;
        auto common = ObjectFile::open(path);
        if (common)
            file->set_alternate(std::move(*common));
        else
            files_.report.problem = "some names are missing: " + common.error().message;
    }

    [[nodiscard]] std::vector<std::string> debug_places() const {
        std::vector<std::string> places;
        if (!config_.sysroot.empty())
            for (const std::string& place : config_.debug_directories) places.push_back(config_.sysroot + place);
        places.insert(places.end(), config_.debug_directories.begin(), config_.debug_directories.end());
        return places;
    }

    // Records the place. Returns false if it was checked before.
    bool note(const std::string& path) {
        std::vector<std::string>& tried = files_.report.tried;
        if (std::find(tried.begin(), tried.end(), path) != tried.end()) return false;
        tried.push_back(path);
        return true;
    }

    void offer(const std::string& path, const Candidate& found, bool given) {
        (void)note(path);
        if (!module_.build_id.empty() && found.build_id != module_.build_id)
            return refuse_build(fmt::format("build-id mismatch: {} has {}, the target runs {}", path,
                                            short_id(found.build_id), short_id(module_.build_id)));
        // A given binary may be the unstripped, larger version of the target's file.
        if (module_.build_id.empty() && !given && module_.size != 0 && found.size != module_.size)
            return refuse_build(
                fmt::format("size mismatch: {} has {} bytes, the target's file {}", path, found.size, module_.size));
        auto file = ObjectFile::open(path);
        if (!file) return refuse(file.error());
        const Quality quality = file->quality();
        if (files_.main && quality <= files_.report.quality) return;
        files_.main.emplace(std::move(*file));
        files_.report.quality = quality;
        files_.report.file = path;
        files_.report.found = place_;
        main_build_id_ = found.build_id;
    }

    void offer_debug(const std::string& path, const std::string& build_id) {
        const auto found = identify(path);
        if (!found) return;
        if (found->build_id == build_id) return use_debug(path);
        refuse_build(fmt::format("build-id mismatch: the debug file {} has {}, the target runs {}", path,
                                 short_id(found->build_id), short_id(build_id)));
    }

    void use_debug(const std::string& path) {
        auto file = ObjectFile::open(path);
        if (!file) return refuse(file.error());
        if (file->quality() <= files_.report.quality) return;
        files_.report.quality = file->quality();
        files_.report.debug_file = path;
        files_.report.debug_found = place_;
        files_.debug.emplace(std::move(*file));
    }

    void refuse(std::string why) {
        if (refused_.empty()) refused_ = std::move(why);
    }
    void refuse(Error error) {
        if (refused_.empty() && error.code == ErrorCode::too_large)
            refused_remedy_ =
                "if it is yours, run `objcopy --decompress-debug-sections` on it and give that: --binary FILE";
        refuse(std::move(error.message));
    }
    void refuse_build(std::string why) {
        files_.report.mismatch = true;
        refuse(std::move(why));
    }

    void describe() {
        ModuleReport& report = files_.report;
        if (satisfied()) return;
        const std::string name = module_.kind == ModuleKind::kernel ? "the kernel" : file_name(path_);
        if (!refused_.empty()) {
            report.problem = refused_;
            report.remedy = refused_remedy_;
        } else if (report.quality == Quality::none) {
            report.problem = fmt::format("no file for {} was found", path_.empty() ? name : path_);
            report.remedy = fmt::format("give it with --binary FILE, or its root file system with --sysroot DIR");
        } else {
            report.problem =
                fmt::format("{} has no debug info: names only, no lines and no inlined functions{}", report.file,
                            report.quality == Quality::dynamic_symbols ? ", and of exported functions only" : "");
            report.remedy = fmt::format(
                "build it with -g and give the unstripped file with --binary FILE, or install its debug symbols");
        }
    }

    const ModuleIdentity& module_;
    const Config& config_;
    std::string path_;
    std::string main_build_id_;
    std::string refused_;  // the first reason
    std::string refused_remedy_ =
        "give the unstripped file of exactly the build that runs on the target: --binary FILE";
    FoundBy place_ = FoundBy::nothing;  // the place being searched
    ModuleFiles files_;
};

}  // namespace

std::string apply_path_map(const PathMap& map, const std::string& path) {
    std::string from = map.from;
    while (from.size() > 1 && from.ends_with('/')) from.pop_back();
    if (from.empty() || !path.starts_with(from)) return {};
    if (from != "/" && path.size() > from.size() && path[from.size()] != '/') return {};
    std::string rest = path.substr(from == "/" ? 0 : from.size());
    std::string to = map.to;
    while (!rest.empty() && to.ends_with('/')) to.pop_back();
    return to + rest;
}

ModuleFiles locate(const ModuleIdentity& module, const Config& config) { return Search(module, config).run(); }

}  // namespace flamewire::symbol
