#include "server/source/source_lookup.h"

#include <fmt/format.h>
#include <system_error>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/rooted_path.h"

namespace flamewire::server {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t max_source_bytes = std::size_t{16} << 20;
constexpr std::size_t max_named_matches = 3;
constexpr std::chrono::seconds reindex_after{10};

// Components of a path from the last to the first, without "." and with ".." kept (it never matches a real component).
std::vector<std::string_view> trailing_components(std::string_view path) {
    std::vector<std::string_view> result;
    while (!path.empty()) {
        const std::size_t slash = path.rfind('/');
        const std::string_view part = slash == std::string_view::npos ? path : path.substr(slash + 1);
        path = slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
        if (!part.empty() && part != ".") result.push_back(part);
    }
    return result;
}

std::size_t common_suffix(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
    std::size_t count = 0;
    while (count < a.size() && count < b.size() && a[count] == b[count]) ++count;
    return count;
}

bool inside(const fs::path& file, const fs::path& root) {
    const auto [root_end, file_at] = std::mismatch(root.begin(), root.end(), file.begin(), file.end());
    return root_end == root.end() && file_at != file.end();
}

fs::path real_path(const fs::path& path) {
    std::error_code error;
    fs::path result = fs::canonical(path, error);
    return error ? fs::path{} : result;
}

bool is_hidden(const fs::path& file, const fs::path& root) {
    return std::ranges::any_of(file.lexically_relative(root),
                               [](const fs::path& part) { return part.string().starts_with('.'); });
}

// The real path of `candidate` if it is a regular file below the real `root` and may be shown. Otherwise empty.
std::string served_path(const fs::path& candidate, const fs::path& root, const SourceConfig& config) {
    const fs::path real_root = real_path(root);
    const fs::path real_file = real_path(candidate);
    std::error_code error;
    if (real_root.empty() || real_file.empty() || !inside(real_file, real_root)) return {};
    if (is_hidden(real_file, real_root)) return {};
    if (!config.private_dir.empty() && inside(real_file, real_path(config.private_dir))) return {};
    return fs::is_regular_file(real_file, error) ? real_file.string() : std::string{};
}

// Sets `rest` to what follows `from` in `file`. True if `from` is a prefix that ends at a component boundary.
bool strip_prefix(std::string_view file, std::string_view from, std::string_view& rest) {
    while (from.size() > 1 && from.back() == '/') from.remove_suffix(1);
    if (from.empty() || !file.starts_with(from)) return false;
    rest = file.substr(from.size());
    if (from == "/" || rest.empty()) return true;
    if (rest.front() != '/') return false;
    rest.remove_prefix(1);
    return true;
}

std::string_view without_leading_slashes(std::string_view path) {
    while (path.starts_with('/')) path.remove_prefix(1);
    return path;
}

// A FROM=TO that maps the directory of `file` to the source directory.
std::string suggest(std::string_view file, const SourceConfig& config) {
    const std::size_t slash = file.rfind('/');
    if (!file.starts_with('/') || slash == 0 || config.source_dir.empty()) return {};
    const fs::path target = real_path(config.source_dir);
    if (target.empty()) return {};
    return fmt::format("--path-map {}={}", file.substr(0, slash), target.string());
}

// The folder of `file` on this machine, if only the roots prevent showing it.
std::string outside_roots(const std::string& file, const SourceConfig& config) {
    if (!file.starts_with('/') || ::access(file.c_str(), R_OK) != 0) return {};
    const std::string folder = fs::path(file).parent_path().lexically_normal().string();
    return folder == "/" || served_path(file, folder, config).empty() ? std::string{} : folder;
}

bool skipped_directory(const fs::path& path) {
    const std::string name = path.filename().string();
    return name.starts_with('.') || path == "/proc" || path == "/sys" || path == "/dev" || path == "/run";
}

}  // namespace

SourceIndex SourceIndex::build(const std::string& root) {
    SourceIndex index;
    std::error_code error;
    fs::recursive_directory_iterator walk(root, fs::directory_options::skip_permission_denied, error);
    const fs::recursive_directory_iterator end;
    for (; !error && walk != end; walk.increment(error)) {
        const fs::directory_entry& entry = *walk;
        std::error_code ignored;
        if (entry.is_directory(ignored)) {
            if (skipped_directory(entry.path()) || walk.depth() > 64) walk.disable_recursion_pending();
            continue;
        }
        if (!entry.is_regular_file(ignored)) continue;
        if (index.size_ == max_files) {
            index.complete_ = false;
            break;
        }
        ++index.size_;
        index.by_file_name_[entry.path().filename().string()].push_back(entry.path().lexically_relative(root).string());
    }
    return index;
}

