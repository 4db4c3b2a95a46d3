#include "server/source/browse.h"

#include <climits>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>

#include "base/fd.h"
#include "base/hex.h"
#include "base/json_writer.h"
#include "base/rooted_path.h"
#include "base/utf8.h"
#include "elf/elf_file.h"

namespace flamewire::server {
namespace {

// Names read from one folder. In a larger folder a person needs `find` anyway.
constexpr std::size_t max_names = 50'000;
// ELF headers read for one listing.
constexpr std::size_t max_elf_files = 300;
constexpr std::size_t smallest_elf_bytes = 52;

bool is_inside(std::string_view path, std::string_view root) {
    if (root == "/") return path.starts_with('/');
    return path == root || (path.starts_with(root) && path.substr(root.size()).starts_with('/'));
}

bool is_inside(const std::vector<BrowseRoot>& roots, std::string_view path) {
    return std::ranges::any_of(roots, [&](const BrowseRoot& root) { return is_inside(path, root.real); });
}

// The kernel's path for an open descriptor. Empty if readlink fails or the path is too long.
std::string real_path(int fd) {
    std::array<char, PATH_MAX> target{};
    const ssize_t size = ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), target.data(), target.size());
    return size <= 0 || static_cast<std::size_t>(size) == target.size()
               ? std::string{}
               : std::string(target.data(), static_cast<std::size_t>(size));
}

struct Opened {
    UniqueFd fd;  // O_PATH
    std::string path;
    struct stat about{};
};

std::unexpected<Error> outside(std::string_view path, const std::vector<BrowseRoot>& roots) {
    std::string names;
    for (const BrowseRoot& root : roots) names += (names.empty() ? "" : ", ") + root.given;
    return fail(ErrorCode::permission, fmt::format("{:.300} is outside of the folders that this server shows ({}): "
                                                   "start it with --browse-root to show more",
                                                   path, names.empty() ? "none" : names));
}

// O_PATH does not open the file itself: it starts no device, blocks on no pipe and needs no permission on the file.
Result<Opened> open_path(const std::string& path) {
    Opened opened;
    opened.fd.reset(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!opened.fd) return fail_errno(fmt::format("cannot check {:.300}", path), errno);
    if (::fstat(opened.fd.get(), &opened.about) != 0)
        return fail_errno(fmt::format("cannot check {:.300}", path), errno);
    opened.path = real_path(opened.fd.get());
    return opened;
}

// Opens a path that is lexically inside `root`. It first follows this machine's links. If that leads out of the roots,
// it resolves links within the root, as in a copy of another machine's files.
Result<Opened> open_inside(const std::vector<BrowseRoot>& roots, const BrowseRoot& root, const std::string& path) {
    auto here = open_path(path);
    if (here && is_inside(roots, here->path)) return here;
    std::string_view rest = path;
    rest.remove_prefix(is_inside(path, root.given) ? root.given.size() : root.real.size());
    const std::string there = path_in_root(root.real, rest);
    auto copied = open_path(there);
    if (!there.empty() && copied && is_inside(roots, copied->path)) return copied;
    if (here) return outside(path, roots);
    return here;
}

bool holds(std::string_view name, std::string_view part) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return std::search(name.begin(), name.end(), part.begin(), part.end(),
                       [&](char a, char b) { return lower(a) == lower(b); }) != name.end();
}

EntryKind kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return EntryKind::folder;
    return S_ISREG(mode) ? EntryKind::file : EntryKind::other;
}

BrowseEntry entry_of(const std::vector<BrowseRoot>& roots, int folder, const std::string& folder_path,
                     const char* name) {
    BrowseEntry entry{.name = name};
    struct stat about{};
    if (::fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0) return entry;
    if (S_ISLNK(about.st_mode)) {
        entry.link = true;
        const auto root = std::ranges::find_if(
            roots, [&](const BrowseRoot& candidate) { return is_inside(folder_path, candidate.real); });
        const auto target = open_inside(roots, *root, folder_path + "/" + name);
        entry.outside = !target;
        if (!target) return entry;
        about = target->about;
    }
    entry.kind = kind_of(about.st_mode);
    if (entry.kind == EntryKind::file) entry.size_bytes = static_cast<std::uint64_t>(about.st_size);
    return entry;
}

