#include "symbol/files/debuginfod.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <tuple>

#include "base/fd.h"
#include "base/file.h"
#include "base/hex.h"
#include "elf/elf_file.h"
#include "symbol/files/object_file.h"

namespace flamewire::symbol {
namespace fs = std::filesystem;
namespace {

// The library functions in use.
struct Library {
    decltype(&::debuginfod_begin) begin = nullptr;
    decltype(&::debuginfod_end) end = nullptr;
    decltype(&::debuginfod_find_debuginfo) find_debuginfo = nullptr;
    decltype(&::debuginfod_find_executable) find_executable = nullptr;
    decltype(&::debuginfod_find_source) find_source = nullptr;
    decltype(&::debuginfod_set_progressfn) set_progressfn = nullptr;
    decltype(&::debuginfod_set_user_data) set_user_data = nullptr;
    decltype(&::debuginfod_get_user_data) get_user_data = nullptr;
    decltype(&::debuginfod_get_url) get_url = nullptr;
};
Library library;
std::string servers;  // as in the settings, for error messages

template <class Function>
bool find_function(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(handle, name));
    return function != nullptr;
}

bool load_library() {
    // Never unloaded: its threads, and those of libraries that it uses, may still exist at exit.
    void* const handle = ::dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_LOCAL);
    return handle != nullptr && find_function(handle, "debuginfod_begin", library.begin) &&
           find_function(handle, "debuginfod_end", library.end) &&
           find_function(handle, "debuginfod_find_debuginfo", library.find_debuginfo) &&
           find_function(handle, "debuginfod_find_executable", library.find_executable) &&
           find_function(handle, "debuginfod_find_source", library.find_source) &&
           find_function(handle, "debuginfod_set_progressfn", library.set_progressfn) &&
           find_function(handle, "debuginfod_set_user_data", library.set_user_data) &&
           find_function(handle, "debuginfod_get_user_data", library.get_user_data) &&
           find_function(handle, "debuginfod_get_url", library.get_url);
}

struct Asked {
    const DebuginfodClient::Progress& progress;
    bool ended = false;  // by `progress`
};

// (a, b): bytes received and total bytes, if b is positive. Before that, a counts wait rounds.
int report_progress(debuginfod_client* client, long a, long b) {
    Asked& asked = *static_cast<Asked*>(library.get_user_data(client));
    const bool arriving = a >= 0 && b > 0;
    if (asked.progress(arriving ? static_cast<std::uint64_t>(a) : 0, arriving ? static_cast<std::uint64_t>(b) : 0))
        return 0;
    asked.ended = true;
    return 1;
}

Result<std::string> build_id_of(const std::string& path) {
    const UniqueFd fd = TRY(open_read(path));
    const elf::ByteSource source = elf::source_of_fd(fd.get());
    const elf::Header header = TRY(elf::read_header(source));
    return elf::read_build_id(source, header);
}

std::string short_id(const std::string& build_id) { return to_hex(build_id).substr(0, 16); }

// The URL of the contacted server, without the rest of the request.
std::string server_of(debuginfod_client* client) {
    const char* const url = library.get_url(client);
    const std::string text = url == nullptr ? "" : url;
    return text.empty() ? servers : text.substr(0, text.find("/buildid/"));
}

std::unexpected<Error> failure(debuginfod_client* client, int error, const char* what) {
    switch (error) {
        case ENOENT: return fail(ErrorCode::not_found, "no debuginfod server has it");
        case EFBIG:
            return fail(ErrorCode::too_large,
                        fmt::format("{} has more bytes than --debuginfod-cache-size allows", what));
        case ETIME:
        case ETIMEDOUT:
            return fail(ErrorCode::closed, fmt::format("the debuginfod server {} sends nothing", server_of(client)));
        case ECONNREFUSED:
        case EHOSTUNREACH:
        case ENETUNREACH:
        case ECONNRESET:
        case ECOMM:
        case EPIPE:
            return fail(ErrorCode::closed, fmt::format("the debuginfod server {} does not answer: {}",
                                                       server_of(client), std::generic_category().message(error)));
        case ENOSPC:
        case EROFS:
        case EACCES: return fail_errno(fmt::format("{} cannot be kept", what), error);
        default:
            return fail(ErrorCode::closed, fmt::format("the debuginfod server {} fails: {}", server_of(client),
                                                       std::generic_category().message(error)));
    }
}

struct Kept {
    std::string folder;
    std::uint64_t bytes = 0;
    timespec used{};
};

}  // namespace

Result<bool> prepare_debuginfod(const std::vector<std::string>& urls, const std::string& folder,
                                std::uint64_t limit_bytes) {
    if (!load_library())
        return fail(ErrorCode::unsupported,
                    "libdebuginfod.so.1 is not on this machine: install libdebuginfod1 (Debian, Ubuntu) or "
                    "elfutils-debuginfod-client (Fedora, openSUSE)");
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return fail_errno("make " + folder, error.value());
    (void)::chmod(folder.c_str(), 0700);
    servers = fmt::format("{}", fmt::join(urls, " "));
    ::setenv(DEBUGINFOD_URLS_ENV_VAR, servers.c_str(), 1);
    ::setenv(DEBUGINFOD_CACHE_PATH_ENV_VAR, folder.c_str(), 1);
    ::setenv(DEBUGINFOD_MAXSIZE_ENV_VAR, std::to_string(limit_bytes).c_str(), 0);
    return true;
}