std::vector<std::string> SourceIndex::longest_suffix(std::string_view name) const {
    const auto wanted = trailing_components(name);
    if (wanted.empty()) return {};
    const auto found = by_file_name_.find(std::string(wanted.front()));
    if (found == by_file_name_.end()) return {};
    std::size_t longest = 0;
    std::vector<std::string> result;
    for (const std::string& path : found->second) {
        const std::size_t common = common_suffix(wanted, trailing_components(path));
        if (common > longest) result.clear();
        if (common >= longest) result.push_back(path);
        longest = std::max(longest, common);
    }
    std::sort(result.begin(), result.end());
    return result;
}

SourceLookup::SourceLookup(SourceConfig config) : config_(std::move(config)) {}

void SourceLookup::set_config(SourceConfig config) {
    const std::lock_guard lock(mutex_);
    config_ = std::move(config);
    indexed_root_.clear();
}

SourceConfig SourceLookup::config() const {
    const std::lock_guard lock(mutex_);
    return config_;
}

SourceMatch SourceLookup::find(std::string_view file) {
    SourceMatch match;
    if (file.empty() || file.find('\0') != std::string_view::npos) return match;
    const SourceConfig config = this->config();
    const auto attempt = [&](const fs::path& candidate, const fs::path& root) {
        match.tried.push_back(candidate.string());
        match.path = served_path(candidate, root, config);
        match.found = !match.path.empty();
        return match.found;
    };
    for (const auto& [from, to] : config.path_maps) {
        std::string_view rest;
        if (strip_prefix(file, from, rest) && attempt(fs::path(to) / without_leading_slashes(rest), to)) return match;
    }
    if (file.starts_with('/')) {
        std::vector<std::string> roots = {config.source_dir, config.sysroot};
        for (const auto& path_map : config.path_maps) roots.push_back(path_map.second);
        for (const std::string& root : roots) {
            match.path = root.empty() ? std::string{} : served_path(fs::path(file), root, config);
            match.found = !match.path.empty();
            if (match.found) break;
        }
        match.tried.emplace_back(file);
        if (match.found) return match;
    } else if (!config.source_dir.empty() && attempt(fs::path(config.source_dir) / file, config.source_dir)) {
        return match;
    }
    // Resolve links as the target does: a link to /usr/src stays inside the sysroot.
    if (!config.sysroot.empty()) {
        const std::string name = path_in_root(config.sysroot, file);
        if (!name.empty() && attempt(name, config.sysroot)) return match;
    }
    match.outside = outside_roots(std::string(file), config);
    if (!config.source_dir.empty()) find_by_suffix(file, config, match);
    return match;
}

void SourceLookup::find_by_suffix(std::string_view file, const SourceConfig& config, SourceMatch& match) {
    bool complete = true;
    const std::vector<std::string> candidates = suffix_matches(config.source_dir, file, complete);
    const auto components = trailing_components(file);
    match.tried.push_back(
        fmt::format("{}/**/{}", config.source_dir, components.empty() ? std::string_view{} : components.front()));
    for (const std::string& candidate : candidates) {
        match.path = served_path(fs::path(config.source_dir) / candidate, config.source_dir, config);
        match.found = !match.path.empty();
        if (match.found) break;
    }
    if (match.found && candidates.size() > 1) {
        match.note = fmt::format(
            "{} files below {} match this name equally well: {}{}; --path-map decides", candidates.size(),
            config.source_dir,
            fmt::join(candidates.begin(),
                      candidates.begin() + static_cast<std::ptrdiff_t>(std::min(candidates.size(), max_named_matches)),
                      ", "),
            candidates.size() > max_named_matches ? ", …" : "");
    } else if (!complete) {
        match.note = fmt::format("only the first {} files below {} are searched; a smaller --source-dir finds the rest",
                                 SourceIndex::max_files, config.source_dir);
    }
    if (match.found)
        match.outside.clear();
    else
        match.suggestion = suggest(file, config);
}

std::vector<std::string> SourceLookup::suffix_matches(const std::string& root, std::string_view file, bool& complete) {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    const auto rebuild = [&] {
        index_ = SourceIndex::build(root);
        indexed_root_ = root;
        indexed_at_ = now;
    };
    if (indexed_root_ != root) rebuild();
    auto matches = index_.longest_suffix(file);
    if (matches.empty() && now - indexed_at_ > reindex_after) {
        rebuild();
        matches = index_.longest_suffix(file);
    }
    complete = index_.complete();
    return matches;
}

Result<std::string> read_source(const std::string& path) {
    std::string text = TRY(read_file(path, max_source_bytes));
    if (text.find('\0') != std::string::npos) return fail(ErrorCode::invalid, path + " is not a text file");
    return text;
}

}  // namespace flamewire::server