std::optional<ElfSummary> summarize(const std::vector<BrowseRoot>& roots, const std::string& folder_path,
                                    const BrowseEntry& entry) {
    const auto root = std::ranges::find_if(
        roots, [&](const BrowseRoot& candidate) { return is_inside(folder_path, candidate.real); });
    const auto file = open_inside(roots, *root, folder_path + "/" + entry.name);
    if (!file || !S_ISREG(file->about.st_mode)) return {};
    // Open the file that was checked, by its descriptor. It is a regular file, so open() does not block.
    const UniqueFd fd(::open(fmt::format("/proc/self/fd/{}", file->fd.get()).c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return {};
    const elf::ByteSource source = elf::source_of_fd(fd.get());
    const auto header = elf::read_header(source);
    if (!header) return {};
    ElfSummary summary;
    summary.arch = machine_name(header->machine, header->is_64);
    summary.build_id = to_hex(elf::read_build_id(source, *header).value_or(std::string{}));
    if (const auto sections = elf::read_sections(source, *header))
        for (const elf::Section& section : *sections) {
            summary.symbols = summary.symbols || section.name == ".symtab";
            summary.debug_info = summary.debug_info || section.name == ".debug_info" || section.name == ".zdebug_info";
        }
    return summary;
}

Listing list_roots(const std::vector<BrowseRoot>& roots, std::string_view find) {
    Listing listing;
    std::set<std::string_view> seen;
    for (const BrowseRoot& root : roots)
        if (holds(root.real, find) && seen.insert(root.real).second)
            listing.entries.push_back({.name = root.real, .kind = EntryKind::folder});
    return listing;
}

}  // namespace

std::string machine_name(std::uint16_t machine, bool is_64) {
    switch (machine) {
        case 3: return "i386";
        case 8: return is_64 ? "mips64" : "mips";
        case 20: return "ppc";
        case 21: return "ppc64";
        case 22: return "s390x";
        case 40: return "arm";
        case 62: return is_64 ? "x86_64" : "x32";
        case 183: return "aarch64";
        case 243: return is_64 ? "riscv64" : "riscv32";
        case 258: return is_64 ? "loongarch64" : "loongarch32";
        default: return fmt::format("machine {}", machine);
    }
}

std::vector<BrowseRoot> browse_roots(const std::vector<std::string>& folders) {
    std::vector<BrowseRoot> roots;
    for (const std::string& folder : folders) {
        std::error_code error;
        const auto real = std::filesystem::canonical(folder, error);
        if (error || !std::filesystem::is_directory(real, error)) continue;
        std::string given = std::filesystem::absolute(folder, error).lexically_normal().string();
        while (given.size() > 1 && given.ends_with('/')) given.pop_back();
        roots.push_back({std::move(given), real.string()});
    }
    std::vector<BrowseRoot> outermost;
    for (std::size_t i = 0; i < roots.size(); ++i) {
        bool covered = false;
        for (std::size_t k = 0; k < roots.size(); ++k)
            covered = covered ||
                      (k != i && is_inside(roots[i].real, roots[k].real) && (roots[i].real != roots[k].real || k < i));
        // Keep a root that was given under another name: people recognize it by that name.
        if (!covered || roots[i].given != roots[i].real) outermost.push_back(roots[i]);
    }
    return outermost;
}

Result<bool> check_inside(const std::vector<BrowseRoot>& roots, const std::string& path) {
    std::error_code error;
    const auto real = std::filesystem::weakly_canonical(path, error);
    if (error || !is_inside(roots, real.string())) return outside(path, roots);
    return true;
}

Result<Listing> browse(const std::vector<BrowseRoot>& roots, std::string_view path, std::string_view find) {
    if (path.empty()) return list_roots(roots, find);
    if (path.size() >= PATH_MAX) return fail(ErrorCode::invalid, "the path is longer than the system allows");
    if (!path.starts_with('/')) return fail(ErrorCode::invalid, fmt::format("{:.300} is not an absolute path", path));
    std::string wanted = std::filesystem::path(path).lexically_normal().string();
    while (wanted.size() > 1 && wanted.ends_with('/')) wanted.pop_back();
    const auto root = std::ranges::find_if(roots, [&](const BrowseRoot& candidate) {
        return is_inside(wanted, candidate.given) || is_inside(wanted, candidate.real);
    });
    if (root == roots.end()) return outside(path, roots);
    Opened folder = TRY(open_inside(roots, *root, wanted));
    if (!S_ISDIR(folder.about.st_mode)) {
        folder = TRY(open_path(std::filesystem::path(folder.path).parent_path().string()));
        if (!is_inside(roots, folder.path)) return outside(path, roots);
    }

    const int fd = ::openat(folder.fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(fd < 0 ? nullptr : ::fdopendir(fd), &::closedir);
    if (!stream) {
        const int why = errno;
        if (fd >= 0) ::close(fd);
        if (why == EACCES)
            return fail(ErrorCode::permission,
                        fmt::format("{:.300} may not be read by the user that the server runs as", folder.path));
        return fail_errno(fmt::format("cannot list {:.300}", folder.path), why);
    }
    Listing listing;
    listing.path = folder.path;
    const std::string parent = std::filesystem::path(folder.path).parent_path().string();
    if (parent != folder.path && is_inside(roots, parent)) listing.parent = parent;
    for (std::size_t names = 0; const dirent* one = ::readdir(stream.get());) {
        const std::string_view name = one->d_name;
        if (name == "." || name == ".." || !holds(name, find)) continue;
        if (++names > max_names || !is_valid_utf8(name)) {
            ++listing.left_out;
            continue;
        }
        listing.entries.push_back(entry_of(roots, folder.fd.get(), folder.path, one->d_name));
    }
    std::ranges::sort(listing.entries, [](const BrowseEntry& a, const BrowseEntry& b) {
        const bool a_folder = a.kind == EntryKind::folder, b_folder = b.kind == EntryKind::folder;
        return a_folder != b_folder ? a_folder : a.name < b.name;
    });
    if (listing.entries.size() > max_browse_entries) {
        listing.left_out += listing.entries.size() - max_browse_entries;
        listing.entries.resize(max_browse_entries);
    }
    std::size_t read = 0;
    for (BrowseEntry& entry : listing.entries)
        if (entry.kind == EntryKind::file && entry.size_bytes >= smallest_elf_bytes && read < max_elf_files) {
            ++read;
            entry.elf = summarize(roots, folder.path, entry);
        }
    return listing;
}

}  // namespace flamewire::server