Result<std::vector<std::string>> debuginfod_urls(const std::vector<std::string>& given) {
    std::vector<std::string> urls;
    const auto add = [&](const std::string& url) {
        if (std::ranges::find(urls, url) == urls.end()) urls.push_back(url);
    };
    for (const std::string& one : given) {
        if (one == "env") {
            const char* const text = std::getenv(DEBUGINFOD_URLS_ENV_VAR);
            std::string_view rest = text == nullptr ? "" : text;
            constexpr std::string_view space = " \t\n";
            while (rest.find_first_not_of(space) != std::string_view::npos) {
                rest.remove_prefix(rest.find_first_not_of(space));
                const std::string_view word = rest.substr(0, rest.find_first_of(space));
                if (!word.starts_with("ima:")) add(std::string(word));
                rest.remove_prefix(word.size());
            }
            if (urls.empty())
                return fail(ErrorCode::invalid,
                            "--debuginfod env: DEBUGINFOD_URLS names no server; give one as --debuginfod URL");
            continue;
        }
        const bool known = one.starts_with("http://") || one.starts_with("https://") || one.starts_with("file://");
        if (!known || one.find_first_of(" \t\n\"") != std::string::npos)
            return fail(ErrorCode::invalid,
                        fmt::format("--debuginfod takes http://HOST:PORT, https://HOST or env, not {:.200}", one));
        add(one);
    }
    return urls;
}

std::string debuginfod_file(const std::string& folder, const std::string& build_id) {
    return folder + "/" + to_hex(build_id) + "/debuginfo";
}

std::string debuginfod_executable(const std::string& folder, const std::string& build_id) {
    return folder + "/" + to_hex(build_id) + "/executable";
}

void limit_debuginfod_folder(const std::string& folder, std::uint64_t limit_bytes, const std::string& keep) {
    std::error_code error;
    std::vector<Kept> builds;
    std::uint64_t total = 0;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        Kept build{at->path().string(), 0, {}};
        std::error_code inner;
        for (fs::directory_iterator file(build.folder, inner), none; !inner && file != none; file.increment(inner)) {
            struct stat status{};
            if (::lstat(file->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
            build.bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
            if (std::tie(status.st_mtim.tv_sec, status.st_mtim.tv_nsec) >
                std::tie(build.used.tv_sec, build.used.tv_nsec))
                build.used = status.st_mtim;
        }
        if (inner) continue;  // a file: the library's own settings
        total += build.bytes;
        builds.push_back(std::move(build));
    }
    std::ranges::sort(builds, [](const Kept& a, const Kept& b) {
        return std::tie(a.used.tv_sec, a.used.tv_nsec, a.folder) < std::tie(b.used.tv_sec, b.used.tv_nsec, b.folder);
    });
    const std::string kept = folder + "/" + to_hex(keep);
    for (const Kept& build : builds) {
        if (total <= limit_bytes) return;
        if (build.folder == kept || build.bytes == 0) continue;
        fs::remove_all(build.folder, error);
        total -= build.bytes;
    }
}

DebuginfodClient::DebuginfodClient() {
    if (library.begin == nullptr) return;
    client_ = library.begin();
    if (client_ != nullptr) library.set_progressfn(client_, report_progress);
}

DebuginfodClient::~DebuginfodClient() {
    if (client_ != nullptr) library.end(client_);
}

// Makes one request. `call` returns a descriptor or a negative error code, and sets the path of the file.
template <class Call>
Result<std::string> DebuginfodClient::request(const Progress& progress, const char* what, const Call& call) {
    if (client_ == nullptr) return fail(ErrorCode::unsupported, "no debuginfod client could be made");
    Asked asked{progress};
    library.set_user_data(client_, &asked);
    char* found = nullptr;
    const int fd = call(&found);
    std::string path = found == nullptr ? "" : found;
    std::free(found);
    if (fd >= 0) ::close(fd);
    if (asked.ended) return fail(ErrorCode::closed, "it was ended");
    if (fd < 0) return failure(client_, -fd, what);
    return path;
}

Result<std::string> DebuginfodClient::find(Kind kind, const std::string& build_id, const Progress& progress) {
    const bool program = kind == Kind::executable;
    const auto find_file = program ? library.find_executable : library.find_debuginfo;
    std::string path = TRY(request(progress, program ? "its file" : "its debug info", [&](char** found) {
        return find_file(client_, reinterpret_cast<const unsigned char*>(build_id.data()),
                         static_cast<int>(build_id.size()), found);
    }));
    const auto has = build_id_of(path);
    if (has && *has == build_id) return path;
    // Delete a file of another build, or later requests would return it from the cache. After this error the caller
    // waits before it retries.
    ::unlink(path.c_str());
    return fail(ErrorCode::invalid, has ? fmt::format("build-id mismatch: the debuginfod server {} sent {} for {}",
                                                      server_of(client_), short_id(*has), short_id(build_id))
                                        : fmt::format("what the debuginfod server {} sent for {} is not an ELF file",
                                                      server_of(client_), short_id(build_id)));
}

Result<std::string> DebuginfodClient::debug_info(const std::string& build_id, const Progress& progress) {
    std::string path = TRY(find(Kind::debug_info, build_id, progress));
    const auto file = ObjectFile::open(path);
    const std::string common = file ? file->alternate_build_id() : std::string();
    // If this fails, only some names are missing.
    if (!common.empty()) (void)find(Kind::debug_info, common, progress);
    return path;
}

Result<std::string> DebuginfodClient::executable(const std::string& build_id, const Progress& progress) {
    return find(Kind::executable, build_id, progress);
}

Result<std::string> DebuginfodClient::source(const std::string& build_id, const std::string& file,
                                             const Progress& progress) {
    return request(progress, "the source file", [&](char** found) {
        return library.find_source(client_, reinterpret_cast<const unsigned char*>(build_id.data()),
                                   static_cast<int>(build_id.size()), file.c_str(), found);
    });
}

}  // namespace flamewire::symbol
